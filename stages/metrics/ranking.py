"""The metrics of a ranking, in percent: P@k, R@k, nDCG@k, RP@k and PSP@k.

Each is a ratio of two sums over documents, so that a bootstrap needs nothing but the documents' shares.

A document without a true label stays in the mean and counts 0 everywhere, as in the evaluation scripts of the Extreme
Classification Repository: nothing named for it can be right. It adds nothing to either sum of PSP@k. A ranking that
names fewer than k labels has misses in the places it left empty.

Worked example: true labels {2, 5}, named 5, 7, 2. P@3 = 2/3, R@3 = 2/2, RP@3 = precision at min(3, 2) = 1/2,
nDCG@3 = (1/log2(2) + 1/log2(4)) / (1/log2(2) + 1/log2(3)) = 1.5 / 1.6309 = 0.9197.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.artifacts.kinds.scores import Scores
from xbert.artifacts.sparse import Sparse
from xbert.stages.metrics.places import Placed, place, rows_of

NAMES = ("P", "R", "nDCG", "PSP", "RP")


def inverse_propensities(counts: Array, n_docs: int, a: float, b: float) -> Array:
    """1/p of every label, p = 1 / (1 + C (N_l + B)^-A) with C = (ln N - 1)(B + 1)^A (Jain et al., KDD 2016, eq. 3).

    With fewer than e training documents C would be negative and rare labels worth less than frequent ones: it is 0.
    """
    c = max(np.log(max(n_docs, 1)) - 1, 0.0) * (b + 1) ** a
    return np.asarray(1 + c * (counts + b) ** -a)


@dataclass(frozen=True, eq=False)
class Truth:
    """What is right in one split: the same for every model."""

    Y: Sparse
    n_true: Array  # (n_docs,) true labels of each document
    inverse: Array  # (n_labels,) 1/propensity
    best: dict[int, Array]  # k -> (n_docs,) the most that k right labels can add to PSP@k

    @classmethod
    def of(cls, Y: Sparse, inverse: Array, ks: tuple[int, ...]) -> Self:
        """Find the best reachable sums: for each document, its k true labels of least propensity."""
        rows, worth = rows_of(Y), inverse[Y.indices]
        order = np.lexsort((-worth, rows))
        rows, worth = rows[order], worth[order]
        position = np.arange(Y.nnz) - Y.indptr[rows]
        best = {k: np.bincount(rows[position < k], worth[position < k], Y.n_rows).astype(np.float64) for k in ks}
        return cls(Y, Y.row_lengths(), inverse, best)

    @property
    def n_docs(self) -> int:
        """Number of documents."""
        return self.Y.n_rows


def shares(placed: Placed, truth: Truth, ks: tuple[int, ...]) -> dict[str, Array]:
    """What each document adds to the upper sum of each metric, (n_docs,), by name; `lower` gives the other sum."""
    discount = 1 / np.log2(np.arange(max(ks)) + 2)
    ideal = np.concatenate([[1.0], np.cumsum(discount)])  # for a document without true labels 0/1, not 0/0
    some = np.maximum(truth.n_true, 1)
    found: dict[str, Array] = {}
    for k in ks:
        hit = np.flatnonzero(placed.places < k)
        n_hits = placed.per_document(hit)
        found[f"P@{k}"] = n_hits / k
        found[f"R@{k}"] = n_hits / some
        found[f"nDCG@{k}"] = placed.per_document(hit, discount[placed.places[hit]]) / ideal[np.minimum(truth.n_true, k)]
        found[f"PSP@{k}"] = placed.per_document(hit, truth.inverse[placed.targets[hit]])
        reach = np.minimum(some, k)
        found[f"RP@{k}"] = placed.per_document(hit[placed.places[hit] < reach[placed.rows[hit]]]) / reach
    return {name: found[name] for name in names(ks)}


def names(ks: tuple[int, ...]) -> list[str]:
    """The names of the metrics, in the order they are shown in."""
    return [f"{name}@{k}" for name in NAMES for k in ks]


def lower(name: str, truth: Truth) -> Array | None:
    """What each document adds to the lower sum of a metric, (n_docs,); None where each adds 1."""
    kind, k = name.split("@")
    return truth.best[int(k)] if kind == "PSP" else None


def percent(part: float, whole: float) -> float | None:
    """100 part / whole to two decimals; None where there is nothing to have a share of."""
    return round(100 * float(part) / float(whole), 2) if whole else None


def overall(found: dict[str, Array], truth: Truth) -> dict[str, float]:
    """Every metric over the split, in percent; 0 where no document has a true label."""
    values = {}
    for name, upper in found.items():
        below = lower(name, truth)
        whole = truth.n_docs if below is None else below.sum()
        values[name] = percent(upper.sum(), whole) or 0.0
    return values


def against_seen(scores: Scores, Y: Sparse, inverse: Array, counts: Array, ks: tuple[int, ...]) -> dict[str, float]:
    """The same metrics with labels that no training document has taken out of the truth, and documents left without any.

    How the field's benchmarks often measure; unseen labels weigh most in PSP@k, and no trained model can name them.
    """
    seen = counts[Y.indices] > 0
    lengths = np.bincount(rows_of(Y)[seen], minlength=Y.n_rows)
    indptr = np.r_[np.int64(0), np.cumsum(lengths)]
    documents = np.flatnonzero(lengths)
    kept = Sparse(indptr, Y.indices[seen], None, Y.n_cols).take(documents)
    truth = Truth.of(kept, inverse, ks)
    return overall(shares(place(kept, Scores(scores.S.take(documents)), max(ks)), truth, ks), truth)


def ndcg(scores: Scores, Y: Sparse, k: int) -> float:
    """nDCG@k of one ranking, in percent: what weights and settings are chosen by."""
    truth = Truth.of(Y, np.ones(Y.n_cols), (k,))
    found = shares(place(Y, scores, k), truth, (k,))
    return 100 * float(found[f"nDCG@{k}"].mean()) if Y.n_rows else 0.0
