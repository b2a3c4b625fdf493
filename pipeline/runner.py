"""Runs what is out of date, in order, and says why."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.artifacts.atomic import make_folder, storage_errors
from xbert.artifacts.fingerprint import FileDigests
from xbert.artifacts.kinds.base import Artifact
from xbert.artifacts.store import Pieces, Store
from xbert.pipeline import plan, pointer
from xbert.pipeline.config import Experiment
from xbert.pipeline.console import Bar, Console, duration
from xbert.pipeline.graph import Graph, Node, build
from xbert.stages.base import Shape, seeded


@dataclass(frozen=True)
class LocalWork:
    """The place a method runs in: a partial folder of this machine."""

    folder: Path
    threads: int
    memory: int
    seed: int
    pieces: Pieces
    console: Console

    def rng(self, name: str) -> np.random.Generator:
        """Random numbers that depend on the method's seed and the name alone."""
        return seeded(self.seed, name)

    def progress(self, what: str, total: int, unit: str) -> Bar:
        """A progress bar."""
        return self.console.progress(what, total, unit)

    def say(self, sentence: str) -> None:
        """One line, indented under its stage."""
        self.console.say(f"  {sentence}")

    def recall(self, name: str) -> dict[str, Array] | None:
        """A piece kept by an interrupted run."""
        return self.pieces.recall(name)

    def keep(self, name: str, piece: dict[str, Array]) -> None:
        """Keep a piece."""
        self.pieces.keep(name, piece)


class Runner:
    """Brings the artifacts of an experiment up to date."""

    def __init__(self, experiment: Experiment, console: Console) -> None:
        self.experiment, self.console = experiment, console
        self.store = Store(experiment.folder)
        digests = FileDigests(experiment.folder / ".digests.json")
        self.graph: Graph = build(experiment, digests)
        self._digests = digests
        self._loaded: dict[str, Any] = {}

    def run(self, stages: Iterable[str], force: bool = False, dry_run: bool = False) -> list[str]:
        """Make what is missing for those stages; with `force`, those stages themselves anew. Returns what was (to be) made."""
        asked = set(stages)
        made: list[str] = []
        if asked == {"ensemble"} and self.graph.ensemble is None:
            self.console.say("ensemble: the experiment has one model, so there is nothing to combine")
        planned = False
        if dry_run and not self.store.has(self.graph.nodes[0].recipe):
            self.console.say("plan: can be told once the data is prepared (`xbert prepare`)")
        for node in self.graph.upto(asked):
            if not planned and node.stage != "data" and self.store.has(self.graph.nodes[0].recipe):
                planned = True
                self._plan(asked, force)
            again = force and node.stage in asked
            if node.stage == "evaluate" and not dry_run:
                self._point()  # the models are whole by now, and can be used whatever comes of measuring them
                if len(asked) > 1 and not self.has_held_out():
                    self.console.say(f"{node.name}: left out, there is no valid or test split to measure on")
                    continue
            if self.store.has(node.recipe) and not again:
                self.console.say(f"{node.name}: up to date")
                continue
            why = "forced" if again and self.store.has(node.recipe) else self.store.why_not(node.recipe)
            if dry_run:
                self.console.say(f"{node.name}: would run ({why})")
            else:
                self.console.say(f"{node.name}: running ({why})")
                self._make(node, again)
            made.append(node.name)
        if not dry_run:
            self._point()
        return made

    def _plan(self, asked: set[str], force: bool) -> None:
        """Say what is to come, and refuse it if it cannot be done in the memory or on the disk there is."""
        to_make = [
            node for node in self.graph.upto(asked) if not self.store.has(node.recipe) or (force and node.stage in asked)
        ]
        planned: list[plan.Step] = []
        for made in self.graph.models.values():
            steps = plan.steps([node for node in made.values() if node in to_make], self._shape(made), self.experiment.threads)
            planned += [step for step in steps if all(step.node is not other.node for other in planned)]
        for line in plan.lines(planned, self.experiment.threads, self.experiment.memory):
            self.console.say(line)
        plan.refuse_what_does_not_fit(planned, self.experiment.memory, self.experiment.folder)

    def _shape(self, made: dict[str, Node]) -> Shape:
        """The data of a model, as far as it is known yet."""
        data, features, index = self.graph.nodes[0], made["features"], made["index"]
        done = {node.stage: self.artifact(node) for node in (data, features, index) if self.store.has(node.recipe)}
        ngrams = plan.ngrams_of(features.choice.config)
        return plan.shape_of(done["data"], done.get("features"), done.get("index"), ngrams)

    def _make(self, node: Node, force: bool) -> None:
        with storage_errors(self.experiment.folder):
            make_folder(self.experiment.folder)
            self._digests.save()
        method = node.choice.method()

        def compute(partial: Path, pieces: Pieces) -> Artifact:
            inputs = {key: self.artifact(each) for key, each in node.inputs.items()}
            seed = getattr(node.choice.config, "seed", 0)
            work = LocalWork(partial, self.experiment.threads, self.experiment.memory, seed, pieces, self.console)
            return method.run(inputs, node.choice.config, work)

        self.store.make(node.recipe, method.gives, compute, force)
        self._loaded.pop(node.recipe.fingerprint, None)
        note = self.store.journal().get(f"{node.recipe.stage}/{node.recipe.name}", {})
        facts = ", ".join(f"{key} {_plain(value)}" for key, value in self.artifact(node).summary().items())
        self.console.say(f"{node.name}: done in {duration(note.get('seconds', 0))} ({facts})")

    def artifact(self, node: Node) -> Any:
        """The node's artifact, opened once."""
        key = node.recipe.fingerprint
        if key not in self._loaded:
            self._loaded[key] = self.store.load(node.recipe, node.choice.method.gives)
        return self._loaded[key]

    def has_held_out(self) -> bool:
        """Whether there are documents to measure on; True as long as the data is not known."""
        data = self.graph.nodes[0]
        return not self.store.has(data.recipe) or bool(self.artifact(data).held_out)

    def _point(self) -> None:
        """Once every model is whole, say in the run folder which artifacts make it up."""
        needed = [node for made in self.graph.models.values() for node in made.values()]
        needed += [self.graph.ensemble] if self.graph.ensemble else []
        if all(self.store.has(node.recipe) for node in needed):
            with storage_errors(self.experiment.folder):
                pointer.write(self.experiment.folder, self.graph, self.store)


def _plain(value: Any) -> str:
    return (
        f"{value:,}"
        if isinstance(value, (int, float))
        else " ".join(map(str, value))
        if isinstance(value, list)
        else str(value)
    )
