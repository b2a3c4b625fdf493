"""Balanced 2-means on sparse unit rows: one split of a set of labels into two of given sizes.

Malinen and Franti's balance constraint as used by Parabel (Prabhu et al., WWW 2018, section 3.2): spherical 2-means where
the n rows nearest to the left centre, relative to the right one, go left. What differs: it goes on until no row changes
sides (stopping where the mean similarity settles, as Parabel does, costs up to 0.3 of P@5), and only rows that change sides
move the centres, so that a late round reads every row once.
"""

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.stages.kernels.jit import fast_kernel, kernel

_SAME = 0.95  # cosine from which two rows are too much the same to start from


@fast_kernel
def split_in_two(
    indptr: Array,
    indices: Array,
    data: Array,
    n_columns: int,
    n_left: int,
    starts: Array,
    max_iterations: int,
) -> Array:
    """Which rows go left (True): exactly n_left of them.

    `starts` are rows drawn at random. The first is the left centre to start from, and the right one the next that is not much
    the same. (The farthest, or one drawn by distance as k-means++ does, is an odd label, and makes worse clusters.)
    """
    n_rows = len(indptr) - 1
    left, total = np.zeros(n_columns, np.float32), np.zeros(n_columns, np.float32)
    direction = np.zeros(n_columns, np.float32)  # left centre less right centre
    for j in range(np.uint64(indptr[0]), np.uint64(indptr[n_rows])):
        total[indices[j]] += data[j]
    for j in range(np.uint64(indptr[starts[0]]), np.uint64(indptr[starts[0] + 1])):
        direction[indices[j]] += data[j]
    second, least = starts[0], np.inf
    for row in starts[1:]:
        near = 0.0
        for j in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
            near += data[j] * direction[indices[j]]
        if near < least:
            second, least = row, near
        if least < _SAME:
            break
    for j in range(np.uint64(indptr[second]), np.uint64(indptr[second + 1])):
        direction[indices[j]] -= data[j]
    lean, goes_left = np.empty(n_rows, np.float32), np.zeros(n_rows, np.bool_)
    for _ in range(max_iterations):
        for i in range(n_rows):  # how much nearer to the left centre than to the right one
            nearer = np.float32(0.0)
            for j in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                nearer += data[j] * direction[indices[j]]
            lean[i] = nearer
        now = largest(lean, n_left)
        changed = 0
        for i in range(n_rows):
            if now[i] != goes_left[i]:
                changed += 1
                sign = np.float32(1.0) if now[i] else np.float32(-1.0)
                for j in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                    left[indices[j]] += sign * data[j]
        if changed == 0:
            break
        goes_left = now
        norm_left, norm_right = 0.0, 0.0
        for k in range(n_columns):
            norm_left += left[k] * left[k]
            norm_right += (total[k] - left[k]) * (total[k] - left[k])
        scale_left = np.float32(1.0 / np.sqrt(norm_left)) if norm_left > 0.0 else np.float32(0.0)
        scale_right = np.float32(1.0 / np.sqrt(norm_right)) if norm_right > 0.0 else np.float32(0.0)
        for k in range(n_columns):
            direction[k] = left[k] * scale_left - (total[k] - left[k]) * scale_right
    return goes_left


@kernel
def largest(values: Array, n: int) -> Array:
    """Which n values are the largest (True); of equal ones the first."""
    chosen = np.zeros(len(values), np.bool_)
    if n == 0:
        return chosen
    limit = np.partition(values, len(values) - n)[len(values) - n]
    room = n
    for i in range(len(values)):
        if values[i] > limit:
            chosen[i] = True
            room -= 1
    for i in range(len(values)):
        if room > 0 and values[i] == limit:
            chosen[i] = True
            room -= 1
    return chosen
