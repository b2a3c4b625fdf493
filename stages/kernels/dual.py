"""L2-regularised squared-hinge classifiers by dual coordinate descent, for all children of one cluster at once.

    min_w  1/2 |w|^2 + sum_i C_i max(0, 1 - y_i w.x_i)^2        C_i = cost_positive or cost_negative

Hsieh et al., "A Dual Coordinate Descent Method for Large-scale Linear SVM" (ICML 2008), algorithm 3 with shrinking, as in
LIBLINEAR's solver 1. What differs: the cluster's rows are gathered once and their columns renumbered 0..n, so that every
child's weights are a short dense vector; weights are float32; the bias is one more regularised weight of feature 1.
"""

from typing import Any

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.stages.kernels.jit import fast_kernel, kernel


@kernel
def pack_rows(indptr: Array, indices: Array, data: Array, rows: Array, lookup: Array) -> tuple[Array, Array, Array, Array]:
    """Gather rows and renumber their columns: (columns used, sorted; indptr; local indices; data).

    `lookup` is a scratch array of one int32 a term, all -1, and is left so.
    """
    n_rows = len(rows)
    local_indptr = np.zeros(n_rows + 1, np.int64)
    for i in range(n_rows):
        local_indptr[i + 1] = local_indptr[i] + indptr[rows[i] + 1] - indptr[rows[i]]
    nnz = local_indptr[n_rows]
    columns = np.empty(min(nnz, len(lookup)), np.int32)
    n_columns = 0
    for i in range(n_rows):
        for j in range(indptr[rows[i]], indptr[rows[i] + 1]):
            column = indices[j]
            if lookup[column] < 0:
                lookup[column] = 0
                columns[n_columns] = column
                n_columns += 1
    columns = np.sort(columns[:n_columns])
    for k in range(n_columns):
        lookup[columns[k]] = k
    # Unsigned, so that no kernel has to ask whether an index counts from the end.
    local_indices, local_data = np.empty(nnz, np.uint32), np.empty(nnz, np.float32)
    at = 0
    for i in range(n_rows):
        for j in range(indptr[rows[i]], indptr[rows[i] + 1]):
            local_indices[at] = lookup[indices[j]]
            local_data[at] = data[j]
            at += 1
    for k in range(n_columns):
        lookup[columns[k]] = -1
    return columns, local_indptr, local_indices, local_data


@fast_kernel
def solve(
    indptr: Array,
    indices: Array,
    data: Array,
    squares: Array,
    sign: Array,
    cost_positive: float,
    cost_negative: float,
    tolerance: float,
    max_iterations: int,
    seed: int,
    w: Array,
) -> tuple[Any, int]:
    """One classifier: fills `w` (zeroed, one weight a local column) and returns (bias weight, passes over the rows).

    `squares` holds |x_i|^2 + 1 (the 1 is the bias feature), `sign` the +1 / -1 of each row, 0 for a row left out.
    """
    alpha = np.zeros(len(squares), np.float32)
    order = np.flatnonzero(sign).astype(np.int32)
    n_rows = len(order)
    shift_positive, shift_negative = np.float32(0.5 / cost_positive), np.float32(0.5 / cost_negative)
    state = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x2545F4914F6CDD1D)
    bias = np.float32(0.0)
    active, iteration = n_rows, 0
    settled = 0  # passes since all rows were looked at
    highest_before = np.inf
    while iteration < max_iterations:
        highest, lowest = -np.inf, np.inf
        for i in range(active):  # a fresh order for every pass
            state ^= state << np.uint64(13)
            state ^= state >> np.uint64(7)
            state ^= state << np.uint64(17)
            other = i + np.int64((state >> np.uint64(33)) % np.uint64(active - i))
            order[i], order[other] = order[other], order[i]
        s = 0
        while s < active:
            i = order[s]
            y = sign[i]
            shift = shift_positive if y > 0 else shift_negative
            first, last = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
            dot = bias
            for j in range(first, last):
                dot += w[indices[j]] * data[j]
            gradient = y * dot - np.float32(1.0) + alpha[i] * shift
            if alpha[i] == 0:
                # A row on its right side is left out until the others have settled; then all are looked at once more.
                # LIBLINEAR waits until it is farther right than any row is wrong: a third more visits for the same result.
                if gradient > highest_before or (settled > 0 and gradient > 0):
                    active -= 1
                    order[s], order[active] = order[active], order[s]
                    continue
                projected = min(gradient, np.float32(0.0))
            else:
                projected = gradient
            highest, lowest = max(highest, projected), min(lowest, projected)
            if abs(projected) > 1e-12:
                old = alpha[i]
                alpha[i] = max(old - gradient / (squares[i] + shift), np.float32(0.0))
                step = (alpha[i] - old) * y
                bias += step
                for j in range(first, last):
                    w[indices[j]] += step * data[j]
            s += 1
        iteration += 1
        if highest - lowest <= tolerance:
            if active == n_rows:
                break
            active, highest_before, settled = n_rows, np.inf, 0
            continue
        settled += 1
        highest_before = highest if highest > 0 else np.inf
    return bias, iteration


@kernel
def row_squares(indptr: Array, data: Array) -> Array:
    """|x_i|^2 + 1 for every row; the 1 is the bias feature."""
    squares = np.empty(len(indptr) - 1, np.float32)
    for i in range(len(squares)):
        total = 1.0
        for j in range(indptr[i], indptr[i + 1]):
            total += data[j] * data[j]
        squares[i] = total
    return squares


@kernel
def solve_cluster(
    indptr: Array,
    indices: Array,
    data: Array,
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
    of, gets no weights and a bias of -1: the margin of a certain no.
    """
    n_children = len(positive_ptr) - 1
    squares = row_squares(indptr, data)
    sign, w = other.copy(), np.zeros(n_columns, np.float32)
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
                indptr, indices, data, squares, sign, cost_positive, cost_negative, tolerance, max_iterations,
                seeds[child], w,
            )  # fmt: skip
            for p in range(first, last):
                sign[positives[p]] = other[positives[p]]
            for k in range(n_columns):
                if abs(w[k]) > threshold:
                    if at == len(columns):
                        columns = np.concatenate((columns, np.empty(at, np.int32)))
                        values = np.concatenate((values, np.empty(at, np.float32)))
                    columns[at], values[at] = k, w[k]
                    at += 1
        child_ptr[child + 1] = at
    return child_ptr, columns[:at].copy(), values[:at].copy(), biases
