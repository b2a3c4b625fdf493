"""L2-regularised squared-hinge classifiers by dual coordinate descent, for all children of one cluster at once.

    min_w  1/2 |w|^2 + sum_i C_i max(0, 1 - y_i w.x_i)^2        C_i = cost_positive or cost_negative

Hsieh et al., "A Dual Coordinate Descent Method for Large-scale Linear SVM" (ICML 2008), algorithm 3 with shrinking, as in
LIBLINEAR's solver 1. What differs: the cluster's rows are gathered once and their columns renumbered 0..n, so that every
child's weights are a short dense vector; an entry of a row is one word, its column and its value in fixed point, 4 bytes
where LIBLINEAR reads 16, as the rows of a large cluster come from far memory; weights are float32; the bias is one more
regularised weight of feature 1; rows on their right side are left out at once, and rows are shuffled within windows.
"""

from typing import Any

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.stages.kernels.jit import fast_kernel, kernel

# A pass takes the rows in a fresh order, but a window of neighbours at a time, the windows in a fresh order too: where the rows
# do not fit the cache, a far row costs more to fetch than to use.
_WINDOW = 1 << 15  # entries of a window's rows, so that they fit the cache
_FEWEST = 64  # rows of a window
_PATIENCE = 4  # passes after which all rows are looked at again, settled or not: the rows left out may be the wrong ones


@kernel
def shuffle(order: Array, start: int, stop: int, state: Any) -> Any:
    """A fresh order of order[start:stop]; returns the random state after it."""
    for i in range(start, stop):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        other = i + np.int64(((state >> np.uint64(32)) * np.uint64(stop - i)) >> np.uint64(32))
        order[i], order[other] = order[other], order[i]
    return state


@fast_kernel
def dense_dot(w: Array, dense: Array, i: int) -> Any:
    """The product of w and row i."""
    dot, row = np.float32(0.0), dense[i]
    for k in range(len(row)):
        dot += w[k] * np.float32(row[k])
    return dot


@fast_kernel
def dense_add(w: Array, dense: Array, i: int, factor: Any) -> None:
    """w += factor * row i."""
    row = dense[i]
    for k in range(len(row)):
        w[k] += factor * np.float32(row[k])


