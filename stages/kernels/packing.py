"""The rows of one cluster, packed for its classifiers: columns renumbered 0..n, and an entry as one word.

A word holds the column in its upper and the value, in fixed point, in its lower half: 4 bytes an entry where 16 bits name the
columns and hold the values, else 8. The rows of a large cluster come from far memory on every pass, so bytes are time.
Columns that every row has (`dense.Vectors`) need no number: they are a matrix of 16 bits beside the words.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.stages.kernels.dense import Vectors, of_unit_length
from xbert.stages.kernels.jit import kernel

_NARROW_COLUMNS = 1 << 16  # what 16 bits can name
_NARROW_SPREAD = 300.0  # largest value over the mean one, up to which 15 bits hold a common value to a percent
_LARGEST = 32767  # what 16 bits can hold
_BATCH = 4096  # vectors packed at a time


@dataclass(frozen=True, eq=False)
class Packed:
    """Rows as words: what `dual.solve` reads."""

    columns: Array  # the sparse columns used, sorted: local column -> column; the dense ones follow
    indptr: Array
    words: Array  # uint32 or uint64
    unit: float  # the value of one unit of a word's lower half, read as the upper half of 32 bits where it is narrow
    bits: int  # of a half
    squares: Array  # |x_i|^2 + 1; the 1 is the bias feature
    dense: Array | None  # rows x width, int16, where there are dense columns
    dense_unit: float  # the value of one unit of `dense`

    def arguments(self) -> tuple[Any, ...]:
        """The rows as `dual.solve` takes them."""
        return self.indptr, self.words, self.unit, self.bits, self.squares, self.dense, self.dense_unit


def pack(indptr: Array, indices: Array, data: Array, rows: Array, lookup: Array, vectors: Vectors | None = None) -> Packed:
    """Gather rows as words. `lookup` is a scratch array of one int32 a term, all -1, and is left so."""
    columns = used_columns(indptr, indices, rows, lookup)
    local_indptr, squares, largest, mean = row_facts(indptr, data, rows)
    largest = largest or 1.0
    narrow = len(columns) <= _NARROW_COLUMNS and largest <= _NARROW_SPREAD * mean
    bits, most = (16, 32767.0) if narrow else (32, 2147483647.0)
    words = np.empty(local_indptr[-1], np.uint32 if narrow else np.uint64)
    fill_words(indptr, indices, data, rows, lookup, words, bits, most / largest)
    unit = largest / most / 2 ** (32 - bits)
    lookup[columns] = -1
    if vectors is None:
        return Packed(columns, local_indptr, words, unit, bits, squares, None, 0.0)
    dense, dense_unit = pack_dense(vectors, rows), vectors.scale / _LARGEST
    squares += np.float32(vectors.scale**2) * dense.any(axis=1)
    return Packed(columns, local_indptr, words, unit, bits, squares, dense, dense_unit)


def pack_dense(vectors: Vectors, rows: Array) -> Array:
    """Gather vectors of unit length, in fixed point: their values are at most 1, so every cluster has the same unit."""
    dense = np.empty((len(rows), vectors.width), np.int16)
    for start in range(0, len(rows), _BATCH):
        part = of_unit_length(vectors.rows[rows[start : start + _BATCH]])
        dense[start : start + _BATCH] = np.rint(part * np.float32(_LARGEST))
    return dense


@kernel
def used_columns(indptr: Array, indices: Array, rows: Array, lookup: Array) -> Array:
    """The columns of those rows, sorted; `lookup` then says for each where it stands."""
    n_entries = 0
    for row in rows:
        n_entries += indptr[row + 1] - indptr[row]
    columns = np.empty(min(n_entries, len(lookup)), np.int32)
    n_columns = 0
    for row in rows:
        for j in range(indptr[row], indptr[row + 1]):
            if lookup[indices[j]] < 0:
                lookup[indices[j]] = 0
                columns[n_columns] = indices[j]
                n_columns += 1
    if n_columns * 16 < len(lookup):
        columns = np.sort(columns[:n_columns])
    else:  # a look at all terms finds them in order, for less than a sort
        n_columns = 0
        for column in range(len(lookup)):
            if lookup[column] == 0:
                columns[n_columns] = column
                n_columns += 1
        columns = columns[:n_columns].copy()
    for k in range(n_columns):
        lookup[columns[k]] = k
    return columns


@kernel
def row_facts(indptr: Array, data: Array, rows: Array) -> tuple[Array, Array, float, float]:
    """(indptr of the gathered rows, |x_i|^2 + 1 of each, the largest value, the mean one), both of the size alone."""
    local_indptr, squares = np.zeros(len(rows) + 1, np.int64), np.empty(len(rows), np.float32)
    largest, total = 0.0, 0.0
    for i in range(len(rows)):
        first, last = indptr[rows[i]], indptr[rows[i] + 1]
        local_indptr[i + 1] = local_indptr[i] + last - first
        square = 1.0
        for j in range(first, last):
            size = abs(data[j])
            square += size * size
            largest = max(largest, size)
            total += size
        squares[i] = square
    return local_indptr, squares, largest, total / max(local_indptr[len(rows)], 1)


@kernel
def fill_words(
    indptr: Array, indices: Array, data: Array, rows: Array, lookup: Array, words: Array, bits: int, units: float
) -> None:
    """The column in the upper and the value in the lower half of a word of twice `bits`."""
    half, at = (np.int64(1) << bits) - 1, 0
    for row in rows:
        for j in range(indptr[row], indptr[row + 1]):
            value = np.int64(np.rint(data[j] * units)) & half
            words[at] = (np.uint64(lookup[indices[j]]) << np.uint64(bits)) | np.uint64(value)
            at += 1


def gather(indptr: Array, indices: Array, data: Array, rows: Array, lookup: Array) -> tuple[Array, Array, Array, Array]:
    """Gather rows as they are: (columns used, sorted; indptr; local indices, unsigned; data)."""
    columns = used_columns(indptr, indices, rows, lookup)
    gathered = gather_rows(indptr, indices, data, rows, lookup)
    lookup[columns] = -1
    return columns, *gathered


@kernel
def gather_rows(indptr: Array, indices: Array, data: Array, rows: Array, lookup: Array) -> tuple[Array, Array, Array]:
    """(indptr, local indices, data) of those rows, once `lookup` numbers their columns."""
    local_indptr = np.zeros(len(rows) + 1, np.int64)
    for i in range(len(rows)):
        local_indptr[i + 1] = local_indptr[i] + indptr[rows[i] + 1] - indptr[rows[i]]
    # Unsigned, so that no kernel has to ask whether an index counts from the end.
    local_indices = np.empty(local_indptr[len(rows)], np.uint32)
    local_data = np.empty(local_indptr[len(rows)], np.float32)
    at = 0
    for row in rows:
        for j in range(indptr[row], indptr[row + 1]):
            local_indices[at], local_data[at] = lookup[indices[j]], data[j]
            at += 1
    return local_indptr, local_indices, local_data
