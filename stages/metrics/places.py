"""Where a ranking puts the true targets of each document: every metric is a sum over these places.

A split has a few true labels per document and a model names a few more, so all that is ever held is one number per
true assignment; a documents x labels array is never made.
"""

from dataclasses import dataclass

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.artifacts.kinds.scores import Scores
from xbert.artifacts.sparse import Sparse
from xbert.stages.base import batches

MISSED = np.iinfo(np.int32).max  # the place of a true target that is not named at all
_BLOCK = 50_000  # documents looked at together


@dataclass(frozen=True, eq=False)
class Placed:
    """One entry per true assignment, in the order of Y's entries."""

    rows: Array  # (n_true,) the document
    targets: Array  # (n_true,) the true target
    places: Array  # (n_true,) 0 where it is named first, MISSED where it is not named
    n_docs: int

    def per_document(self, chosen: Array, weights: Array | None = None) -> Array:
        """Sum of the chosen assignments' weights over each document, (n_docs,); without weights, their number."""
        return np.bincount(self.rows[chosen], weights, self.n_docs).astype(np.float64)


def place(Y: Sparse, scores: Scores, depth: int) -> Placed:
    """Find every true target among the first `depth` targets of its document.

    A target that a document names twice counts at its first place; the second one is a wasted place.
    """
    places = np.full(Y.nnz, MISSED, np.int32)
    for start, stop in batches(Y.n_rows, _BLOCK):
        first, last = Y.indptr[start], Y.indptr[stop]
        places[first:last] = _place_block(Y.slice(start, stop), scores.S.slice(start, stop), depth)
    return Placed(rows_of(Y), np.asarray(Y.indices), places, Y.n_rows)


def rows_of(Y: Sparse) -> Array:
    """The row of every entry."""
    return np.repeat(np.arange(Y.n_rows, dtype=np.int64), Y.row_lengths())


def named_counts(scores: Scores, depth: int) -> Array:
    """How often each target stands among the first `depth` of a document, (n_targets,)."""
    counts = np.zeros(scores.n_targets, np.int64)
    for start, stop in batches(scores.n_docs, _BLOCK):
        _, _, targets = _first(scores.S.slice(start, stop), depth)
        counts += np.bincount(targets, minlength=scores.n_targets)
    return counts


def _place_block(Y: Sparse, S: Sparse, depth: int) -> Array:
    truth = rows_of(Y) * Y.n_cols + Y.indices
    order = np.argsort(truth, kind="stable")  # rows are sorted as a rule, and then this costs one pass
    truth = truth[order]
    rows, position, targets = _first(S, depth)
    named = rows * Y.n_cols + targets
    at = np.searchsorted(truth, named)
    inside = at < len(truth)
    right = np.flatnonzero(inside)[truth[at[inside]] == named[inside]]
    places = np.full(Y.nnz, MISSED, np.int32)
    places[order[at[right]][::-1]] = position[right][::-1]  # backwards: of several places the first one stays
    return places


def _first(S: Sparse, depth: int) -> tuple[Array, Array, Array]:
    """The first `depth` entries of each row: their row, position in the row, and column."""
    lengths = np.minimum(S.row_lengths(), depth)
    rows = np.repeat(np.arange(S.n_rows, dtype=np.int64), lengths)
    position = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return rows, position, S.indices[S.indptr[rows] + position]
