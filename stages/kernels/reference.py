"""The same classifiers by LIBLINEAR itself: slower, and the measure of our own solver."""

import ctypes
from typing import Any

import numpy as np

from xbert.artifacts.arrays import Array

_L2R_L2LOSS_SVC_DUAL = 1


def solve_children(
    indptr: Array,
    indices: Array,
    data: Array,
    n_columns: int,
    n_sparse: int,
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
    """As `dual.solve_children`, of rows as they are; columns from `n_sparse` on are the dense ones.

    LIBLINEAR has its own limit of passes: `max_iterations` is not used.
    """
    from scipy.sparse import csr_matrix

    X = csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, n_columns))
    columns, values, biases = [], [], np.full(len(positive_ptr) - 1, -1, np.float32)
    least = np.where(np.arange(n_columns) < n_sparse, threshold, 0.0)
    for child in range(len(biases)):
        rows = positives[positive_ptr[child] : positive_ptr[child + 1]]
        w = np.zeros(n_columns, np.float32)
        if len(rows):
            sign = other.copy()
            sign[rows] = 1
            seen = np.flatnonzero(sign)
            w, biases[child] = solve(X[seen], sign[seen], cost_positive, cost_negative, tolerance, int(seeds[child]))
        kept = np.flatnonzero(np.abs(w) > least)
        columns.append(kept.astype(np.int32))
        values.append(w[kept].astype(np.float32))
    child_ptr = np.r_[0, np.cumsum([len(each) for each in columns])]
    return child_ptr, np.concatenate(columns), np.concatenate(values), biases


def solve(X: Any, sign: Array, cost_positive: float, cost_negative: float, tolerance: float, seed: int) -> tuple[Array, float]:
    """One classifier: (weights, bias weight)."""
    from liblinear import liblinear, liblinearutil
    from scipy.sparse import csr_matrix

    negative = f"-w-1 {cost_negative} " if (sign < 0).any() else ""  # it warns of a weight for a class it does not meet
    options = f"-s {_L2R_L2LOSS_SVC_DUAL} -c 1 -w1 {cost_positive} {negative}-e {tolerance} -B 1 -q"
    ctypes.CDLL(None).srand(seed % 2**31)
    model = liblinearutil.train(liblinear.problem(sign.tolist(), csr_matrix(X), 1), liblinear.parameter(options))
    # The first class LIBLINEAR met is its positive one.
    direction = 1.0 if model.label[0] > 0 else -1.0
    weights = direction * np.ctypeslib.as_array(model.w, (model.nr_feature + 1,))
    return weights[:-1].copy(), float(weights[-1])
