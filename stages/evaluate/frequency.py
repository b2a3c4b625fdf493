"""How labels fare by the number of their training documents: a high P@1 can hide a tail that is never found.

The classes and the macro averages are those of the ME-XML paper (section 4.3, eq. 12; appendix B, eq. 13 to 15):
few-shot 1..20 training documents, medium-shot 21..100, many-shot more. The paper averages over all labels of a class.
Here the average is over the labels of the class that are true somewhere in the split: a label that never occurs has no
recall, and counting it 0 would make the number depend on how many such labels the vocabulary carries along. What is
named wrongly of such labels is seen by P@k, not here.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.artifacts.kinds.scores import Scores
from xbert.stages.metrics.places import Placed, named_counts
from xbert.stages.metrics.ranking import percent

DEPTH = 5  # the k of every metric here
CLASSES = ("few", "medium", "many")
_EDGES = (0, 1, 3, 6, 11, 21, 51, 101, 201, 501, 1001)  # first training count of each bin


@dataclass(frozen=True, eq=False)
class LabelTally:
    """Each label's documents: true, named among the first DEPTH, and both; (n_labels,) each."""

    true: Array
    named: Array
    right: Array

    @classmethod
    def of(cls, placed: Placed, scores: Scores) -> Self:
        """Count over one split."""
        n_labels = scores.n_targets
        true = np.bincount(placed.targets, minlength=n_labels)
        right = np.bincount(placed.targets[placed.places < DEPTH], minlength=n_labels)
        return cls(true, named_counts(scores, DEPTH), right)


def classes(counts: Array, few: int, medium: int) -> dict[str, Array]:
    """Which labels are seen in 1..few, few+1..medium and more training documents, as masks; and which in none."""
    return {
        "few": (counts >= 1) & (counts <= few),
        "medium": (counts > few) & (counts <= medium),
        "many": counts > medium,
        "unseen": counts == 0,
    }


def by_frequency(tally: LabelTally, groups: dict[str, Array]) -> dict[str, dict[str, Any]]:
    """Macro P, R and F of each class; of the labels without a training document only how many there are.

    `labels` are those averaged over, true somewhere in the split; `of` is the size of the class.
    """
    table = {name: _macro(tally, groups[name]) for name in CLASSES}
    unseen = groups["unseen"]
    share = percent(tally.true[unseen].sum(), tally.true.sum())
    table["unseen"] = {"labels": int((tally.true[unseen] > 0).sum()), "of": int(unseen.sum()), "share": share}
    return table


def _macro(tally: LabelTally, group: Array) -> dict[str, Any]:
    met = group & (tally.true > 0)
    n_labels, right = int(met.sum()), tally.right[met]
    precision = right / np.maximum(tally.named[met], 1)  # a label that is never named has precision 0
    recall = right / tally.true[met]
    both = precision + recall
    f1 = 2 * precision * recall / np.where(both > 0, both, 1)
    table: dict[str, Any] = {"labels": n_labels, "of": int(group.sum())}
    for name, values in (("P", precision), ("R", recall), ("F", f1)):
        table[f"{name}@{DEPTH}"] = percent(values.sum(), n_labels)
    return table


def part(tally: LabelTally, group: Array) -> dict[str, Any]:
    """Micro recall of a group of labels, and its share of all true assignments."""
    true = tally.true[group].sum()
    return {
        f"R@{DEPTH}": percent(tally.right[group].sum(), true),
        "share": percent(true, tally.true.sum()),
        "labels": int((tally.true[group] > 0).sum()),
    }


def coverage(tally: LabelTally) -> float:
    """Share of the labels true somewhere in the split that are rightly named at least once."""
    return percent((tally.right > 0).sum(), (tally.true > 0).sum()) or 0.0


def recall_bins(tally: LabelTally, counts: Array) -> list[dict[str, Any]]:
    """Micro recall of the labels by training documents, in growing bins; those without true ones are left out."""
    bins: list[dict[str, Any]] = []
    for low, end in zip(_EDGES, (*_EDGES[1:], None), strict=True):
        group = (counts >= low) & (counts < end) if end is not None else counts >= low
        one = part(tally, group)
        if one[f"R@{DEPTH}"] is not None:
            name = f">{low - 1}" if end is None else str(low) if end == low + 1 else f"{low}-{end - 1}"
            bins.append({"from": low, "documents": name, **one})
    return bins
