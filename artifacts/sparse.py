"""Compressed sparse rows with one set of types everywhere, so that every kernel is compiled once and large ones stay mapped.

scipy's own class widens or narrows the indices as it sees fit, which copies mapped arrays.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from xbert.artifacts.arrays import Array, load_array, save_array
from xbert.artifacts.errors import ArtifactError


@dataclass(frozen=True, eq=False)
class Sparse:
    """Rows of (column, value): indptr int64, indices int32, data float32; `data` is None for a 0/1 matrix."""

    indptr: Array
    indices: Array
    data: Array | None
    n_cols: int

    def __post_init__(self) -> None:
        if self.indptr.dtype != np.int64 or self.indices.dtype != np.int32:
            raise TypeError(f"indptr is {self.indptr.dtype} and indices {self.indices.dtype}, not int64 and int32")
        if self.data is not None and self.data.dtype != np.float32:
            raise TypeError(f"data is {self.data.dtype}, not float32")
        if len(self.indptr) == 0 or self.indptr[0] != 0 or self.indptr[-1] != len(self.indices):
            raise ArtifactError("a sparse matrix's row pointers do not fit its entries: the artifact is damaged")
        if self.data is not None and len(self.data) != len(self.indices):
            raise ArtifactError("a sparse matrix has another number of values than of columns: the artifact is damaged")

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.indptr) - 1

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.n_rows, self.n_cols

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return len(self.indices)

    def values(self) -> Array:
        """The entries' values, ones for a 0/1 matrix."""
        return np.ones(self.nnz, np.float32) if self.data is None else self.data

    def row(self, i: int) -> Array:
        """The columns of row i."""
        return self.indices[self.indptr[i] : self.indptr[i + 1]]

    def row_lengths(self) -> Array:
        """Entries per row, int64."""
        return np.diff(self.indptr)

    def column_counts(self) -> Array:
        """Entries per column, int64."""
        return np.bincount(self.indices, minlength=self.n_cols)

    def slice(self, start: int, stop: int) -> "Sparse":
        """Rows start..stop without copying the entries."""
        first, last = self.indptr[start], self.indptr[stop]
        data = None if self.data is None else self.data[first:last]
        return Sparse(self.indptr[start : stop + 1] - first, self.indices[first:last], data, self.n_cols)

    def take(self, rows: Array) -> "Sparse":
        """Those rows, in that order, copied."""
        lengths = self.row_lengths()[rows]
        indptr = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(lengths, out=indptr[1:])
        where = np.arange(indptr[-1]) + np.repeat(self.indptr[:-1][rows] - indptr[:-1], lengths)
        return Sparse(indptr, self.indices[where], None if self.data is None else self.data[where], self.n_cols)

    def transpose(self) -> "Sparse":
        """Columns as rows; within a row the entries stay in row order."""
        return Sparse.of_scipy(self.to_scipy().T.tocsr(), binary=self.data is None)

    def to_scipy(self) -> Any:
        """The same as a scipy csr_array."""
        from scipy.sparse import csr_array

        return csr_array((self.values(), self.indices, self.indptr), shape=self.shape)

    @classmethod
    def of_scipy(cls, matrix: Any, binary: bool = False) -> Self:
        """From any scipy sparse matrix; with `binary`, the values are dropped."""
        csr = matrix.tocsr()
        csr.sort_indices()
        data = None if binary else np.ascontiguousarray(csr.data, np.float32)
        return cls(csr.indptr.astype(np.int64), csr.indices.astype(np.int32), data, csr.shape[1])

    @classmethod
    def of_dense(cls, rows: Array) -> Self:
        """Every number of every row, but for rows of zeros, which stay empty."""
        filled = rows.any(axis=1)
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(filled * np.int64(rows.shape[1]))])
        indices = np.tile(np.arange(rows.shape[1], dtype=np.int32), int(filled.sum()))
        return cls(indptr, indices, rows[filled].reshape(-1).astype(np.float32), rows.shape[1])

    @classmethod
    def of_rows(cls, rows: list[list[int]], n_cols: int) -> Self:
        """A 0/1 matrix from lists of columns, which are sorted."""
        indptr = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(row) for row in rows], out=indptr[1:])
        indices = np.array([column for row in rows for column in sorted(row)], np.int32)
        return cls(indptr, indices, None, n_cols)

    def check(self, what: str) -> None:
        """Look at every entry: pointers that never fall, columns in range, values finite."""
        if (np.diff(self.indptr) < 0).any():
            raise ArtifactError(f"{what}: row pointers fall; the artifact is damaged")
        if self.nnz and (self.indices.min() < 0 or self.indices.max() >= self.n_cols):
            raise ArtifactError(f"{what}: a column lies outside 0..{self.n_cols - 1}; the artifact is damaged")
        if self.data is not None and not np.isfinite(self.data).all():
            raise ArtifactError(f"{what}: a value is not a finite number; the artifact is damaged")

    def save(self, folder: Path, name: str) -> None:
        """Write `name.indptr.npy`, `name.indices.npy` and, unless 0/1, `name.data.npy`."""
        save_array(folder / f"{name}.indptr.npy", self.indptr)
        save_array(folder / f"{name}.indices.npy", self.indices)
        if self.data is not None:
            save_array(folder / f"{name}.data.npy", self.data)

    @classmethod
    def load(cls, folder: Path, name: str, n_cols: int, binary: bool = False) -> Self:
        """Map what `save` wrote."""
        indptr = load_array(folder / f"{name}.indptr.npy", np.int64)
        indices = load_array(folder / f"{name}.indices.npy", np.int32)
        data = None if binary else load_array(folder / f"{name}.data.npy", np.float32)
        return cls(indptr, indices, data, n_cols)
