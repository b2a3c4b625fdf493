"""The features a corpus came with, where it has no text: the published data sets of the field often do."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.artifacts.errors import InputError
from xbert.artifacts.kinds.dataset import Dataset
from xbert.artifacts.kinds.features import Features
from xbert.artifacts.sparse import Sparse
from xbert.stages.base import Config, Estimate, Method, Shape, Work, batches, setting
from xbert.stages.features.analysis import inverse_document_frequency
from xbert.stages.features.rows import RowsWriter

_BLOCK = 10_000  # documents at a time
_SECONDS, _BYTES = 40e-9, 60  # for an entry: time of one core, and room while its block is weighed


@dataclass(frozen=True)
class GivenConfig(Config):
    """What is done to the corpus's own features."""

    normalize: bool = setting(True, "bring every document to unit length")
    idf: bool = setting(False, "weigh every term by its inverse document frequency; not for features that are TF-IDF")


class Given(Method[GivenConfig]):
    """The corpus's own features, as rows of unit length."""

    stage: ClassVar[str] = "features"
    name: ClassVar[str] = "given"
    version: ClassVar[int] = 1
    config: ClassVar[type[Config]] = GivenConfig
    needs: ClassVar[tuple[str, ...]] = ("data",)
    gives: ClassVar[type[Features]] = Features

    @classmethod
    def estimate(cls, config: GivenConfig, shape: Shape, threads: int) -> Estimate:
        """All rows once, block by block."""
        entries = shape.entries * (1 + shape.n_held_out / max(shape.n_docs, 1))
        block = _BLOCK * shape.entries / max(shape.n_docs, 1) * _BYTES
        return Estimate(entries * _SECONDS, block, block, entries * 8)

    def run(self, inputs: dict[str, Any], config: GivenConfig, work: Work) -> Features:
        """Weigh and normalise, block by block."""
        dataset: Dataset = inputs["data"]
        given = {name: _given(name, split.X) for name, split in dataset.splits.items()}
        idf = _idf(given["train"]) if config.idf else None
        X = {name: _weighed(name, rows, idf, config.normalize, work) for name, rows in given.items()}
        return Features(X, None, {"method": self.name, "normalize": config.normalize, "idf": config.idf})


def weigh_given(features: Features, X: Sparse) -> Sparse:
    """New documents' features, treated as those of the training documents were."""
    if features.vocabulary is not None or features.analysis.get("method") != Given.name:
        raise InputError("these features were made of text: give documents as text, not as features")
    if X.n_cols != features.n_terms:
        raise InputError(f"the documents have {X.n_cols} features, the training documents {features.n_terms}")
    # Weights and lengths leave the pattern alone, so the training rows still tell how many documents have a term.
    idf = _idf(features.X["train"]) if features.analysis["idf"] else None
    return Sparse(X.indptr, *_rows(X, idf, features.analysis["normalize"]), X.n_cols)


def _given(name: str, X: Sparse | None) -> Sparse:
    if X is None:
        raise InputError(f'the {name} documents have text but no features of their own: set features.method = "tfidf"')
    X.check(f"{name}.X")
    return X


def _idf(X: Sparse) -> Array:
    return inverse_document_frequency(X.column_counts(), X.n_rows)


def _weighed(name: str, X: Sparse, idf: Array | None, normalize: bool, work: Work) -> Sparse:
    with (
        work.progress(f"weighing {name}", X.n_rows, "documents") as progress,
        RowsWriter(work.folder, name, X.n_cols) as writer,
    ):
        for start, stop in batches(X.n_rows, _BLOCK):
            block = X.slice(start, stop)
            writer.append(block.indptr, *_rows(block, idf, normalize))
            progress.advance(stop - start)
        return writer.close()


def _rows(X: Sparse, idf: Array | None, normalize: bool) -> tuple[Array, Array]:
    """Columns in order and their weighted values; a row of zeros stays one."""
    row = np.repeat(np.arange(X.n_rows), X.row_lengths())
    order = np.lexsort((X.indices, row)) if _unordered(X.indices, row) else slice(None)
    indices, values = X.indices[order], X.values()[order].astype(np.float64)
    if idf is not None:
        values *= idf[indices]
    if normalize:
        lengths = np.sqrt(np.bincount(row, values * values, minlength=X.n_rows))
        values /= np.where(lengths > 0, lengths, 1.0)[row]
    return np.asarray(indices), values.astype(np.float32)


def _unordered(indices: Array, row: Array) -> bool:
    return bool(((np.diff(indices) < 0) & (np.diff(row) == 0)).any())