@fast_kernel
def solve(
    indptr: Array,
    words: Array,
    unit: float,
    bits: int,
    squares: Array,
    dense: Array | None,
    dense_unit: float,
    sign: Array,
    cost_positive: float,
    cost_negative: float,
    tolerance: float,
    max_iterations: int,
    seed: int,
    w: Array,
) -> tuple[Any, int]:
    """One classifier: fills `w` (zeroed, one weight a local column) and returns (bias weight, passes over the rows).

    The rows are as `packing.pack` gives them; `sign` is the +1 / -1 of each row, 0 for a row left out. The weights of the
    dense columns are the last ones of `w`. Without dense columns numba compiles none of what is said of them.
    """
    place, lift, one, dense_ratio = np.uint64(bits), np.uint64(32 - bits), np.float32(unit), np.float32(dense_unit / unit)
    width = 0 if dense is None else dense.shape[1]
    w_dense = w[len(w) - width :]
    alpha, inverse = np.zeros(len(squares), np.float32), np.empty(len(squares), np.float32)
    rows = np.flatnonzero(sign).astype(np.int32)
    n_rows = len(rows)
    shift_positive, shift_negative = np.float32(0.5 / cost_positive), np.float32(0.5 / cost_negative)
    for i in rows:
        inverse[i] = np.float32(1.0) / (squares[i] + (shift_positive if sign[i] > 0 else shift_negative))
    state = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x2545F4914F6CDD1D)
    bias = np.float32(0.0)
    window = max(_WINDOW * n_rows // max(len(words) + n_rows * width // 2, 1), _FEWEST)
    order, following, windows = rows.copy(), np.empty(n_rows, np.int32), np.arange(n_rows // window + 1)
    active, iteration, passes = n_rows, 0, 0  # passes: since all rows were looked at
    while iteration < max_iterations:
        highest, lowest = np.float32(0.0), np.float32(0.0)
        whole, kept = active == n_rows, 0
        n_windows = (active + window - 1) // window
        for k in range(n_windows):
            windows[k] = k
        state = shuffle(windows, 0, n_windows, state)
        for k in range(n_windows):
            start, stop = windows[k] * window, min((windows[k] + 1) * window, active)
            state = shuffle(order, start, stop, state)
            for s in range(start, stop):
                i = order[s]
                y = sign[i]
                first, last = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
                dot = np.float32(0.0)
                for j in range(first, last):
                    word = np.uint64(words[j])
                    dot += w[word >> place] * np.float32(np.int32(np.uint32(word << lift)))
                if dense is not None:
                    dot += dense_dot(w_dense, dense, i) * dense_ratio
                old = alpha[i]
                shift = shift_positive if y > 0 else shift_negative
                gradient = y * (bias + dot * one) - np.float32(1.0) + old * shift
                # A row on its right side is left out until the others have settled; then all are looked at once more.
                # LIBLINEAR waits until it is farther right than any row was wrong: more visits for the same result.
                if old == 0 and gradient >= 0:
                    continue
                following[kept] = i
                kept += 1
                highest, lowest = max(highest, gradient), min(lowest, gradient)
                alpha[i] = max(old - gradient * inverse[i], np.float32(0.0))
                step = (alpha[i] - old) * y
                bias += step
                step *= one
                if dense is not None:
                    dense_add(w_dense, dense, i, step * dense_ratio)
                for j in range(first, last):
                    word = np.uint64(words[j])
                    w[word >> place] += step * np.float32(np.int32(np.uint32(word << lift)))
        order, following = following, order
        active = kept
        iteration += 1
        passes += 1
        settled = highest - lowest <= tolerance
        if settled and whole:
            break
        if settled or passes == _PATIENCE:
            order[:] = rows
            active, passes = n_rows, 0
    return bias, iteration


@kernel
def solve_children(
    indptr: Array,
    words: Array,
    unit: float,
    bits: int,
    squares: Array,
    dense: Array | None,
    dense_unit: float,
    n_columns: int,
    positive_ptr: Array,
    positives: Array,
    other: Array,
    cost_positive: float,
    cost_negative: float,
    tolerance: float,
    max_iterations: int,
    threshold: float,
    seeds: Array,
) -> tuple[Array, Array, Array, Array]:
    """A classifier for each child over the same packed rows.

    `positives[positive_ptr[c]:positive_ptr[c + 1]]` are the rows of child c; `other` says what a row is for the children it
    is no positive of: -1 a negative, 0 left out. Returns the weights above `threshold` as
    (child_ptr, local columns, values) and the bias of each child. A child without positives, which nothing can be learnt
    of, gets no weights and a bias of -1: the margin of a certain no. Local columns from `n_columns` on are the dense ones:
    their weights are small but many, share their rows with all other children, and are all kept.
    """
    n_children = len(positive_ptr) - 1
    sign, w = other.copy(), np.zeros(n_columns + (0 if dense is None else dense.shape[1]), np.float32)
    biases = np.full(n_children, np.float32(-1.0))
    child_ptr = np.zeros(n_children + 1, np.int64)
    columns, values = np.empty(1024, np.int32), np.empty(1024, np.float32)
    at = 0
    for child in range(n_children):
        first, last = positive_ptr[child], positive_ptr[child + 1]
        if last > first:
            for p in range(first, last):
                sign[positives[p]] = 1.0
            w[:] = 0.0
            biases[child], _ = solve(
                indptr, words, unit, bits, squares, dense, dense_unit, sign, cost_positive, cost_negative, tolerance,
                max_iterations, seeds[child], w,
            )  # fmt: skip
            for p in range(first, last):
                sign[positives[p]] = other[positives[p]]
            for k in range(len(w)):
                if abs(w[k]) > (threshold if k < n_columns else 0.0):
                    if at == len(columns):
                        columns = np.concatenate((columns, np.empty(at, np.int32)))
                        values = np.concatenate((values, np.empty(at, np.float32)))
                    columns[at], values[at] = k, w[k]
                    at += 1
        child_ptr[child + 1] = at
    return child_ptr, columns[:at].copy(), values[:at].copy(), biases
