"""Linear weights of one level of the label index, stored together as they are used: a chunk per parent cluster.

Yu et al., "PECOS" (2022) call it the masked sparse chunk multiplication layout: to score all children of a cluster for a
document, one walk over the document's terms finds each term's row in the chunk once, for all children. What differs: a
weight is 16 bits of fixed point, and a row that most children share has no child numbers, just a weight for each child.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from xbert.artifacts.arrays import Array, load_array, save_array
from xbert.artifacts.errors import ArtifactError

MAX_CHILDREN = 65_535  # of one parent: a child is named by 16 bits inside its chunk
FULL = 1 << 31  # in `row_start`: the row has a weight for each child
LARGEST = 32_767  # a weight in units of its chunk

_TYPES = {
    "children_ptr": np.int64, "children": np.int32, "bias": np.float32, "unit": np.float32, "chunk_ptr": np.int64,
    "word_ptr": np.int64, "terms": np.int32, "row_start": np.uint32, "words": np.uint32,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class ChunkedWeights:
    """For parent p: its children, and the rows (terms) of its chunk, each with the children's weights."""

    children_ptr: Array  # parent -> first place in `children` and `bias`
    children: Array  # child numbers, grouped by parent
    bias: Array  # one a child, in the order of `children`
    unit: Array  # one a parent: what a weight of 1 in `words` is worth
    chunk_ptr: Array  # parent -> first row in `terms`
    word_ptr: Array  # parent -> first word of its chunk
    terms: Array  # the term of each row, ascending within a chunk
    row_start: Array  # a row's first word, counted within its chunk; one more a chunk for its end, so row r of p is at r + p
    words: Array  # child << 16 | weight; in a full row two weights a word, for the children in order
    n_terms: int

    def __post_init__(self) -> None:
        lengths = (
            (self.children_ptr, len(self.children)),
            (self.chunk_ptr, len(self.terms)),
            (self.word_ptr, len(self.words)),
        )
        for pointers, end in lengths:
            if len(pointers) == 0 or pointers[0] != 0 or pointers[-1] != end:
                raise ArtifactError("a weight table's pointers do not fit its entries: the artifact is damaged")
        if not len(self.chunk_ptr) == len(self.word_ptr) == len(self.children_ptr) == len(self.unit) + 1:
            raise ArtifactError("a weight table's parts differ in length: the artifact is damaged")
        if len(self.row_start) != len(self.terms) + self.n_parents or len(self.bias) != len(self.children):
            raise ArtifactError("a weight table's parts differ in length: the artifact is damaged")

    @property
    def n_parents(self) -> int:
        """Number of chunks."""
        return len(self.children_ptr) - 1

    @property
    def n_children(self) -> int:
        """Number of classifiers."""
        return len(self.children)

    @property
    def nbytes(self) -> int:
        """Size of all parts."""
        return sum(part.nbytes for part in self.arrays())

    def arrays(self) -> tuple[Array, ...]:
        """The arrays in the order the kernels take them."""
        return tuple(np.asarray(getattr(self, name)) for name in _TYPES)

    def check(self, what: str) -> None:
        """Look at every entry: a kernel reads these arrays without asking."""
        for name in ("children_ptr", "chunk_ptr", "word_ptr"):
            if (np.diff(getattr(self, name)) < 0).any():
                raise ArtifactError(f"{what}: {name} falls; the artifact is damaged")
        if len(self.terms) and (self.terms.min() < 0 or self.terms.max() >= self.n_terms):
            raise ArtifactError(f"{what}: a term lies outside 0..{self.n_terms - 1}; the artifact is damaged")
        if not np.array_equal(np.sort(self.children), np.arange(self.n_children)):
            raise ArtifactError(f"{what}: a child is missing or double; the artifact is damaged")
        if not (np.isfinite(self.bias).all() and np.isfinite(self.unit).all()):
            raise ArtifactError(f"{what}: a weight is no number; the artifact is damaged")
        for parent in range(self.n_parents):
            self._check_chunk(what, parent)

    def _check_chunk(self, what: str, parent: int) -> None:
        width = int(self.children_ptr[parent + 1] - self.children_ptr[parent])
        starts, full, words = self._chunk(parent)
        lengths = np.diff(starts)
        if starts[0] != 0 or starts[-1] != len(words) or (lengths < 0).any() or (lengths[full] != (width + 1) // 2).any():
            raise ArtifactError(f"{what}: a row's words do not fit its chunk; the artifact is damaged")
        if (words[np.repeat(~full, lengths)] >> 16 >= width).any():
            raise ArtifactError(f"{what}: an entry points outside its cluster; the artifact is damaged")

    def _chunk(self, parent: int) -> tuple[Array, Array, Array]:
        """Where the rows' words start and end, which rows are full, and the words."""
        first, last = self.chunk_ptr[parent] + parent, self.chunk_ptr[parent + 1] + parent + 1
        marked = self.row_start[first:last]
        words = self.words[self.word_ptr[parent] : self.word_ptr[parent + 1]]
        return (marked & (FULL - 1)).astype(np.int64), marked[:-1] >= FULL, words

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
        at = place - int(self.children_ptr[parent])
        starts, full, words = self._chunk(parent)
        halves = words.view(np.int16)
        row_of = np.repeat(np.arange(len(full)), np.diff(starts))
        mine = np.flatnonzero(~full[row_of] & (words >> 16 == at))
        rows = np.concatenate([np.flatnonzero(full), row_of[mine]])
        weights = np.concatenate([halves[2 * starts[:-1][full] + at], (words[mine] & 0xFFFF).astype(np.uint16).view(np.int16)])
        order = np.argsort(rows, kind="stable")
        order = order[weights[order] != 0]
        terms = self.terms[self.chunk_ptr[parent] : self.chunk_ptr[parent + 1]]
        return terms[rows[order]], weights[order] * self.unit[parent]

    def summary(self) -> dict[str, Any]:
        """How many classifiers, and their bytes."""
        return {"classifiers": self.n_children, "MB": round(self.nbytes / 1e6, 1)}
