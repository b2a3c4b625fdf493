"""Which terms are kept and how they are numbered: by falling number of documents, ties by their bytes."""

import numpy as np

from xbert.artifacts.arrays import Array


def number_terms(documents: Array, blob: Array, offsets: Array, low: int, high: float, most: int) -> Array:
    """The kept terms in the order of their new numbers: in low..high documents, at most `most` (0 for no limit)."""
    kept = np.flatnonzero((documents >= low) & (documents <= high))
    if 0 < most < len(kept):
        # Every term as frequent as the last one kept stays for now: the bytes decide among those.
        least = -np.partition(-documents[kept], most - 1)[most - 1]
        kept = kept[documents[kept] >= least]
    order = kept[_sorted(documents[kept], blob, offsets[kept], offsets[kept + 1])]
    return order[:most] if most > 0 else order


def _sorted(documents: Array, blob: Array, starts: Array, ends: Array) -> Array:
    """Argsort by (-documents, bytes), eight bytes at a time: each round only looks at what is still tied."""
    order = np.argsort(-documents, kind="stable")
    group = np.cumsum(np.diff(documents[order], prepend=documents[order[:1]]) != 0)
    tied = _not_alone(group)
    depth = 0
    while len(tied):
        terms = order[tied]
        sizes = np.clip(ends[terms] - starts[terms] - depth, 0, 8)
        heads = _eight_bytes(blob, starts[terms] + depth, sizes)
        best = np.lexsort((sizes, heads, group[tied]))
        order[tied] = terms[best]
        sizes, heads, groups = sizes[best], heads[best], group[tied][best]
        changes = (np.diff(groups) != 0) | (np.diff(heads) != 0) | (np.diff(sizes) != 0)
        group = np.cumsum(np.concatenate(([False], changes)))
        # A term that ends within these eight bytes and is still tied has a twin: they stay in order of appearance.
        unsettled = _not_alone(group)
        unsettled = unsettled[sizes[unsettled] == 8]
        tied, group_of_tied = tied[unsettled], group[unsettled]
        group = np.zeros(len(order), np.int64)
        group[tied] = group_of_tied
        depth += 8
    return order


def _not_alone(group: Array) -> Array:
    """Positions whose neighbour is of the same group; groups are contiguous."""
    same = np.diff(group) == 0
    return np.flatnonzero(np.concatenate(([False], same)) | np.concatenate((same, [False])))


def _eight_bytes(blob: Array, starts: Array, sizes: Array) -> Array:
    """Up to eight bytes as one number that sorts like them, zeros for what is missing; uint64."""
    heads = np.zeros(len(starts), np.uint64)
    last = len(blob) - 1
    for j in range(8 if len(blob) else 0):
        byte = np.where(j < sizes, blob[np.minimum(starts + j, last)], 0)
        heads = (heads << np.uint64(8)) | byte.astype(np.uint64)
    return heads
