"""The evaluate stage: every model and the ensemble on every held-out split, in numbers and on a page."""

from dataclasses import dataclass
from typing import Any, ClassVar

from xbert.artifacts.arrays import Array
from xbert.artifacts.errors import InputError
from xbert.artifacts.kinds.dataset import Dataset
from xbert.artifacts.kinds.evaluation import COMPARISON, ENSEMBLE, Evaluation
from xbert.artifacts.kinds.scores import Scores
from xbert.stages.base import Config, Method, Progress, Work, seeded, setting
from xbert.stages.evaluate import comparison, frequency, matcher
from xbert.stages.evaluate.bootstrap import Draws
from xbert.stages.evaluate.comparison import Group
from xbert.stages.evaluate.parts import Parts, Scored, checked
from xbert.stages.evaluate.report import Facts, page
from xbert.stages.metrics.places import place
from xbert.stages.metrics.ranking import Truth, against_seen, inverse_propensities, overall, shares

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


class Evaluate(Method[EvaluateConfig]):
    """Metrics over all labels and by label frequency, with intervals; the recall of the matchers; how models compare."""

    stage: ClassVar[str] = "evaluate"
    name: ClassVar[str] = "metrics"
    version: ClassVar[int] = 3
    config: ClassVar[type[Config]] = EvaluateConfig
    needs: ClassVar[tuple[str, ...]] = ("data", "*/index", "*/match", "*/rank", "ensemble")
    gives: ClassVar[type[Evaluation]] = Evaluation

    def run(self, inputs: dict[str, Any], config: EvaluateConfig, work: Work) -> Evaluation:
        """Measure what `inputs` holds: "data"; "NAME/index", "NAME/match", "NAME/rank" of each model; "ensemble"."""
        data: Dataset = inputs["data"]
        parts = Parts.of(inputs)
        inverse = inverse_propensities(parts.counts, data.train.n_docs, config.propensity_a, config.propensity_b)
        metrics: dict[str, Any] = {}
        splits = held_out(data, work)
        with work.progress("evaluate", len(splits) * (len(parts.rankers) + len(parts.groups)), "models") as progress:
            for split in splits:
                truth = Truth.of(data.splits[split].Y, inverse, config.depths())
                for name, entry in _on_split(split, truth, parts, config, work, progress).items():
                    metrics.setdefault(name, {})[split] = entry
        return Evaluation(metrics, page(metrics, _facts(data, splits, parts, config)))


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


def _on_split(
    split: str, truth: Truth, parts: Parts, config: EvaluateConfig, work: Work, progress: Progress
) -> dict[str, dict[str, Any]]:
    """The metrics of each model and of the ensemble on one split, and how the models compare if there are several."""
    found, tables, together = {}, {}, {}
    labels = {name: _labels(name, split, truth, ranker, config, work) for name, ranker in parts.rankers.items()}
    for name, scores in labels.items():
        found[name], tables[name] = _measured(scores, truth, parts.counts, config)
        progress.advance()
    if parts.ensemble is not None:
        for group in parts.groups:
            together[group] = comparison.group_shares(group, labels, parts.ensemble, truth)
            progress.advance()
    # One set of draws for models and groups, so that any two of them can be compared.
    draws = _draws(split, found | {group.key: upper for group, upper in together.items()}, truth, config)
    entries = {name: _entry(name, found, truth, draws) | tables[name] for name in parts.rankers}
    for name, model in parts.models.items():
        clusters = checked(model.clusters, f"{name}/match", split, truth.n_docs, model.index.n_clusters, "clusters")
        entries[name]["matcher"] = matcher.measure(truth.Y, model.index, clusters)
    if len(parts.models) > 1:
        entries[COMPARISON] = _compared(parts, entries, together, truth, draws)
    return entries


def _labels(name: str, split: str, truth: Truth, ranker: Scored, config: EvaluateConfig, work: Work) -> Scores:
    what = f"{name}/rank" if name != ENSEMBLE else name
    scores = checked(ranker.scores, what, split, truth.n_docs, truth.Y.n_cols, "labels")
    longest, deepest = matcher.longest(scores), max(config.depths())
    if longest < deepest:
        work.say(f"{name}, {split}: at most {longest} labels are kept per document, so metrics at {deepest} are too low")
    return scores


def _measured(scores: Scores, truth: Truth, counts: Array, config: EvaluateConfig) -> tuple[dict[str, Array], dict[str, Any]]:
    """What each document adds to each metric, and the tables by label."""
    ks = config.depths()
    placed = place(truth.Y, scores, max(ks))
    tally = frequency.LabelTally.of(placed, scores)
    tables = _tables(tally, frequency.classes(counts, config.few, config.medium), counts)
    return shares(placed, truth, ks), tables | {"seen": against_seen(scores, truth.Y, truth.inverse, counts, ks)}


def _entry(name: str, found: dict[str, dict[str, Array]], truth: Truth, draws: Draws | None) -> dict[str, Any]:
    values = overall(found[name], truth)
    entry: dict[str, Any] = {"documents": truth.n_docs, "unlabelled": int((truth.n_true == 0).sum()), **values}
    entry["intervals"] = {metric: draws.interval(name, metric) for metric in values} if draws else {}
    if name == ENSEMBLE:
        entry["gain"] = {other: _gain(other, found, truth, draws) for other in found if other != ENSEMBLE}
    return entry


def _compared(
    parts: Parts, entries: dict[str, Any], together: dict[Group, dict[str, Array]], truth: Truth, draws: Draws | None
) -> dict[str, Any]:
    """Tables of combinations and of ensembles; the latter only where the run has an ensemble, whose way it takes."""
    alone = {name: entries[name] for name in parts.models}
    combinations = {name: model.combination for name, model in parts.models.items()}
    found: dict[str, Any] = {"matchers": comparison.table_of_matchers(combinations, alone)}
    if parts.ensemble is not None:
        found["single"] = comparison.singles(alone)
        found["ensembles"] = comparison.table_of_ensembles(together, truth, found["single"], draws)
        found["combine"] = parts.ensemble.combine
    return found


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


def _facts(data: Dataset, splits: list[str], parts: Parts, config: EvaluateConfig) -> Facts:
    return Facts(
        documents={name: split.n_docs for name, split in data.splits.items()},
        assignments={name: split.Y.nnz for name, split in data.splits.items()},
        splits=splits,
        counts=parts.counts,
        cluster_sizes={name: model.index.cluster_sizes() for name, model in parts.models.items()},
        found=data.facts if isinstance(data.facts, dict) else {},
        ks=config.depths(),
        propensity=(config.propensity_a, config.propensity_b),
        bootstrap=config.bootstrap,
        confidence=config.confidence,
        few=config.few,
        medium=config.medium,
    )
