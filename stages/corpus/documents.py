"""Documents on their way into a dataset: a block in memory, or a whole table on disk, with the same face."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from xbert.artifacts.arrays import Array, ArrayWriter, Strings, StringsWriter
from xbert.artifacts.sparse import Sparse

DIGEST = np.dtype("<u8")
_BLOCK_ENTRIES = 1 << 24


def digest(content: bytes) -> bytes:
    """Eight bytes that stand for a content; two of a hundred million documents collide with a chance of 1 in 4000."""
    return hashlib.blake2b(content, digest_size=DIGEST.itemsize).digest()


@dataclass(frozen=True, eq=False)
class Documents:
    """Some documents: their labels, and either texts or features."""

    Y: Sparse  # 0/1; label numbers are final only in a dataset
    texts: Strings | None
    X: Sparse | None
    digests: Array  # (n_docs,) of the content: equal documents have equal digests
    units: Array  # (n_docs,) documents of one unit stay in one split: their group's digest, or their own

    def __len__(self) -> int:
        return self.Y.n_rows

    def slice(self, start: int, stop: int) -> "Documents":
        """Documents start..stop; texts and entries are not copied."""
        return Documents(
            self.Y.slice(start, stop),
            None if self.texts is None else _slice(self.texts, start, stop),
            None if self.X is None else self.X.slice(start, stop),
            self.digests[start:stop],
            self.units[start:stop],
        )

    def take(self, rows: Array) -> "Documents":
        """Those documents, in that order, copied."""
        return Documents(
            self.Y.take(rows),
            None if self.texts is None else _take(self.texts, rows),
            None if self.X is None else self.X.take(rows),
            self.digests[rows],
            self.units[rows],
        )

    def blocks(self) -> Iterator[tuple[int, int]]:
        """(start, stop) of consecutive blocks that fit in memory, however long the documents are."""
        ends = self.Y.indptr[1:].astype(np.int64)
        for offsets in (None if self.texts is None else self.texts.offsets, None if self.X is None else self.X.indptr):
            if offsets is not None:
                ends = ends + offsets[1:]
        start, done = 0, 0
        while start < len(ends):
            stop = max(start + 1, int(np.searchsorted(ends, done + _BLOCK_ENTRIES, side="right")))
            yield start, stop
            start, done = stop, int(ends[stop - 1])


def _slice(texts: Strings, start: int, stop: int) -> Strings:
    first, last = texts.offsets[start], texts.offsets[stop]
    return Strings(texts.blob[first:last], texts.offsets[start : stop + 1] - first)


def _take(texts: Strings, rows: Array) -> Strings:
    blob, ends = texts.blob.tobytes(), texts.offsets.tolist()
    return strings_of([blob[ends[row] : ends[row + 1]] for row in rows.tolist()])


def strings_of(parts: list[bytes]) -> Strings:
    """A table of strings that are UTF-8 already."""
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    return Strings(np.frombuffer(b"".join(parts), np.uint8), offsets)


class SparseWriter:
    """Sparse rows that grow on disk, under the names `Sparse.load` knows."""

    def __init__(self, folder: Path, name: str, binary: bool) -> None:
        self._indptr = ArrayWriter(folder / f"{name}.indptr.npy", np.int64)
        self._indices = ArrayWriter(folder / f"{name}.indices.npy", np.int32)
        self._data = None if binary else ArrayWriter(folder / f"{name}.data.npy", np.float32)
        self._indptr.append(np.zeros(1, np.int64))

    def append(self, rows: Sparse) -> None:
        """Add rows at the end."""
        self._indptr.append(rows.indptr[1:] + self._indices.length)
        self._indices.append(rows.indices)
        if self._data is not None:
            self._data.append(rows.values())

    def close(self, n_cols: int) -> Sparse:
        """Wait for the disk, and map the matrix."""
        data = None if self._data is None else self._data.close()
        return Sparse(self._indptr.close(), self._indices.close(), data, n_cols)


class DocumentsWriter:
    """Documents that grow on disk: texts or features in one folder, labels in the same or another."""

    def __init__(self, name: str, content: Path, labels: Path) -> None:
        self._name, self._content = name, content
        self._Y = SparseWriter(labels, f"{name}.Y", binary=True)
        self._texts: StringsWriter | None = None
        self._X: SparseWriter | None = None
        self._digests: list[Array] = [np.empty(0, DIGEST)]
        self._units: list[Array] = [np.empty(0, DIGEST)]
        self._n_labels, self._n_terms, self.length = 0, 0, 0

    def append(self, block: Documents) -> None:
        """Add documents at the end."""
        self._Y.append(block.Y)
        if block.texts is not None:
            self._texts = self._texts or StringsWriter(self._content, f"{self._name}.texts")
            self._texts.append_encoded(block.texts.blob.tobytes(), np.diff(block.texts.offsets))
        if block.X is not None:
            self._X = self._X or SparseWriter(self._content, f"{self._name}.X", binary=False)
            self._X.append(block.X)
            self._n_terms = block.X.n_cols
        self._digests.append(block.digests)
        self._units.append(block.units)
        self._n_labels = block.Y.n_cols
        self.length += len(block)

    def close(self) -> Documents:
        """Wait for the disk, and map the whole."""
        return Documents(
            self._Y.close(self._n_labels),
            None if self._texts is None else self._texts.close(),
            None if self._X is None else self._X.close(self._n_terms),
            np.concatenate(self._digests),
            np.concatenate(self._units),
        )
