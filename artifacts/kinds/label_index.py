"""The label index: every label in one cluster, every cluster in one parent, up to a handful at the top."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.artifacts.errors import ArtifactError
from xbert.artifacts.kinds.base import Artifact, read_json, write_json
from xbert.artifacts.sparse import Sparse


@dataclass(frozen=True, eq=False)
class LabelIndex(Artifact):
    """C chain, from the labels up: chain[0] is labels x clusters, chain[1] clusters x their parents, and so on; all 0/1.

    Whoever built it (k-means, a tree, label frequency), matchers and rankers see only the chain.
    """

    kind: ClassVar[str] = "label_index"
    format: ClassVar[int] = 1

    chain: list[Sparse]
    facts: dict[str, Any]

    def __post_init__(self) -> None:
        if not self.chain:
            raise ArtifactError("a label index without levels: the artifact is damaged")
        for below, above in zip(self.chain, self.chain[1:], strict=False):
            if below.n_cols != above.n_rows:
                raise ArtifactError(f"{below.n_cols} clusters below but {above.n_rows} above: the artifact is damaged")
        for level in self.chain:
            if (level.row_lengths() != 1).any():
                raise ArtifactError("a label or cluster of the index is not in exactly one cluster: the artifact is damaged")

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self.chain[0].n_rows

    @property
    def n_clusters(self) -> int:
        """Number of clusters at the bottom, where the labels are."""
        return self.chain[0].n_cols

    def digest(self) -> str:
        """Which clustering it is: equal for equal chains, however they were made."""
        whole = hashlib.sha256()
        for level in self.chain:
            whole.update(np.array([level.n_rows, level.n_cols], np.int64).tobytes())
            whole.update(np.ascontiguousarray(level.indices, np.int32).tobytes())
        return whole.hexdigest()[:16]

    def clusters_of(self, Y: Sparse) -> list[Sparse]:
        """What a document's labels say of every level: documents x clusters, 0/1, from the bottom up."""
        levels = []
        for level in self.chain:
            Y = parents_of(Y, level.indices, level.n_cols)
            levels.append(Y)
        return levels

    def cluster_sizes(self) -> Array:
        """Labels per cluster."""
        return self.chain[0].column_counts()

    def save(self, folder: Path) -> None:
        """Write every level."""
        for depth, level in enumerate(self.chain):
            level.save(folder, f"level{depth}")
        write_json(folder / "label_index.json", {"widths": [level.n_cols for level in self.chain], "facts": self.facts})

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Map every level."""
        header = read_json(folder / "label_index.json")
        widths = header["widths"]
        return cls([Sparse.load(folder, f"level{i}", width, binary=True) for i, width in enumerate(widths)], header["facts"])

    def summary(self) -> dict[str, Any]:
        """Clusters per level, and their sizes."""
        sizes = self.cluster_sizes()
        widths = [level.n_cols for level in self.chain]
        return {"clusters": widths, "labels per cluster": [int(sizes.min()), int(sizes.max())]}


def parents_of(Y: Sparse, parent: Array, n_parents: int) -> Sparse:
    """Documents x children to documents x parents: a parent is on where any of its children is."""
    rows = np.repeat(np.arange(Y.n_rows, dtype=np.int64), Y.row_lengths())
    keys = np.unique(rows * n_parents + parent[Y.indices])
    indptr = np.zeros(Y.n_rows + 1, np.int64)
    np.cumsum(np.bincount(keys // n_parents, minlength=Y.n_rows), out=indptr[1:])
    return Sparse(indptr, (keys % n_parents).astype(np.int32), None, n_parents)
