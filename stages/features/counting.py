"""The first pass over the training texts: which terms there are, in how many documents, and each document's counts.

Batches number their terms by themselves, in parallel; they are merged in the order of the documents, so that numbers
are in order of first appearance whatever the threads did. The counts wait in a file for the second pass.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from xbert.artifacts.arrays import Array, Strings
from xbert.stages.base import Work
from xbert.stages.features.analysis import Analysis
from xbert.stages.features.batches import batch_of_strings, cut, in_order
from xbert.stages.features.characters import character_classes
from xbert.stages.kernels.text_count import count_terms, fill_slots, merge_terms


@dataclass(frozen=True, eq=False)
class BatchCounts:
    """What `count_terms` gives for one batch."""

    lengths: Array  # int32, terms of each document
    terms: Array  # int32, by a number within the batch
    counts: Array  # int32
    keys: Array  # uint64, hash of each term of the batch
    documents: Array  # int32, documents of the batch with the term
    blob: Array  # uint8
    offsets: Array  # int64


class TermTable:
    """All terms met so far, by number: hash, text, and documents that have them; grows by doubling."""

    def __init__(self) -> None:
        self.n_terms = 0
        self._slots, self._numbers = _empty_table(0)
        self._keys, self._documents = np.empty(0, np.uint64), np.empty(0, np.int64)
        self._blob, self._offsets = np.empty(0, np.uint8), np.zeros(1, np.int64)

    def merge(self, batch: BatchCounts) -> Array:
        """Enter a batch's terms; their numbers here, int32."""
        most = self.n_terms + len(batch.keys)
        if 2 * most > len(self._slots):
            self._slots, self._numbers = _empty_table(most)
            fill_slots(self.keys, self._slots, self._numbers)
        self._keys, self._documents = _roomy(self._keys, most), _roomy(self._documents, most)
        self._offsets = _roomy(self._offsets, most + 1)
        self._blob = _roomy(self._blob, int(self._offsets[self.n_terms]) + len(batch.blob))
        found, self.n_terms = merge_terms(
            batch.keys, batch.documents, batch.blob, batch.offsets, self._slots, self._numbers,
            self._keys, self._documents, self._blob, self._offsets, self.n_terms,
        )  # fmt: skip
        return found

    @property
    def keys(self) -> Array:
        """Hash of each term, uint64."""
        return self._keys[: self.n_terms]

    @property
    def documents(self) -> Array:
        """Documents with each term, int64."""
        return self._documents[: self.n_terms]

    @property
    def offsets(self) -> Array:
        """Where each term's text starts in `blob`, and the end, int64."""
        return self._offsets[: self.n_terms + 1]

    @property
    def blob(self) -> Array:
        """The text of all terms, uint8."""
        return self._blob[: self.offsets[-1]]


def slot_table(keys: Array) -> tuple[Array, Array]:
    """A table from hash to number, at most half full: slots and numbers as a Vocabulary keeps them."""
    slots, numbers = _empty_table(len(keys))
    fill_slots(keys, slots, numbers)
    return slots, numbers


def _empty_table(n_terms: int) -> tuple[Array, Array]:
    size = 1 << max(2 * n_terms - 1, 15).bit_length()
    return np.zeros(size, np.uint64), np.full(size, -1, np.int32)


def _roomy(array: Array, needed: int) -> Array:
    if needed <= len(array):
        return array
    wider = np.empty(max(needed, 2 * len(array)), array.dtype)
    wider[: len(array)] = array
    return wider


@dataclass(frozen=True)
class _Record:
    at: int
    n_docs: int
    nnz: int
    n_terms: int


class Spool:
    """A scratch file of batches of counts: written once, read back by batch, removed at the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stream = path.open("wb")
        self._end = 0
        self.records: list[_Record] = []

    def append(self, batch: BatchCounts, numbers: Array) -> None:
        """Keep a batch's rows, and the number of each of its terms among all."""
        self.records.append(_Record(self._end, len(batch.lengths), len(batch.terms), len(numbers)))
        for array in (batch.lengths, batch.terms, batch.counts, numbers):
            self._stream.write(array.data)
            self._end += array.nbytes

    def read(self, record: _Record) -> tuple[Array, Array, Array, Array]:
        """lengths, terms, counts and numbers of one batch."""
        sizes = (record.n_docs, record.nnz, record.nnz, record.n_terms)
        values = np.fromfile(self._path, np.int32, sum(sizes), offset=record.at)
        lengths, terms, counts, numbers = np.split(values, np.cumsum(sizes)[:-1])
        return lengths, terms, counts, numbers

    def finish(self) -> None:
        """All is written: from here on it is read."""
        self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._stream.close()
        self._path.unlink(missing_ok=True)


def count(texts: Strings, analysis: Analysis, spool: Spool, work: Work) -> TermTable:
    """Count the terms of all documents; the rows are left in the spool."""
    table = TermTable()
    with work.progress("counting terms", len(texts), "documents") as progress:
        for batch in _counted(texts, analysis, work.threads):
            spool.append(batch, table.merge(batch))
            progress.advance(len(batch.lengths))
    spool.finish()
    return table


def _counted(texts: Strings, analysis: Analysis, threads: int) -> Iterator[BatchCounts]:
    rule = analysis.rule()

    def counted(part: tuple[int, int]) -> BatchCounts:
        batch = batch_of_strings(texts, *part, analysis.lowercase)
        classes = character_classes(analysis.lowercase, batch.is_ascii)
        return BatchCounts(*count_terms(batch.text, batch.offsets, classes, rule))

    return in_order(counted, cut(texts.offsets), threads)
