"""Linear weights of one level of the label index, stored together as they are used: a chunk per parent cluster.

Yu et al., "PECOS" (2022) call it the masked sparse chunk multiplication layout: to score all children of a cluster for a
document, one walk over the document's terms finds each term's row in the chunk once, for all children.
"""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import numpy as np

from xbert.artifacts.arrays import Array, load_array, save_array
from xbert.artifacts.errors import ArtifactError

MAX_CHILDREN = 65_535  # of one parent: a child is named by 16 bits inside its chunk

_TYPES = {
    "children_ptr": np.int64, "children": np.int32, "bias": np.float32, "chunk_ptr": np.int64, "terms": np.int32,
    "term_ptr": np.int64, "entry_child": np.uint16, "entry_value": np.float32,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class ChunkedWeights:
    """For parent p: its children, and the rows (terms) of its chunk, each with (child, weight) entries."""

    children_ptr: Array  # parent -> first place in `children` and `bias`
    children: Array  # child numbers, grouped by parent
    bias: Array  # one a child, in the order of `children`
    chunk_ptr: Array  # parent -> first row in `terms`
    terms: Array  # the term of each row, ascending within a chunk
    term_ptr: Array  # row -> first entry
    entry_child: Array  # which child of the parent, counted from 0
    entry_value: Array
    n_terms: int

    def __post_init__(self) -> None:
        lengths = (
            (self.children_ptr, len(self.children)),
            (self.chunk_ptr, len(self.terms)),
            (self.term_ptr, len(self.entry_child)),
        )
        for pointers, end in lengths:
            if len(pointers) == 0 or pointers[0] != 0 or pointers[-1] != end:
                raise ArtifactError("a weight table's pointers do not fit its entries: the artifact is damaged")
        if len(self.term_ptr) != len(self.terms) + 1 or len(self.chunk_ptr) != len(self.children_ptr):
            raise ArtifactError("a weight table's parts differ in length: the artifact is damaged")
        if len(self.entry_child) != len(self.entry_value) or len(self.bias) != len(self.children):
            raise ArtifactError("a weight table's parts differ in length: the artifact is damaged")

    @property
    def n_parents(self) -> int:
        """Number of chunks."""
        return len(self.children_ptr) - 1

    @property
    def n_children(self) -> int:
        """Number of classifiers."""
        return len(self.children)

    def arrays(self) -> tuple[Array, ...]:
        """The arrays in the order the kernels take them."""
        return tuple(np.asarray(getattr(self, name)) for name in _TYPES)

    def check(self, what: str) -> None:
        """Look at every entry: a kernel reads these arrays without asking."""
        for name in ("children_ptr", "chunk_ptr", "term_ptr"):
            if (np.diff(getattr(self, name)) < 0).any():
                raise ArtifactError(f"{what}: {name} falls; the artifact is damaged")
        if len(self.terms) and (self.terms.min() < 0 or self.terms.max() >= self.n_terms):
            raise ArtifactError(f"{what}: a term lies outside 0..{self.n_terms - 1}; the artifact is damaged")
        if not np.array_equal(np.sort(self.children), np.arange(self.n_children)):
            raise ArtifactError(f"{what}: a child is missing or double; the artifact is damaged")
        width = np.repeat(np.diff(self.children_ptr), np.diff(self.term_ptr[self.chunk_ptr]))
        if (self.entry_child >= width).any() or not np.isfinite(self.entry_value).all():
            raise ArtifactError(f"{what}: an entry points outside its cluster or is no number; the artifact is damaged")

    def save(self, folder: Path, name: str) -> None:
        """Write one file an array."""
        for part in _TYPES:
            save_array(folder / f"{name}.{part}.npy", getattr(self, part))

    @classmethod
    def load(cls, folder: Path, name: str, n_terms: int) -> Self:
        """Map what `save` wrote."""
        parts = {part: load_array(folder / f"{name}.{part}.npy", dtype) for part, dtype in _TYPES.items()}
        return cls(**parts, n_terms=n_terms)

    def of_child(self, child: int) -> tuple[Array, Array]:
        """The terms and weights of one classifier."""
        place = int(np.flatnonzero(self.children == child)[0])
        parent = int(np.searchsorted(self.children_ptr, place, "right")) - 1
        first, last = self.chunk_ptr[parent], self.chunk_ptr[parent + 1]
        entries = slice(self.term_ptr[first], self.term_ptr[last])
        mine = np.flatnonzero(self.entry_child[entries] == place - self.children_ptr[parent])
        row_of = np.repeat(np.arange(first, last), np.diff(self.term_ptr[first : last + 1]))
        return self.terms[row_of[mine]], self.entry_value[entries][mine]

    def summary(self) -> dict[str, Any]:
        """How many weights, and their bytes."""
        size = sum(getattr(self, each.name).nbytes for each in fields(self) if each.name in _TYPES)
        return {"classifiers": self.n_children, "weights": len(self.entry_value), "MB": round(size / 1e6, 1)}
