"""Rows of features on their way to disk, under the names the kind keeps them by."""

from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from xbert.artifacts.arrays import Array, ArrayWriter
from xbert.artifacts.sparse import Sparse


class RowsWriter:
    """A sparse matrix that grows on disk, block of rows by block of rows."""

    def __init__(self, folder: Path, split: str, n_terms: int) -> None:
        self._n_terms = n_terms
        self._indptr = ArrayWriter(folder / f"{split}.X.indptr.npy", np.int64)
        self._indices = ArrayWriter(folder / f"{split}.X.indices.npy", np.int32)
        self._data = ArrayWriter(folder / f"{split}.X.data.npy", np.float32)
        self._indptr.append(np.zeros(1, np.int64))

    def append(self, indptr: Array, indices: Array, data: Array) -> None:
        """Add rows; `indices` and `data` may be longer than the rows."""
        self._indptr.append(indptr[1:] + self._indices.length)
        self._indices.append(indices[: indptr[-1]])
        self._data.append(data[: indptr[-1]])

    def close(self) -> Sparse:
        """Wait for the disk, and map the matrix."""
        return Sparse(self._indptr.close(), self._indices.close(), self._data.close(), self._n_terms)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        for writer in (self._indptr, self._indices, self._data):
            writer.__exit__(kind, value, trace)
