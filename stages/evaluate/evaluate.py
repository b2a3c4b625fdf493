"""The evaluate stage: every model and the ensemble on every held-out split, in numbers and on a page."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from xbert.artifacts.arrays import Array
from xbert.artifacts.errors import ArtifactError, InputError
from xbert.artifacts.kinds.dataset import Dataset
from xbert.artifacts.kinds.evaluation import Evaluation
from xbert.artifacts.kinds.label_index import LabelIndex
from xbert.artifacts.kinds.scores import Scores
from xbert.stages.base import Config, Method, Work, seeded, setting
from xbert.stages.evaluate import frequency, matcher
from xbert.stages.evaluate.bootstrap import Draws
from xbert.stages.evaluate.report import Facts, page
from xbert.stages.metrics.places import place
from xbert.stages.metrics.ranking import Truth, against_seen, inverse_propensities, overall, shares

ENSEMBLE = "ensemble"
_ALWAYS = (1, 3, 5)
_GAINS = ("P@1", "P@3", "P@5")
_LARGEST_K = 1000


@dataclass(frozen=True)
class EvaluateConfig(Config):
    """What is measured, and how sure it is."""

    ks: str = setting("1,3,5", "depths k of P@k, R@k, nDCG@k, PSP@k and RP@k, with commas; 1, 3 and 5 are always among them")
    propensity_a: float = setting(0.55, "A of PSP: 0.5 for Wikipedia sets, 0.6 for Amazon sets, 0.55 for all others", low=0)
    propensity_b: float = setting(1.5, "B of PSP: 0.4 for Wikipedia sets, 2.6 for Amazon sets, 1.5 for all others", low=0.01)
    bootstrap: int = setting(1000, "draws of the documents for the intervals; 0 for none", low=0)
    confidence: float = setting(95.0, "percent of the draws that an interval holds", low=1, high=99.9)
    seed: int = setting(0, "seed of the draws")
    few: int = setting(20, "tail labels have at most so many training documents", low=1)
    medium: int = setting(100, "head labels have more training documents than this", low=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.depths()
        if self.few >= self.medium:
            raise InputError(f"few = {self.few} and medium = {self.medium}: few must be the smaller of the two")

    def depths(self) -> tuple[int, ...]:
        """The numbers in `ks`, ascending, with 1, 3 and 5."""
        parts = [part.strip() for part in self.ks.split(",")]
        if not all(part.isascii() and part.isdigit() and 1 <= int(part[:5]) <= _LARGEST_K for part in parts):
            raise InputError(f"ks = {self.ks!r}: must be whole numbers between 1 and {_LARGEST_K} with commas, as '1,3,5'")
        return tuple(sorted({*_ALWAYS, *map(int, parts)}))


class Scored(Protocol):
    """What matchers, rankers and ensembles give: scores by split."""

    @property
    def scores(self) -> dict[str, Scores]:
        """The best targets of each document of each split."""


class Evaluate(Method[EvaluateConfig]):
    """Metrics over all labels and by label frequency, with intervals, and the recall of the matchers."""

    stage: ClassVar[str] = "evaluate"
    name: ClassVar[str] = "metrics"
    version: ClassVar[int] = 2
    config: ClassVar[type[Config]] = EvaluateConfig
    needs: ClassVar[tuple[str, ...]] = ("data", "*/index", "*/match", "*/rank", "ensemble")
    gives: ClassVar[type[Evaluation]] = Evaluation

    def run(self, inputs: dict[str, Any], config: EvaluateConfig, work: Work) -> Evaluation:
        """Measure what `inputs` holds: "data"; "NAME/index", "NAME/match", "NAME/rank" of each model; "ensemble"."""
        data: Dataset = inputs["data"]
        rankers = rankers_of(inputs)
        counts = data.label_counts()
        inverse = inverse_propensities(counts, data.train.n_docs, config.propensity_a, config.propensity_b)
        metrics: dict[str, Any] = {name: {} for name in rankers}
        indices = {name: inputs[f"{name}/index"] for name in rankers if name != ENSEMBLE}
        splits = held_out(data, work)
        with work.progress("evaluate", len(splits) * len(rankers), "models") as progress:
            for split in splits:
                truth = Truth.of(data.splits[split].Y, inverse, config.depths())
                for name, found in _measured(split, truth, rankers, counts, config, work):
                    metrics[name][split] = found
                    if name in indices:
                        found["matcher"] = _matcher(name, split, truth, indices[name], inputs[f"{name}/match"])
                    progress.advance()
        return Evaluation(metrics, page(metrics, _facts(data, splits, counts, indices, config)))


def rankers_of(inputs: dict[str, Any]) -> dict[str, Scored]:
    """The models whose labels are measured, by name; the ensemble comes last."""
    names = [key.removesuffix("/rank") for key in inputs if key.endswith("/rank")]
    if ENSEMBLE in names:
        raise InputError(f"a model is called {ENSEMBLE!r}, which is the name of all models together: give it another name")
    rankers: dict[str, Scored] = {name: inputs[f"{name}/rank"] for name in names}
    if ENSEMBLE in inputs:
        rankers[ENSEMBLE] = inputs[ENSEMBLE]
    return rankers


def held_out(data: Dataset, work: Work) -> list[str]:
    """The splits to measure on; what a reader of the numbers should know of them is said."""
    splits = [name for name, split in data.held_out.items() if split.n_docs]
    if not splits:
        raise InputError("the dataset has no documents to measure on: give it a valid or a test split")
    for name in splits:
        empty = int((data.splits[name].Y.row_lengths() == 0).sum())
        if empty:
            work.say(f"{name}: {empty} of {data.splits[name].n_docs} documents have no true label and count 0")
    return splits


def _measured(
    split: str, truth: Truth, rankers: dict[str, Scored], counts: Array, config: EvaluateConfig, work: Work
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The metrics of each model on one split, one after the other."""
    ks = config.depths()
    groups = frequency.classes(counts, config.few, config.medium)
    tables, found = {}, {}
    for name, ranker in rankers.items():
        scores = checked(ranker, f"{name}/rank" if name != ENSEMBLE else name, split, truth.n_docs, truth.Y.n_cols, "labels")
        longest = matcher.longest(scores)
        if longest < max(ks):
            work.say(f"{name}, {split}: at most {longest} labels are kept per document, so metrics at {max(ks)} are too low")
        placed = place(truth.Y, scores, max(ks))
        found[name] = shares(placed, truth, ks)
        tally = frequency.LabelTally.of(placed, scores)
        tables[name] = _tables(tally, groups, counts) | {"seen": against_seen(scores, truth.Y, truth.inverse, counts, ks)}
    draws = _draws(split, found, truth, config)
    for name in rankers:
        values = overall(found[name], truth)
        entry: dict[str, Any] = {"documents": truth.n_docs, "unlabelled": int((truth.n_true == 0).sum()), **values}
        entry["intervals"] = {metric: draws.interval(name, metric) for metric in values} if draws else {}
        entry.update(tables[name])
        if name == ENSEMBLE:
            entry["gain"] = {other: _gain(other, found, truth, draws) for other in rankers if other != ENSEMBLE}
        yield name, entry


