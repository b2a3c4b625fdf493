"""What training a level takes, guessed before it is trained. The constants were measured on two cores of a server processor."""

from dataclasses import dataclass

MATCHER_PASSES, RANKER_PASSES = 8.0, 3.7  # over a classifier's documents, those left out early counted by their share
PACKED_BYTES = 8  # of an entry while its cluster is trained: a word
_ENTRY = 1.3e-9  # seconds for an entry of a document
_NEAR_ROW, _FAR_ROW = 45e-9, 120e-9  # seconds for a document, where the cluster's fit the cache and where they do not
_NEAR = 4e6  # bytes
_UNEVEN = 4  # how many times the mean the largest cluster's documents may be
_PAIR_BYTES = 40  # of a label of a document, in the matrices a level is laid out with
_WEIGHT_BYTES = 7.5  # of a kept weight: its word, its share of its row, and some more
_COMMON = 0.05  # share of the terms that a classifier of very many documents has weights for


@dataclass(frozen=True)
class Level:
    """A level to be trained: so many classifiers in so many clusters, and how many clusters a document is in."""

    n_docs: int
    entries: int  # terms of all those documents
    n_terms: int
    n_parents: int
    n_children: int
    parents_per_doc: float

    @property
    def entries_per_cluster(self) -> float:
        """Entries of a mean cluster's documents."""
        return self.entries * min(self.parents_per_doc, self.n_parents) / self.n_parents

    def core_seconds(self, passes: float) -> float:
        """Time of one core."""
        row = _NEAR_ROW if self.entries_per_cluster * PACKED_BYTES / 2 < _NEAR else _FAR_ROW
        per_entry = row * self.n_docs / max(self.entries, 1) + _ENTRY
        return self.n_children * self.entries_per_cluster * passes * per_entry

    def packed(self) -> float:
        """Bytes of the largest cluster's documents while its classifiers are trained, which every thread holds."""
        return min(self.entries, _UNEVEN * self.entries_per_cluster) * PACKED_BYTES

    def laid_out(self) -> float:
        """Bytes that say which documents a cluster's classifiers see."""
        return self.n_docs * self.parents_per_doc * _PAIR_BYTES

    def weights(self) -> float:
        """Bytes of the kept weights: few documents bring as many as they have terms, many share theirs."""
        own = self.entries * self.parents_per_doc / self.n_children
        return self.n_children * own / (1 + own / max(_COMMON * self.n_terms, 1)) * _WEIGHT_BYTES
