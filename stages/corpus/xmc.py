"""The Extreme Classification Repository's sparse text: a header `documents features labels`, then features, no text.

The published files hold documents without labels or without features; rows cannot be dropped without breaking the
comparison with published results, so they are kept and counted. A feature that stands twice in a line is an error: the
format does not say what it would mean.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.artifacts.errors import InputError
from xbert.artifacts.sparse import Sparse
from xbert.stages.corpus.documents import DIGEST, Documents, digest
from xbert.stages.corpus.lines import TextFile
from xbert.stages.corpus.notes import Notes
from xbert.stages.kernels import sparse_text

HEADER = re.compile(r"\s*(\d{1,18})\s+(\d{1,18})\s+(\d{1,18})\s*")
_LARGEST = 2**31 - 1
_PLAUSIBLE = 10_000_000

_WRONG = {
    sparse_text.BAD_LABEL: "the labels are not numbers divided by commas",
    sparse_text.LABEL_RANGE: "label {id} lies outside 0..{last_label}, the labels the header promises",
    sparse_text.BAD_FEATURE: "a feature is not of the form `number:value`",
    sparse_text.FEATURE_RANGE: "feature {id} lies outside 0..{last_term}, the features the header promises",
    sparse_text.BAD_VALUE: "the value of feature {id} is not a number",
    sparse_text.NOT_FINITE: "the value of feature {id} is not a finite number",
    sparse_text.NEGATIVE: "the value of feature {id} is negative",
    sparse_text.DUPLICATE: "feature {id} stands twice",
    sparse_text.NO_SPACE: "no labels and no space before feature {id}; a line without labels must start with a space",
}


class Header(NamedTuple):
    """What the first line promises."""

    n_docs: int
    n_terms: int
    n_labels: int


class SparseTextFile:
    """A file of the format: its header, and its documents block by block."""

    def __init__(self, file: TextFile, notes: Notes) -> None:
        self._file, self._notes = file, notes
        self.header = self._read_header()

    def _read_header(self) -> Header:
        _, line = next(TextFile(self._file.path).lines(), (1, ""))
        found = HEADER.fullmatch(line)
        if found is None:
            raise self._file.error(1, "no header of three numbers: documents, features, labels")
        header = Header(*map(int, found.groups()))
        if max(header.n_terms, header.n_labels) > _LARGEST:
            raise self._file.error(1, f"the header promises more than {_LARGEST} features or labels")
        if min(header) == 0:
            raise self._file.error(1, "the header promises no documents, no features or no labels")
        return header

    def read(self) -> Iterator[Documents]:
        """The documents, and an error at the line where the header or a line turns out to be wrong."""
        done, size = 0, 0
        for block in self._file.blocks():
            start = block.index(b"\n") + 1 if size == 0 else 0
            size += len(block)
            documents, used = self._parse(np.frombuffer(block, np.uint8)[start:], done)
            done += len(documents)
            if block[start + used :].strip():
                raise self._file.error(done + 2, f"a document more than the {self.header.n_docs} the header promises")
            if len(documents):
                yield documents
        if done < self.header.n_docs:
            raise InputError(f"{self._file.name} holds {done} documents, its header promises {self.header.n_docs}")
        for number, what in ((self.header.n_terms, "features"), (self.header.n_labels, "labels")):
            if number > max(size, _PLAUSIBLE):
                raise self._file.error(1, f"the header promises {number} {what}, more than the file has bytes")

    def _parse(self, text: Array, done: int) -> tuple[Documents, int]:
        n_rows = int(np.count_nonzero(text == ord("\n")))
        Y_indptr, X_indptr = np.empty(n_rows + 1, np.int64), np.empty(n_rows + 1, np.int64)
        Y_indices = np.empty(int(np.count_nonzero(text == ord(","))) + n_rows, np.int32)
        X_indices = np.empty(int(np.count_nonzero(text == ord(":"))), np.int32)
        X_data = np.empty(len(X_indices), np.float32)
        n_docs, n_terms, n_labels = self.header
        code, row, used, repeated, wrong = sparse_text.parse_rows(
            text, n_labels, n_terms, n_docs - done, Y_indptr, Y_indices, X_indptr, X_indices, X_data
        )
        if code != sparse_text.OK:
            what = _WRONG[code].format(id=wrong, last_label=n_labels - 1, last_term=n_terms - 1)
            raise self._file.error(done + row + 2, what)
        self._notes.repeated_labels += repeated
        Y = Sparse(Y_indptr[: row + 1], Y_indices[: Y_indptr[row]], None, n_labels)
        n_entries = X_indptr[row]
        X = Sparse(X_indptr[: row + 1], X_indices[:n_entries], X_data[:n_entries], n_terms)
        digests = _row_digests(X)
        return Documents(Y, None, X, digests, digests), used


def _row_digests(X: Sparse) -> Array:
    indices, data, ends = X.indices.tobytes(), X.values().tobytes(), (X.indptr * 4).tolist()
    rows = (digest(indices[a:b] + data[a:b]) for a, b in pairwise(ends))
    return np.frombuffer(b"".join(rows), DIGEST)
