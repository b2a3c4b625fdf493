"""From an experiment to a graph: which artifact is made of which, each known by its recipe."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from xbert.artifacts.fingerprint import FileDigests, Recipe
from xbert.pipeline.config import Choice, Experiment
from xbert.pipeline.registry import MODEL_STAGES, companion


@dataclass(frozen=True, eq=False)
class Node:
    """One artifact to be: how it is made, of what, and therefore its recipe."""

    name: str  # as shown: "index", or "model/index" where models differ
    choice: Choice
    inputs: dict[str, "Node"]
    recipe: Recipe

    @property
    def stage(self) -> str:
        """The stage that makes it."""
        return self.choice.method.stage


@dataclass(frozen=True, eq=False)
class Graph:
    """All nodes in an order in which they can be made, each artifact once; and the nodes of every model."""

    nodes: list[Node]
    models: dict[str, dict[str, Node]]  # model -> stage, or name of a companion -> node
    ensemble: Node | None

    def upto(self, stages: Iterable[str]) -> list[Node]:
        """The nodes of those stages and all they are made of, in order."""
        wanted: set[int] = set()
        waiting = [node for node in self.nodes if node.stage in set(stages)]
        while waiting:
            node = waiting.pop()
            if id(node) not in wanted:
                wanted.add(id(node))
                waiting.extend(node.inputs.values())
        return [node for node in self.nodes if id(node) in wanted]


def build(experiment: Experiment, digests: FileDigests) -> Graph:
    """The graph of an experiment. Models that share a stage's recipe share its artifact."""
    data = _node("data", experiment.shared["data"], {}, digests)
    unique: dict[str, Node] = {data.recipe.fingerprint: data}
    single = len(experiment.models) == 1
    models: dict[str, dict[str, Node]] = {model: {"data": data} for model in experiment.models}
    for stage in MODEL_STAGES:  # stage by stage: a shared matcher needs the clusterings of all its models
        for model, choices in experiment.models.items():
            made, choice = models[model], choices[stage]
            inputs = {need: made[need] for need in choice.method.needs}
            partners = _partners(stage, model, experiment)
            if partners:
                clusterings = {id(models[each]["index"]): models[each]["index"] for each in partners}
                inputs.pop("index")
                inputs |= {f"index/{number}": node for number, node in enumerate(clusterings.values())}
            for key, wanted in choice.method.companions(choice.config).items():
                method = companion(wanted.stage, wanted.method)
                its_own = {need: made[need] for need in method.needs}
                name = f"{key} {wanted.stage}" if single else f"{model}/{key} {wanted.stage}"
                node = _node(name, Choice(method, method.config(**wanted.settings)), its_own, digests)
                made[key] = inputs[key] = unique.setdefault(node.recipe.fingerprint, node)
            alike = single or stage == "features" or partners == list(experiment.models)
            node = _node(stage if alike else f"{model}/{stage}", choice, inputs, digests)
            made[stage] = unique.setdefault(node.recipe.fingerprint, node)
    models = {model: {key: node for key, node in made.items() if key != "data"} for model, made in models.items()}
    nodes = list(unique.values())
    ensemble = None
    if not single:
        ranks = {f"{model}/rank": made["rank"] for model, made in models.items()}
        ensemble = _node("ensemble", experiment.shared["ensemble"], {"data": data, **ranks}, digests)
        nodes.append(ensemble)
    parts = {f"{m}/{stage}": made[stage] for m, made in models.items() for stage in ("index", "match", "rank")}
    measured = {"data": data, **parts, **({"ensemble": ensemble} if ensemble else {})}
    nodes.append(_node("evaluate", experiment.shared["evaluate"], measured, digests))
    nodes.sort(key=lambda node: _ORDER[node.stage])
    return Graph(nodes, models, ensemble)


def _partners(stage: str, model: str, experiment: Experiment) -> list[str]:
    """The models that share this one's matcher, itself among them; none where it is its own."""
    choice = experiment.models[model][stage]
    if stage != "match" or not getattr(choice.config, "shared", False):
        return []
    return [name for name, choices in experiment.models.items() if choices["match"] == choice]


_ORDER = {stage: i for i, stage in enumerate(("data", *MODEL_STAGES, "ensemble", "evaluate"))}


def _node(name: str, choice: Choice, inputs: dict[str, Node], digests: FileDigests) -> Node:
    method, config = choice.method, choice.config
    left_out = {each.name for each in fields(config) if _no_part_of_a_recipe(each.metadata, getattr(config, each.name))}
    settings: dict[str, Any] = {key: value for key, value in asdict(config).items() if key not in left_out}
    made_of = {key: node.recipe.fingerprint for key, node in inputs.items()}
    made_of |= {key: f"sha256:{digests.of(path)}" for key, path in method.reads(config).items()}
    return Node(name, choice, inputs, Recipe(method.stage, method.name, method.version, settings, made_of))


def _no_part_of_a_recipe(rule: Mapping[str, Any], value: Any) -> bool:
    """Files and folders of the user are known by their content; how to compute does not change what comes of it."""
    return bool(rule.get("path") or rule.get("how") or (rule.get("folder") and Path(value).is_absolute()))
