"""How the models of one run compare, in the two ways the X-BERT paper shows it (sections 5.3.1 and 5.3.2).

Table 2: each label embedding with each matcher, measured after matching and after ranking. Figure 5: single models,
ensembles of one embedding, and the ensemble of all. Models that differ in nothing but seeds and sizes are one combination.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from xbert.artifacts.arrays import Array
from xbert.artifacts.kinds.ensemble import Ensemble
from xbert.artifacts.kinds.label_index import LabelIndex
from xbert.artifacts.kinds.scores import Scores
from xbert.stages.evaluate.bootstrap import Draws
from xbert.stages.kernels.combine import combine
from xbert.stages.metrics.places import place
from xbert.stages.metrics.ranking import Truth, overall, shares

STAGES = ("P@1", "P@3", "P@5")  # of table 2
SHOWN = (*STAGES, "nDCG@5")  # of the ensembles
_KS = (1, 3, 5)
_FAMILIES = ("linear", "bilstm", "x-ttention", "transformer")  # from the simplest, as the paper's rows; others follow
_UNNAMED = "unnamed"


class Combination(NamedTuple):
    """What sets models apart that are more than another seed: how the labels are embedded, and the matcher's family."""

    embedding: str
    matcher: str

    @classmethod
    def of(cls, index: LabelIndex, match: object) -> "Combination":
        """As the artifacts say it; an index that was not made of embeddings names none."""
        return cls(str(index.facts.get("embedding", _UNNAMED)), str(getattr(match, "family", "linear")))


@dataclass(frozen=True)
class Group:
    """Models to combine: those of one embedding, of one family of matchers, of both; or all, where both are None."""

    embedding: str | None
    matcher: str | None
    members: tuple[str, ...]

    @property
    def key(self) -> str:
        """Its name among the models' names, none of which has a '/'."""
        return f"{self.embedding or ''}/{self.matcher or ''}"


def groups(models: Mapping[str, Combination]) -> list[Group]:
    """The ensembles worth comparing: of at least two models, each set of models once, all of them last.

    An embedding, or a family of matchers, is a group of its own only where there is another one to compare it with.
    """
    embeddings, matchers = _several(embeddings_of(models.values())), _several(matchers_of(models.values()))
    wanted: list[tuple[str | None, str | None]] = [(embedding, None) for embedding in embeddings]
    wanted += [(None, matcher) for matcher in matchers]
    wanted += [(embedding, matcher) for embedding in embeddings for matcher in matchers]
    unique: dict[tuple[str, ...], Group] = {}
    for embedding, matcher in [*wanted, (None, None)]:
        members = tuple(
            name for name, each in models.items() if embedding in (None, each.embedding) and matcher in (None, each.matcher)
        )
        if len(members) > 1:
            unique.setdefault(members, Group(embedding, matcher, members))
    return list(unique.values())


def _several(names: list[str]) -> list[str]:
    return names if len(names) > 1 else []


def embeddings_of(models: Iterable[Combination]) -> list[str]:
    """The embeddings in the order of the experiment."""
    return list(dict.fromkeys(each.embedding for each in models))


def matchers_of(models: Iterable[Combination]) -> list[str]:
    """The families of matchers, the simplest first."""
    known = {family: place for place, family in enumerate(_FAMILIES)}
    return sorted({each.matcher for each in models}, key=lambda family: (known.get(family, len(known)), family))


def group_shares(group: Group, labels: Mapping[str, Scores], ensemble: Ensemble, truth: Truth) -> dict[str, Array]:
    """What each document adds to the metrics of a group's ensemble, combined in the way of the run's own ensemble.

    All weights are equal. Learnt ones would have to be learnt anew for each group, and groups that come with learnt
    weights of their own would be compared for two reasons at once: their members and their weights.
    """
    members = [labels[name] for name in group.members]
    together = combine(members, ensemble.combine, [1.0] * len(members), ensemble.top, ensemble.places)
    found = shares(place(truth.Y, together, max(_KS)), truth, _KS)
    return {name: found[name] for name in SHOWN}


def table_of_matchers(models: Mapping[str, Combination], entries: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Table 2 of the paper: a row for each embedding and matcher that occurs, with means over its models."""
    rows = []
    for embedding in embeddings_of(models.values()):
        for matcher in matchers_of(models.values()):
            names = [name for name, each in models.items() if each == (embedding, matcher)]
            if names:
                rows.append(
                    {
                        "embedding": embedding,
                        "matcher": matcher,
                        "models": names,
                        "matching": _means([entries[name]["matcher"] for name in names], STAGES),
                        "ranking": _means([entries[name] for name in names], STAGES),
                    }
                )
    return rows


def _means(entries: Sequence[Mapping[str, Any]], metrics: Iterable[str]) -> dict[str, float]:
    return {metric: round(sum(entry[metric] for entry in entries) / len(entries), 2) for metric in metrics}


def singles(entries: Mapping[str, Any]) -> dict[str, Any]:
    """The single models: their mean, and the best of each metric with its name; of equally good ones the first."""
    best = {metric: max(entries, key=lambda name: float(entries[name][metric])) for metric in SHOWN}
    values = {metric: entries[name][metric] for metric, name in best.items()}
    return {"models": len(entries), "mean": _means(list(entries.values()), SHOWN), "best": values, "best models": best}


def table_of_ensembles(
    found: Mapping[Group, dict[str, Array]], truth: Truth, single: Mapping[str, Any], draws: Draws | None
) -> list[dict[str, Any]]:
    """Figure 5 of the paper: each group's metrics, and what it gains over the best single model, in points."""
    rows: list[dict[str, Any]] = []
    for group, upper in found.items():
        values = overall(upper, truth)
        gain: dict[str, Any] = {metric: round(values[metric] - single["best"][metric], 2) for metric in SHOWN}
        best = single["best models"]
        gain["intervals"] = {metric: draws.interval(group.key, metric, best[metric]) for metric in SHOWN} if draws else {}
        intervals = {metric: draws.interval(group.key, metric) for metric in SHOWN} if draws else {}
        row = {"embedding": group.embedding, "matcher": group.matcher, "models": list(group.members)}
        rows.append({**row, **values, "intervals": intervals, "gain": gain})
    return rows