def _tables(tally: frequency.LabelTally, groups: dict[str, Array], counts: Array) -> dict[str, Any]:
    return {
        "coverage@5": frequency.coverage(tally),
        "by_frequency": frequency.by_frequency(tally, groups),
        "head": frequency.part(tally, groups["many"]),
        "tail": frequency.part(tally, groups["few"]),
        "recall_bins": frequency.recall_bins(tally, counts),
    }


def _draws(split: str, found: dict[str, dict[str, Array]], truth: Truth, config: EvaluateConfig) -> Draws | None:
    if not config.bootstrap:
        return None
    return Draws.of(found, truth, config.bootstrap, config.confidence, seeded(config.seed, f"bootstrap/{split}"))


def _gain(other: str, found: dict[str, dict[str, Array]], truth: Truth, draws: Draws | None) -> dict[str, Any]:
    """What the ensemble adds to one of its members, in points."""
    whole, single = overall(found[ENSEMBLE], truth), overall(found[other], truth)
    gain: dict[str, Any] = {metric: round(whole[metric] - single[metric], 2) for metric in _GAINS}
    gain["intervals"] = {metric: draws.interval(ENSEMBLE, metric, other) for metric in _GAINS} if draws else {}
    return gain


def _matcher(name: str, split: str, truth: Truth, index: LabelIndex, match: Scored) -> dict[str, Any]:
    if index.n_labels != truth.Y.n_cols:
        raise ArtifactError(
            f"{name}/index has {index.n_labels} labels, the dataset {truth.Y.n_cols}: they come from other data"
        )
    scores = checked(match, f"{name}/match", split, truth.n_docs, index.n_clusters, "clusters")
    return matcher.measure(truth.Y, index, scores)


def checked(scored: Scored, what: str, split: str, n_docs: int, n_targets: int, targets: str) -> Scores:
    """The scores of a split, if they belong to this dataset."""
    if split not in scored.scores:
        raise ArtifactError(f"{what} has no scores for the {split} split: they come from other data")
    scores = scored.scores[split]
    if scores.n_docs != n_docs:
        raise ArtifactError(f"{what} scores {scores.n_docs} documents of {split}, the dataset has {n_docs}: other data")
    if scores.n_targets != n_targets:
        raise ArtifactError(f"{what} knows {scores.n_targets} {targets}, {n_targets} are expected: they come from other data")
    return scores


def _facts(data: Dataset, splits: list[str], counts: Array, indices: dict[str, LabelIndex], config: EvaluateConfig) -> Facts:
    return Facts(
        documents={name: split.n_docs for name, split in data.splits.items()},
        assignments={name: split.Y.nnz for name, split in data.splits.items()},
        splits=splits,
        counts=counts,
        cluster_sizes={name: index.cluster_sizes() for name, index in indices.items()},
        found=data.facts if isinstance(data.facts, dict) else {},
        ks=config.depths(),
        propensity=(config.propensity_a, config.propensity_b),
        bootstrap=config.bootstrap,
        confidence=config.confidence,
        few=config.few,
        medium=config.medium,
    )
