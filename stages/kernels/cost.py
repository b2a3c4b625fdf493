"""What training a level takes, guessed before it is trained. The constants were measured on two cores of a server processor."""

from dataclasses import dataclass

MATCHER_VISIT = 30e-9  # seconds of one core for each entry of a document, for each classifier that sees the document
RANKER_VISIT = 12e-9  # fewer passes, and rows that stay in the cache
PACKED_BYTES = 20  # of an entry while its cluster is trained: gathered, and as a word
_UNEVEN = 4  # how many times the mean the largest cluster's documents may be
_PAIR_BYTES = 40  # of a label of a document, in the matrices a level is laid out with
_WEIGHT_BYTES = 6  # of a kept weight: its word, and its share of its row
_WEIGHTS = 6  # kept weights of a classifier for each term of a mean document, where it has few documents


@dataclass(frozen=True)
class Level:
    """A level to be trained: so many classifiers in so many clusters, and how many clusters a document is in."""

    n_docs: int
    entries: int  # terms of all those documents
    n_parents: int
    n_children: int
    parents_per_doc: float

    @property
    def entries_per_cluster(self) -> float:
        """Entries of a mean cluster's documents."""
        return self.entries * min(self.parents_per_doc, self.n_parents) / self.n_parents

    def core_seconds(self, visit: float) -> float:
        """Time of one core."""
        return self.n_children * self.entries_per_cluster * visit

    def packed(self) -> float:
        """Bytes of the largest cluster's documents while its classifiers are trained, which every thread holds."""
        return min(self.entries, _UNEVEN * self.entries_per_cluster) * PACKED_BYTES

    def laid_out(self) -> float:
        """Bytes that say which documents a cluster's classifiers see."""
        return self.n_docs * self.parents_per_doc * _PAIR_BYTES

    def weights(self) -> float:
        """Bytes of the kept weights."""
        per_doc = self.entries / max(self.n_docs, 1)
        return self.n_children * per_doc * _WEIGHTS * _WEIGHT_BYTES
