"""Sums of sparse rows: label vectors from the documents that have the label."""

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.stages.kernels.jit import kernel


@kernel
def unit_sums(
    group_ptr: Array, members: Array, indptr: Array, indices: Array, data: Array, n_columns: int
) -> tuple[Array, Array, Array]:
    """For every group of rows their sum, scaled to unit length: (entries of each group, columns, values).

    A group's columns stand in the order in which its rows name them.
    """
    n_groups, room = len(group_ptr) - 1, 0
    for group in range(n_groups):
        entries = 0
        for k in range(group_ptr[group], group_ptr[group + 1]):
            entries += indptr[members[k] + 1] - indptr[members[k]]
        room += min(entries, n_columns)
    lengths, columns, values = np.zeros(n_groups, np.int64), np.empty(room, np.int32), np.empty(room, np.float32)
    total, seen, at = np.zeros(n_columns, np.float32), np.zeros(n_columns, np.bool_), 0
    for group in range(n_groups):
        first = at
        for k in range(group_ptr[group], group_ptr[group + 1]):
            for j in range(indptr[members[k]], indptr[members[k] + 1]):
                column = indices[j]
                total[column] += data[j]
                if not seen[column]:
                    seen[column] = True
                    columns[at] = column
                    at += 1
        square = 0.0
        for j in range(first, at):
            square += np.float64(total[columns[j]]) ** 2
        scale = 1.0 / np.sqrt(square) if square > 0.0 else 0.0
        for j in range(first, at):
            values[j] = total[columns[j]] * scale
            total[columns[j]], seen[columns[j]] = 0.0, False
        lengths[group] = at - first
    return lengths, columns[:at].copy(), values[:at].copy()
