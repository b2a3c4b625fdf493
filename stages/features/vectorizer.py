"""New text to the rows training would have given it: for one document in a request, or for millions."""

import threading
from collections.abc import Iterator, Sequence

import numpy as np

from xbert.artifacts.arrays import Array, Strings
from xbert.artifacts.errors import ArtifactError, InputError
from xbert.artifacts.kinds.features import Features
from xbert.artifacts.sparse import Sparse
from xbert.stages.features.analysis import Analysis, frozen
from xbert.stages.features.batches import Batch, batch_of_strings, batch_of_texts, cut, cut_texts, in_order
from xbert.stages.features.characters import character_classes
from xbert.stages.kernels.text_rows import transform_rows

_BATCH = 1 << 20  # smaller than when counting: no table to fill, and results come sooner
Rows = tuple[Array, Array, Array]  # indptr, and indices and data at least as long as it says


class Scratch(threading.local):
    """What `text_rows` gathers a row in: all zero between rows, one for each thread."""

    def __init__(self, n_terms: int) -> None:
        self.tf = np.zeros(n_terms, np.int32)
        self.bits = np.zeros((n_terms >> 6) + 1, np.uint64)
        self.tops = np.zeros((n_terms >> 12) + 1, np.uint64)


class Vectorizer:
    """Makes rows of text with the vocabulary of a Features artifact; may be used by several threads at once."""

    def __init__(self, features: Features) -> None:
        vocabulary = features.vocabulary
        if vocabulary is None:
            raise InputError("these features came with the corpus, not from text: new documents need features of the same kind")
        self.n_terms = len(vocabulary.terms)
        self._analysis = Analysis.of(features.analysis)
        self._rule, self._logs = self._analysis.rule(), self._analysis.logs()
        self._slots, self._numbers = frozen(vocabulary.slots), frozen(vocabulary.numbers)
        self._idf = frozen(vocabulary.idf)
        self._scratch = Scratch(self.n_terms)
        # The kernels trust the table: a wrong number would write outside of the scratch, a full table end no search.
        if self._numbers.max() >= self.n_terms or np.count_nonzero(self._slots) != self.n_terms:
            raise ArtifactError("the vocabulary's hash table does not fit its terms: the artifact is damaged")

    def transform(self, texts: Sequence[str], threads: int = 1) -> Sparse:
        """The rows of these documents; a document without a known term is an empty row."""
        blocks = list(self.blocks(texts, threads))
        if len(blocks) == 1:
            indptr, indices, data = blocks[0]
            return Sparse(indptr, indices[: indptr[-1]], data[: indptr[-1]], self.n_terms)
        ends = np.cumsum([0] + [block[0][-1] for block in blocks])
        parts = [block[0][1:] + end for block, end in zip(blocks, ends[:-1], strict=True)]
        indptr = np.concatenate([np.zeros(1, np.int64), *parts])
        indices, data = np.empty(ends[-1], np.int32), np.empty(ends[-1], np.float32)
        for block, start, stop in zip(blocks, ends[:-1], ends[1:], strict=True):
            indices[start:stop], data[start:stop] = block[1][: stop - start], block[2][: stop - start]
        return Sparse(indptr, indices, data, self.n_terms)

    def blocks(self, texts: Sequence[str], threads: int = 1) -> Iterator[Rows]:
        """The rows of these documents a block at a time, in order: for results larger than memory."""
        lowercase = self._analysis.lowercase
        if isinstance(texts, Strings):
            table = texts
            return in_order(
                lambda part: self._rows(batch_of_strings(table, *part, lowercase)), cut(texts.offsets, _BATCH), threads
            )
        if len(texts) == 1:
            return iter((self._rows(batch_of_texts(texts, lowercase)),))
        return in_order(
            lambda part: self._rows(batch_of_texts(texts[slice(*part)], lowercase)), cut_texts(texts, _BATCH), threads
        )

    def _rows(self, batch: Batch) -> Rows:
        classes, scratch = character_classes(self._analysis.lowercase, batch.is_ascii), self._scratch
        return transform_rows(
            batch.text, batch.offsets, classes, self._rule, self._slots, self._numbers, self._idf, self._logs,
            scratch.tf, scratch.bits, scratch.tops,
        )  # fmt: skip
