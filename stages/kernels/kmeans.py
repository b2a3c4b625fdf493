"""Balanced 2-means on sparse unit rows: one split of a set of labels into two of given sizes.

Malinen and Franti's balance constraint as used by Parabel (Prabhu et al., WWW 2018, section 3.2): spherical 2-means where
the n rows nearest to the left centre, relative to the right one, go left. Iterated until the mean similarity settles.
"""

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.stages.kernels.jit import kernel


@kernel
def split_in_two(
    indptr: Array,
    indices: Array,
    data: Array,
    n_columns: int,
    n_left: int,
    first: int,
    chance: float,
    max_iterations: int,
) -> Array:
    """Which rows go left (True): exactly n_left of them.

    The centres start as k-means++ does: the row `first`, and a row drawn by how far it is from it; `chance` in [0,1) draws.
    """
    n_rows = len(indptr) - 1
    left, right = np.zeros(n_columns, np.float32), np.zeros(n_columns, np.float32)
    for j in range(np.uint64(indptr[first]), np.uint64(indptr[first + 1])):
        left[indices[j]] += data[j]
    reach = np.empty(n_rows, np.float64)
    total = 0.0
    for i in range(n_rows):
        near = 0.0
        for j in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            near += data[j] * left[indices[j]]
        total += max(1.0 - near, 0.0)
        reach[i] = total
    second = np.int64(np.searchsorted(reach, chance * total, side="right"))
    if second == n_rows:  # rounding, or every row the same
        second -= 1
    for j in range(np.uint64(indptr[second]), np.uint64(indptr[second + 1])):
        right[indices[j]] += data[j]
    lean, goes_left = np.empty(n_rows, np.float32), np.zeros(n_rows, np.bool_)
    before = -np.inf
    for _ in range(max_iterations):
        for i in range(n_rows):  # how much nearer to the left centre than to the right one
            nearer = 0.0
            for j in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                nearer += data[j] * (left[indices[j]] - right[indices[j]])
            lean[i] = nearer
        order = np.argsort(-lean, kind="mergesort")
        goes_left[:] = False
        for k in range(n_left):
            goes_left[order[k]] = True
        similarity = 0.0
        for i in range(n_rows):
            similarity += lean[i] if goes_left[i] else -lean[i]
        similarity /= n_rows
        if similarity <= before + 1e-4:
            break
        before = similarity
        left[:], right[:] = 0.0, 0.0
        for i in range(n_rows):
            for j in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                if goes_left[i]:
                    left[indices[j]] += data[j]
                else:
                    right[indices[j]] += data[j]
        for centre in (left, right):
            norm = 0.0
            for k in range(n_columns):
                norm += centre[k] * centre[k]
            if norm > 0.0:
                scale = np.float32(1.0 / np.sqrt(norm))
                for k in range(n_columns):
                    centre[k] *= scale
    return goes_left
