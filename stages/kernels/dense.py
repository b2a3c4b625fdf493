"""Vectors of documents beside their terms: dense columns after the sparse ones.

A classifier's training reads them as a matrix of 16 bits (`packing.pack_dense`), which SIMD multiplies many at a time where
an entry of a sparse row costs a gather; its prediction reads rows that have both (`concatenate`), a block of documents at a
time, because a weight of such a column is in a full row of its chunk, which SIMD adds as well.
"""

from dataclasses import dataclass

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.artifacts.errors import ArtifactError
from xbert.artifacts.sparse import Sparse
from xbert.stages.kernels.jit import kernel

_BATCH = 4096  # vectors made float32 at a time


@dataclass(frozen=True, eq=False)
class Vectors:
    """Documents x width, of any float type and length, mapped or not; and the length they are given when they are used."""

    rows: Array
    scale: float

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self.rows.shape[1])


def of_unit_length(vectors: Array) -> Array:
    """The rows brought to unit length, float32; a row of zeros stays one."""
    rows = np.asarray(vectors, np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    if not np.isfinite(lengths).all():
        raise ArtifactError("a document's vector has a value that is no number: the matcher that made it is damaged")
    return rows * (1 / np.where(lengths > 0, lengths, 1)).astype(np.float32)[:, None]


def concatenate(X: Sparse, vectors: Array, scale: float) -> Sparse:
    """Rows of X, each followed by its vector in columns X.n_cols and on, brought to unit length and times `scale`.

    Every row has all of those columns, zeros too. Beside the result, little memory is taken.
    """
    n_docs, width = vectors.shape
    if n_docs != X.n_rows:
        raise ArtifactError(f"{n_docs} vectors for {X.n_rows} documents: they come from other data")
    indptr = X.indptr + width * np.arange(n_docs + 1)
    indices, data = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
    for start in range(0, n_docs, _BATCH):
        stop = min(start + _BATCH, n_docs)
        part, first, last = X.slice(start, stop), indptr[start], indptr[stop]
        dense = of_unit_length(vectors[start:stop]) * np.float32(scale)
        fill_rows(part.indptr, part.indices, part.values(), dense, X.n_cols, indices[first:last], data[first:last])
    return Sparse(indptr, indices, data, X.n_cols + width)


@kernel
def fill_rows(indptr: Array, indices: Array, data: Array, dense: Array, n_cols: int, to_indices: Array, to_data: Array) -> None:
    """Each sparse row, then its dense one."""
    at = 0
    for row in range(len(dense)):
        for j in range(indptr[row], indptr[row + 1]):
            to_indices[at], to_data[at] = indices[j], data[j]
            at += 1
        for k in range(dense.shape[1]):
            to_indices[at], to_data[at] = n_cols + k, dense[row, k]
            at += 1
