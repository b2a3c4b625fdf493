"""Scores: the best few targets of each document. A target is a cluster or a label; there are only ids and scores in [0,1]."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.artifacts.errors import ArtifactError
from xbert.artifacts.sparse import Sparse


@dataclass(frozen=True, eq=False)
class Scores:
    """S: documents x targets; the entries of a row stand in descending order of score, not of target."""

    S: Sparse

    def __post_init__(self) -> None:
        if self.S.data is None:
            raise TypeError("scores need values")

    @property
    def n_docs(self) -> int:
        """Number of documents."""
        return self.S.n_rows

    @property
    def n_targets(self) -> int:
        """Number of targets there are, scored or not."""
        return self.S.n_cols

    def top(self, k: int) -> tuple[Array, Array]:
        """The first k targets of each document and their scores, (n_docs, k): -1 and 0 where there are fewer."""
        n_docs, lengths = self.n_docs, np.minimum(self.S.row_lengths(), k)
        targets, scores = np.full((n_docs, k), -1, np.int32), np.zeros((n_docs, k), np.float32)
        column = np.arange(k)
        filled = column < lengths[:, None]
        where = (self.S.indptr[:-1, None] + column)[filled]
        targets[filled], scores[filled] = self.S.indices[where], self.S.values()[where]
        return targets, scores

    def raised(self, power: float) -> "Scores":
        """Every score to that power: the same order."""
        return Scores(Sparse(self.S.indptr, self.S.indices, self.S.values() ** np.float32(power), self.S.n_cols))

    def check(self, what: str) -> None:
        """Look at every entry: in range, in [0,1], descending within a row."""
        self.S.check(what)
        values = self.S.values()
        if len(values) and (values.min() < 0 or values.max() > 1):
            raise ArtifactError(f"{what}: a score lies outside [0,1]; the artifact is damaged")
        rises = np.diff(values) > 0
        starts = self.S.indptr[1:-1] - 1  # a rise is allowed from one document's last score to the next one's first
        rises[starts[(starts >= 0) & (starts < len(rises))]] = False
        if rises.any():
            raise ArtifactError(f"{what}: scores are not in descending order; the artifact is damaged")

    def save(self, folder: Path, name: str) -> None:
        """Write the matrix under `name`."""
        self.S.save(folder, name)

    @classmethod
    def load(cls, folder: Path, name: str, n_targets: int) -> Self:
        """Map what `save` wrote."""
        return cls(Sparse.load(folder, name, n_targets))

    @classmethod
    def of_top(cls, targets: Array, scores: Array, n_targets: int) -> Self:
        """From (n_docs, k) arrays as `top` gives them; entries with target -1 are left out."""
        filled = targets >= 0
        indptr = np.zeros(len(targets) + 1, np.int64)
        np.cumsum(filled.sum(axis=1), out=indptr[1:])
        return cls(Sparse(indptr, targets[filled].astype(np.int32), scores[filled].astype(np.float32), n_targets))


def save_scores(folder: Path, scores: dict[str, Scores]) -> dict[str, Any]:
    """Write the scores of several splits; returns what a header needs to load them again."""
    for split, one in scores.items():
        one.save(folder, f"{split}.S")
    return {"splits": list(scores), "n_targets": next(iter(scores.values())).n_targets if scores else 0}


def load_scores(folder: Path, header: dict[str, Any]) -> dict[str, Scores]:
    """Map what `save_scores` wrote."""
    return {split: Scores.load(folder, f"{split}.S", header["n_targets"]) for split in header["splits"]}
