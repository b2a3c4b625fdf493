"""The dataset: documents, their labels, and what is known of the labels."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from xbert.artifacts.arrays import Strings
from xbert.artifacts.errors import ArtifactError
from xbert.artifacts.kinds.base import Artifact, read_json, write_json
from xbert.artifacts.sparse import Sparse

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True, eq=False)
class Labels:
    """What is known of each label; the position in `ids` is the label's number everywhere."""

    ids: Strings
    texts: Strings  # "" where a label has none
    alternatives: Strings  # other names of a label, one a line; "" where there are none
    parents: Sparse  # labels x labels, 0/1: the broader labels of a label

    def __post_init__(self) -> None:
        if not len(self.ids) == len(self.texts) == len(self.alternatives) == self.parents.n_rows == self.parents.n_cols:
            raise ArtifactError("the label tables differ in length: the artifact is damaged")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def have_text(self) -> bool:
        """Whether any label has a text."""
        return len(self.texts.blob) > 0

    def save(self, folder: Path) -> None:
        """Write the four tables."""
        self.ids.save(folder, "label_ids")
        self.texts.save(folder, "label_texts")
        self.alternatives.save(folder, "label_alternatives")
        self.parents.save(folder, "label_parents")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Map the four tables."""
        ids = Strings.load(folder, "label_ids")
        texts = Strings.load(folder, "label_texts")
        alternatives = Strings.load(folder, "label_alternatives")
        return cls(ids, texts, alternatives, Sparse.load(folder, "label_parents", len(ids), binary=True))


@dataclass(frozen=True, eq=False)
class Split:
    """The documents of one split: text, or features where the corpus came without text."""

    Y: Sparse  # documents x labels, 0/1
    texts: Strings | None
    X: Sparse | None  # documents x terms, as given by the corpus; only where there is no text

    def __post_init__(self) -> None:
        content = self.texts if self.texts is not None else self.X
        if content is None:
            raise ArtifactError("a split has neither texts nor features: the artifact is damaged")
        n_docs = len(self.texts) if self.texts is not None else self.X.n_rows if self.X is not None else 0
        if n_docs != self.Y.n_rows:
            raise ArtifactError(f"{n_docs} documents but {self.Y.n_rows} rows of labels: the artifact is damaged")

    @property
    def n_docs(self) -> int:
        """Number of documents."""
        return self.Y.n_rows


@dataclass(frozen=True, eq=False)
class Dataset(Artifact):
    """Splits and labels, with the facts found while checking them."""

    kind: ClassVar[str] = "dataset"
    format: ClassVar[int] = 1

    labels: Labels
    splits: dict[str, Split]
    facts: dict[str, Any]

    def __post_init__(self) -> None:
        if "train" not in self.splits or not set(self.splits) <= set(SPLITS):
            raise ArtifactError(f"a dataset has train and perhaps valid and test, not {sorted(self.splits)}")
        for name, split in self.splits.items():
            if split.Y.n_cols != len(self.labels):
                raise ArtifactError(f"{name} knows {split.Y.n_cols} labels, the dataset {len(self.labels)}")

    @property
    def n_labels(self) -> int:
        """Number of labels, seen in training or not."""
        return len(self.labels)

    @property
    def train(self) -> Split:
        """The training split."""
        return self.splits["train"]

    @property
    def held_out(self) -> dict[str, Split]:
        """The splits nothing is fitted to: valid and test, where there are any."""
        return {name: self.splits[name] for name in ("valid", "test") if name in self.splits}

    def label_counts(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Training documents per label."""
        return self.train.Y.column_counts()

    def save(self, folder: Path) -> None:
        """Write labels, splits and facts."""
        self.labels.save(folder)
        for name, split in self.splits.items():
            split.Y.save(folder, f"{name}.Y")
            if split.texts is not None:
                split.texts.save(folder, f"{name}.texts")
            if split.X is not None:
                split.X.save(folder, f"{name}.X")
        n_terms = self.train.X.n_cols if self.train.X is not None else None
        write_json(
            folder / "dataset.json",
            {"splits": [name for name in SPLITS if name in self.splits], "n_terms": n_terms, "facts": self.facts},
        )

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Map labels and splits."""
        header = read_json(folder / "dataset.json")
        labels = Labels.load(folder)
        splits = {}
        for name in header["splits"]:
            Y = Sparse.load(folder, f"{name}.Y", len(labels), binary=True)
            if header["n_terms"] is None:
                splits[name] = Split(Y, Strings.load(folder, f"{name}.texts"), None)
            else:
                splits[name] = Split(Y, None, Sparse.load(folder, f"{name}.X", header["n_terms"]))
        return cls(labels, splits, header["facts"])

    def summary(self) -> dict[str, Any]:
        """Documents per split, and labels."""
        return {**{name: split.n_docs for name, split in self.splits.items()}, "labels": self.n_labels}
