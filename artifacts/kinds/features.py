"""Features: the TF-IDF rows of every split, and the vocabulary that makes the same rows of new text."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from xbert.artifacts.arrays import Array, Strings, load_array, save_array
from xbert.artifacts.errors import ArtifactError
from xbert.artifacts.kinds.base import Artifact, read_json, write_json
from xbert.artifacts.sparse import Sparse


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Terms by number, most frequent first, with a hash table from a term's hash to its number."""

    terms: Strings
    idf: Array  # float32, one a term
    slots: Array  # uint64 hashes, open addressing, a power of two long; 0 is an empty slot
    numbers: Array  # int32, the term of each slot; -1 where empty

    def __post_init__(self) -> None:
        if len(self.terms) != len(self.idf):
            raise ArtifactError(f"{len(self.terms)} terms but {len(self.idf)} weights: the artifact is damaged")
        n_slots = len(self.slots)
        if n_slots != len(self.numbers) or n_slots & (n_slots - 1) or n_slots <= len(self.terms):
            raise ArtifactError("the vocabulary's hash table does not fit its terms: the artifact is damaged")

    def save(self, folder: Path) -> None:
        """Write the table, the terms and their weights."""
        self.terms.save(folder, "terms")
        for name in ("idf", "slots", "numbers"):
            save_array(folder / f"{name}.npy", getattr(self, name))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Map what `save` wrote."""
        idf = load_array(folder / "idf.npy", np.float32)
        slots = load_array(folder / "slots.npy", np.uint64)
        return cls(Strings.load(folder, "terms"), idf, slots, load_array(folder / "numbers.npy", np.int32))


@dataclass(frozen=True, eq=False)
class Features(Artifact):
    """X per split; `vocabulary` is None where the corpus brought its own features."""

    kind: ClassVar[str] = "features"
    format: ClassVar[int] = 1

    X: dict[str, Sparse]  # split -> documents x terms, unit rows
    vocabulary: Vocabulary | None
    analysis: dict[str, Any]  # how text becomes terms and counts become weights
    label_rows: Sparse | None = None  # labels x terms, unit rows: the labels' own texts; None where they have none

    def __post_init__(self) -> None:
        widths = {matrix.n_cols for matrix in self.X.values()}
        if len(widths) != 1:
            raise ArtifactError(f"the splits have {sorted(widths)} terms: the artifact is damaged")
        if self.vocabulary is not None and widths != {len(self.vocabulary.terms)}:
            raise ArtifactError(f"{len(self.vocabulary.terms)} terms but rows of {widths.pop()}: the artifact is damaged")

    @property
    def n_terms(self) -> int:
        """Number of terms."""
        return self.X["train"].n_cols

    def save(self, folder: Path) -> None:
        """Write every split's rows, the vocabulary and the settings."""
        for name, matrix in self.X.items():
            matrix.save(folder, f"{name}.X")
        if self.vocabulary is not None:
            self.vocabulary.save(folder)
        if self.label_rows is not None:
            self.label_rows.save(folder, "labels.X")
        header = {"splits": list(self.X), "n_terms": self.n_terms, "analysis": self.analysis}
        parts = {"text": self.vocabulary is not None, "labels": self.label_rows is not None}
        write_json(folder / "features.json", {**header, **parts})

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Map what `save` wrote."""
        header = read_json(folder / "features.json")
        X = {name: Sparse.load(folder, f"{name}.X", header["n_terms"]) for name in header["splits"]}
        vocabulary = Vocabulary.load(folder) if header["text"] else None
        label_rows = Sparse.load(folder, "labels.X", header["n_terms"]) if header["labels"] else None
        return cls(X, vocabulary, header["analysis"], label_rows)

    def summary(self) -> dict[str, Any]:
        """Terms, and how many a document has."""
        train = self.X["train"]
        return {"terms": self.n_terms, "terms per document": round(train.nnz / max(train.n_rows, 1), 1)}
