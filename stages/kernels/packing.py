"""The rows of one cluster, packed for its classifiers: columns renumbered 0..n, and an entry as one word.

A word holds the column in its upper and the value, in fixed point, in its lower half: 4 bytes an entry where 16 bits name the
columns and hold the values, else 8. The rows of a large cluster come from far memory on every pass, so bytes are time.
"""

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.stages.kernels.jit import kernel

_NARROW_COLUMNS = 1 << 16  # what 16 bits can name
_NARROW_SPREAD = 300.0  # largest value over the mean one, up to which 15 bits hold a common value to a percent


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
    if n_columns * 16 < len(lookup):
        columns = np.sort(columns[:n_columns])
    else:  # the terms are seen in order by a look at all of them, for less than a sort
        n_columns = 0
        for column in range(len(lookup)):
            if lookup[column] == 0:
                columns[n_columns] = column
                n_columns += 1
        columns = columns[:n_columns].copy()
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


def pack_entries(indices: Array, data: Array, n_columns: int) -> tuple[Array, float, int]:
    """Columns and values as one word an entry: (words, the value of one unit, bits of a column's place in the word).

    32 bits, a half each, where 16 bits name the columns and hold the values; else 64, again a half each.
    """
    largest = float(np.abs(data).max(initial=0.0)) or 1.0
    spread = largest / (float(np.abs(data).mean(dtype=np.float64)) or 1.0) if len(data) else 1.0
    if n_columns <= _NARROW_COLUMNS and spread <= _NARROW_SPREAD:
        return narrow_entries(indices, data, 32767.0 / largest), largest / 32767.0 / 65536.0, 16
    return wide_entries(indices, data, 2147483647.0 / largest), largest / 2147483647.0, 32


@kernel
def narrow_entries(indices: Array, data: Array, units: float) -> Array:
    """The column in the upper and the value in the lower 16 bits."""
    words = np.empty(len(indices), np.uint32)
    for j in range(len(indices)):
        value = np.int64(np.rint(data[j] * units))
        words[j] = (np.uint32(indices[j]) << np.uint32(16)) | np.uint32(value & 0xFFFF)
    return words


@kernel
def wide_entries(indices: Array, data: Array, units: float) -> Array:
    """The column in the upper and the value in the lower 32 bits."""
    words = np.empty(len(indices), np.uint64)
    for j in range(len(indices)):
        value = np.int64(np.rint(data[j] * units))
        words[j] = (np.uint64(indices[j]) << np.uint64(32)) | np.uint64(value & 0xFFFFFFFF)
    return words


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
