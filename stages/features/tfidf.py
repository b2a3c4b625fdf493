"""TF-IDF of words, word n-grams and runs of characters, counted over the training texts in two streaming passes.

The same terms and the same values as scikit-learn's TfidfVectorizer (smooth idf, unit length), the terms numbered by
falling number of documents. Memory is bounded by the terms met and a few batches, never by the texts.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from xbert.artifacts.arrays import Array, Strings
from xbert.artifacts.errors import InputError
from xbert.artifacts.kinds.dataset import Dataset
from xbert.artifacts.kinds.features import Features, Vocabulary
from xbert.artifacts.sparse import Sparse
from xbert.stages.base import Config, Estimate, Method, Shape, Work, setting
from xbert.stages.features.analysis import Analysis, frozen, inverse_document_frequency
from xbert.stages.features.batches import in_order
from xbert.stages.features.counting import Spool, TermTable, count, slot_table
from xbert.stages.features.numbering import number_terms
from xbert.stages.features.rows import RowsWriter
from xbert.stages.features.vectorizer import Rows, Scratch, Vectorizer
from xbert.stages.kernels.text_count import gather_terms
from xbert.stages.kernels.text_rows import weigh_rows

_SECONDS_PER_BYTE = 10e-9  # of one core, for single words
_TERM_BYTES = 80  # of a term met: its text, its hash, and its place in a table at most half full
_COUNT_BYTES = 8  # of a byte of text in a batch: the text and its counts
_BATCH_BYTES = 60e6  # of the texts a thread is at, and their counts


@dataclass(frozen=True)
class TfidfConfig(Config):
    """How text becomes terms, and which terms are kept."""

    word_ngrams: int = setting(2, "longest run of words that is a term; 0 for no words at all", low=0, high=3)
    char_ngrams: int = setting(0, "longest run of characters within a word that is a term; 0 for none", low=0, high=10)
    char_min: int = setting(3, "shortest run of characters that is a term, where char_ngrams is not 0", low=1, high=10)
    min_df: int = setting(2, "a term is kept if at least so many training documents have it", low=1)
    max_df: float = setting(1.0, "a term is dropped if a larger share of the training documents has it", low=0, high=1)
    max_terms: int = setting(0, "keep only so many terms, those that most documents have; 0 for no limit", low=0)
    sublinear: bool = setting(True, "count a term 1 + ln(n) times where it occurs n times")
    lowercase: bool = setting(True, "take capital and small letters as the same")
    min_length: int = setting(2, "shortest word in characters", low=1, high=100)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.word_ngrams == 0 and self.char_ngrams == 0:
            raise InputError("word_ngrams = 0 and char_ngrams = 0: one of the two must be at least 1")
        if 0 < self.char_ngrams < self.char_min:
            raise InputError(f"char_min = {self.char_min}: must be at most char_ngrams = {self.char_ngrams}")

    def analysis(self) -> Analysis:
        """The settings that new documents need as well."""
        return Analysis(self.word_ngrams, self.min_length, self.char_min, self.char_ngrams, self.lowercase, self.sublinear)


class Tfidf(Method[TfidfConfig]):
    """TF-IDF rows of unit length, fitted on the training texts."""

    stage: ClassVar[str] = "features"
    name: ClassVar[str] = "tfidf"
    version: ClassVar[int] = 1
    config: ClassVar[type[Config]] = TfidfConfig
    needs: ClassVar[tuple[str, ...]] = ("data",)
    gives: ClassVar[type[Features]] = Features

    @classmethod
    def estimate(cls, config: TfidfConfig, shape: Shape, threads: int) -> Estimate:
        """All texts once, and their terms in a table until the rare ones are dropped."""
        longer = max(config.word_ngrams, 1) + config.char_ngrams
        seconds = shape.text_bytes * longer * _SECONDS_PER_BYTE / threads
        met = min(shape.entries, 4 * shape.n_terms * longer)  # most terms are rare
        memory = met * _TERM_BYTES + min(threads * _BATCH_BYTES, shape.text_bytes * _COUNT_BYTES)
        return Estimate(seconds, memory, memory, shape.entries * 8 * (1 + shape.n_held_out / max(shape.n_docs, 1)))

    def run(self, inputs: dict[str, Any], config: TfidfConfig, work: Work) -> Features:
        """Count, choose and number the terms, then weigh the counts; valid and test only see the result."""
        dataset: Dataset = inputs["data"]
        texts = {name: _texts(name, split.texts) for name, split in dataset.splits.items()}
        analysis = config.analysis()
        with Spool(work.folder / "counts.spool") as spool:
            table = count(texts["train"], analysis, spool, work)
            order = _chosen(table, config, len(texts["train"]))
            vocabulary = _vocabulary(table, order, len(texts["train"]))
            numbers = _new_numbers(order, table.n_terms)
            del table
            features = Features({"train": _weighed(spool, numbers, vocabulary, analysis, work)}, vocabulary, analysis.kept())
        vectorizer = Vectorizer(features)
        held_out = {name: _transformed(name, texts[name], vectorizer, work) for name in dataset.held_out}
        return Features({**features.X, **held_out}, vocabulary, features.analysis, _label_rows(dataset, vectorizer, work))


def _label_rows(dataset: Dataset, vectorizer: Vectorizer, work: Work) -> Sparse | None:
    """The labels' own texts and other names as rows of the same terms, for embeddings made of label text."""
    labels = dataset.labels
    if not labels.have_text:
        return None
    texts = [f"{text}\n{other}" for text, other in zip(labels.texts, labels.alternatives, strict=True)]
    return vectorizer.transform(texts, work.threads)


