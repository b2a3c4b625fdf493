"""Several score lists per document made one. A label that a model did not list has score 0, or last place, with it."""

from collections.abc import Sequence

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.artifacts.kinds.scores import Scores
from xbert.artifacts.sparse import Sparse

AVERAGE, WEIGHTED, RANK_AVERAGE, ROUND_ROBIN = "average", "weighted", "rank-average", "round-robin"
WAYS = (AVERAGE, WEIGHTED, RANK_AVERAGE, ROUND_ROBIN)


def combine(members: Sequence[Scores], way: str, weights: Sequence[float], top: int, places: int) -> Scores:
    """The `top` best labels of each document by the members together; `places` is how many a member lists at most.

    average, weighted     the mean of the scores, equal weights for `average`
    rank-average          the mean of 1 - place/places, so that members with other scales of score count alike
    round-robin           the members' first labels in turn, then their second ones, each label once

    >>> a = Scores.of_top(np.array([[0, 1]]), np.array([[0.9, 0.2]]), 3)
    >>> b = Scores.of_top(np.array([[2, 1]]), np.array([[0.6, 0.5]]), 3)
    >>> combine([a, b], "average", [1, 1], 3, 2).top(3)[0].tolist()
    [[0, 1, 2]]
    """
    documents, labels, values = _entries(members, way, weights, places)
    keys = documents * members[0].n_targets + labels
    unique, inverse = np.unique(keys, return_inverse=True)
    total: Array
    if way == ROUND_ROBIN:
        total = np.zeros(len(unique))
        np.maximum.at(total, inverse, values)
    else:
        total = np.bincount(inverse, weights=values, minlength=len(unique))
    return _sorted_top(unique, np.clip(total, 0, 1), members[0], top)


def blend(members: Sequence[Scores], powers: Sequence[float]) -> Scores:
    """The product of the members' scores, each raised to its power; every target that any member lists, best first.

    A target that a member did not list scores no more with it than its last one: it counts as that. A member that lists
    nothing of a document has no say in it.

    >>> a = Scores.of_top(np.array([[0, 1]]), np.array([[0.9, 0.4]]), 3)
    >>> b = Scores.of_top(np.array([[2, 1]]), np.array([[0.6, 0.5]]), 3)
    >>> targets, scores = blend([a, b], [1, 1]).top(3)
    >>> targets.tolist(), scores.round(2).tolist()
    ([[0, 2, 1]], [[0.45, 0.24, 0.2]])
    """
    keys, above, start = [], [], np.zeros(members[0].n_docs)
    for member, power in zip(members, powers, strict=True):
        S, lengths = member.S, member.S.row_lengths()
        logs = power * np.log(np.maximum(S.values().astype(np.float64), np.finfo(np.float32).tiny))
        last = np.zeros(S.n_rows)
        last[lengths > 0] = logs[S.indptr[1:][lengths > 0] - 1]
        documents = np.repeat(np.arange(S.n_rows, dtype=np.int64), lengths)
        keys.append(documents * S.n_cols + S.indices)
        above.append(logs - last[documents])
        start += last
    unique, inverse = np.unique(np.concatenate(keys), return_inverse=True)
    total = np.bincount(inverse, np.concatenate(above), len(unique)) + start[unique // members[0].n_targets]
    return _sorted_top(unique, np.exp(np.minimum(total, 0)), members[0], members[0].n_targets)


def _entries(members: Sequence[Scores], way: str, weights: Sequence[float], places: int) -> tuple[Array, Array, Array]:
    """(document, label, contribution) of every member's every entry."""
    shares = np.asarray(weights, float) / sum(weights) if way == WEIGHTED else np.full(len(members), 1 / len(members))
    documents, labels, values = [], [], []
    for number, (member, share) in enumerate(zip(members, shares, strict=True)):
        lengths = member.S.row_lengths()
        place = np.arange(member.S.nnz) - np.repeat(member.S.indptr[:-1], lengths)
        documents.append(np.repeat(np.arange(member.n_docs, dtype=np.int64), lengths))
        labels.append(member.S.indices)
        if way == ROUND_ROBIN:
            values.append(1 - (place * len(members) + number) / (places * len(members)))
        elif way == RANK_AVERAGE:
            values.append((1 - place / places) * share)
        else:
            values.append(member.S.values() * share)
    return np.concatenate(documents), np.concatenate(labels), np.concatenate(values)


def _sorted_top(keys: Array, totals: Array, like: Scores, top: int) -> Scores:
    documents, labels = keys // like.n_targets, keys % like.n_targets
    order = np.lexsort((labels, -totals, documents))
    documents, labels, totals = documents[order], labels[order], totals[order]
    starts = np.searchsorted(documents, np.arange(like.n_docs + 1))
    kept = np.arange(len(order)) - starts[documents] < top
    indptr = np.r_[np.int64(0), np.cumsum(np.bincount(documents[kept], minlength=like.n_docs))]
    S = Sparse(indptr, labels[kept].astype(np.int32), totals[kept].astype(np.float32), like.n_targets)
    return Scores(S)
