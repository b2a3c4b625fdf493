"""Weights by child made weights by chunk: the transposition that training ends with and prediction lives on."""

from pathlib import Path
from typing import Any

import numpy as np

from xbert.artifacts.arrays import Array, ArrayWriter
from xbert.artifacts.kinds.weights import FULL, LARGEST, ChunkedWeights
from xbert.stages.kernels.jit import kernel

# A row is full when more than one child in six has a weight: adding a weight for each of 64 children, 16 at a time, costs
# what a dozen scattered ones cost. At two bytes a child against four an entry it takes little more room.
_SHARE = 6


@kernel
def chunk(child_ptr: Array, columns: Array, values: Array, lookup: Array) -> tuple[Array, Array, Array, float]:
    """One parent's (term, weight) lists per child as rows per term: (terms, row_start, words, unit) of ChunkedWeights.

    `lookup` is a scratch array of one int32 a term, all -1, and is left so.
    """
    n_children, nnz = len(child_ptr) - 1, len(columns)
    terms, n_rows, largest = np.empty(nnz, np.int32), 0, 0.0
    for j in range(nnz):
        largest = max(largest, abs(values[j]))
        if lookup[columns[j]] < 0:
            lookup[columns[j]] = 0
            terms[n_rows] = columns[j]
            n_rows += 1
    terms = np.sort(terms[:n_rows])
    for row in range(n_rows):
        lookup[terms[row]] = row
    counts = np.zeros(n_rows, np.int64)
    for j in range(nnz):
        counts[lookup[columns[j]]] += 1
    row_start, fill, n_words = np.empty(n_rows + 1, np.uint32), np.empty(n_rows, np.int64), 0
    for row in range(n_rows):
        full = counts[row] * _SHARE > n_children
        row_start[row] = n_words + (FULL if full else 0)
        fill[row] = -1 if full else n_words
        n_words += (n_children + 1) // 2 if full else counts[row]
    row_start[n_rows] = n_words
    unit = largest / LARGEST if largest > 0.0 else 1.0
    words = np.zeros(n_words, np.uint32)
    halves = words.view(np.int16)
    for child in range(n_children):
        for j in range(child_ptr[child], child_ptr[child + 1]):
            row, weight = lookup[columns[j]], np.int64(np.rint(values[j] / unit))
            if fill[row] < 0:
                halves[2 * (np.int64(row_start[row]) - FULL) + child] = weight
            else:
                words[fill[row]] = (np.uint32(child) << np.uint32(16)) | np.uint32(weight & 0xFFFF)
                fill[row] += 1
    for row in range(n_rows):
        lookup[terms[row]] = -1
    return terms, row_start, words, unit


class ArrayList:
    """An array that grows in memory, as an ArrayWriter grows on disk."""

    def __init__(self, dtype: Any) -> None:
        self._parts = [np.empty(0, dtype)]

    def append(self, values: Array) -> None:
        """Add values at the end."""
        self._parts.append(np.asarray(values, self._parts[0].dtype))

    def close(self) -> Array:
        """The whole."""
        return np.concatenate(self._parts)


class ChunkWriter:
    """Takes the children of parent after parent, and gives the ChunkedWeights; on disk, where a folder is given.

    Only the chunk at hand is in memory: a level may be larger than that.
    """

    def __init__(self, children_ptr: Array, children: Array, n_terms: int, folder: Path | None = None, name: str = "") -> None:
        self._children_ptr, self._children, self._n_terms = children_ptr, children, n_terms
        self._lookup = np.full(n_terms, -1, np.int32)
        self._rows, self._words = [0], [0]
        self._waiting: list[tuple[Array, Array, Array]] = []  # lengths, columns, values of the chunk not yet whole
        self._n_waiting, self._parent = 0, 0

        def grow(part: str, dtype: Any) -> Any:
            return ArrayList(dtype) if folder is None else ArrayWriter(folder / f"{name}.{part}.npy", dtype)

        self._bias, self._unit = grow("bias", np.float32), grow("unit", np.float32)
        self._terms, self._row_start = grow("terms", np.int32), grow("row_start", np.uint32)
        self._entries = grow("words", np.uint32)

    def append(self, lengths: Array, columns: Array, values: Array, bias: Array) -> None:
        """The next children: for each its number of weights, their terms and values, and its bias."""
        self._bias.append(bias)
        ends, at = np.cumsum(lengths), 0
        while at < len(lengths):
            room = int(self._children_ptr[self._parent + 1] - self._children_ptr[self._parent]) - self._n_waiting
            stop = min(at + room, len(lengths))
            entries = slice(ends[at - 1] if at else 0, ends[stop - 1] if stop else 0)
            self._waiting.append((lengths[at:stop], columns[entries], values[entries]))
            self._n_waiting += stop - at
            at = stop
            self._finish_chunks()
        self._finish_chunks()

    def _finish_chunks(self) -> None:
        """Write the chunk at hand if it is whole, and chunks without children."""
        while self._parent < len(self._children_ptr) - 1:
            if self._n_waiting < self._children_ptr[self._parent + 1] - self._children_ptr[self._parent]:
                return
            parts = self._waiting or [(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))]
            lengths, columns, values = (np.concatenate(each) for each in zip(*parts, strict=True))
            child_ptr = np.zeros(len(lengths) + 1, np.int64)
            np.cumsum(lengths, out=child_ptr[1:])
            terms, row_start, words, unit = chunk(child_ptr, columns, values, self._lookup)
            if len(words) >= FULL:
                raise ValueError(f"a cluster of {len(words)} weights is more than a chunk can hold")
            for grown, part in (
                (self._terms, terms), (self._row_start, row_start), (self._entries, words), (self._unit, np.array([unit])),
            ):  # fmt: skip
                grown.append(part)
            self._rows.append(self._rows[-1] + len(terms))
            self._words.append(self._words[-1] + len(words))
            self._waiting, self._n_waiting = [], 0
            self._parent += 1

    def close(self) -> ChunkedWeights:
        """The level, once every child was given."""
        self._finish_chunks()
        bias, unit, terms, row_start, words = (
            grown.close() for grown in (self._bias, self._unit, self._terms, self._row_start, self._entries)
        )
        chunk_ptr, word_ptr = np.array(self._rows, np.int64), np.array(self._words, np.int64)
        return ChunkedWeights(
            self._children_ptr, self._children, bias, unit, chunk_ptr, word_ptr, terms, row_start, words, self._n_terms
        )