def _texts(name: str, texts: Strings | None) -> Strings:
    if texts is None:
        raise InputError(f'the {name} documents have features but no text: set features.method = "given"')
    return texts


def _chosen(table: TermTable, config: TfidfConfig, n_docs: int) -> Array:
    order = number_terms(table.documents, table.blob, table.offsets, config.min_df, config.max_df * n_docs, config.max_terms)
    if len(order) == 0:
        raise InputError(
            f"none of {table.n_terms} terms is in at least min_df = {config.min_df} documents and at most "
            f"max_df = {config.max_df:g} of the {n_docs} training documents: set features.min_df lower or "
            "features.max_df higher"
        )
    return order


def _vocabulary(table: TermTable, order: Array, n_docs: int) -> Vocabulary:
    terms = Strings(*gather_terms(table.blob, table.offsets, order))
    idf = inverse_document_frequency(table.documents[order], n_docs)
    return Vocabulary(terms, idf, *slot_table(table.keys[order]))


def _new_numbers(order: Array, n_terms: int) -> Array:
    """The number of each term met, -1 where it is dropped; int32."""
    numbers = np.full(n_terms, -1, np.int32)
    numbers[order] = np.arange(len(order), dtype=np.int32)
    return numbers


def _weighed(spool: Spool, numbers: Array, vocabulary: Vocabulary, analysis: Analysis, work: Work) -> Sparse:
    """The second pass: counts in the spool -> rows on disk."""
    idf, logs, scratch = frozen(vocabulary.idf), analysis.logs(), Scratch(len(vocabulary.terms))

    def weighed(record: Any) -> Rows:
        lengths, terms, counts, found = spool.read(record)
        return weigh_rows(lengths, terms, counts, numbers[found], idf, logs, scratch.tf, scratch.bits, scratch.tops)

    n_docs = sum(record.n_docs for record in spool.records)
    with (
        work.progress("weighing terms", n_docs, "documents") as progress,
        RowsWriter(work.folder, "train", len(vocabulary.terms)) as writer,
    ):
        for rows in in_order(weighed, spool.records, work.threads):
            writer.append(*rows)
            progress.advance(len(rows[0]) - 1)
        return writer.close()


def _transformed(name: str, texts: Strings, vectorizer: Vectorizer, work: Work) -> Sparse:
    with (
        work.progress(f"transforming {name}", len(texts), "documents") as progress,
        RowsWriter(work.folder, name, vectorizer.n_terms) as writer,
    ):
        for rows in vectorizer.blocks(texts, work.threads):
            writer.append(*rows)
            progress.advance(len(rows[0]) - 1)
        return writer.close()
