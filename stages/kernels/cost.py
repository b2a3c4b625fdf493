"""What training a level takes, guessed before it is trained. The constants were measured on two cores of a server processor."""

from dataclasses import dataclass

MATCHER_PASSES, RANKER_PASSES = 8.0, 3.7  # over a classifier's documents, those left out early counted by their share
PACKED_BYTES = 8  # of an entry while its cluster is trained: a word
DENSE_BYTES = 2  # of a value of a vector meanwhile
_ENTRY = 1.3e-9  # seconds for an entry of a document
_DENSE = 0.2e-9  # seconds for a value of its vector
_NEAR_ROW, _FAR_ROW = 45e-9, 120e-9  # seconds for a document, where the cluster's fit the cache and where they do not
_NEAR = 4e6  # bytes
_UNEVEN = 4  # how many times the mean the largest cluster's documents may be
_PAIR_BYTES = 40  # of a label of a document, in the matrices a level is laid out with
_WEIGHT_BYTES = 7.5  # of a kept weight: its word, its share of its row, and some more
_ROW_BYTES = 8  # of an entry of a row: a column and a value
_FULL_BYTES = 2  # of a weight in a full row
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
    width: int = 0  # dense columns

    @property
    def entries_per_cluster(self) -> float:
        """Entries of a mean cluster's documents."""
        return self.entries * min(self.parents_per_doc, self.n_parents) / self.n_parents

    @property
    def values_per_cluster(self) -> float:
        """Values of the vectors of a mean cluster's documents."""
        return self.n_docs * self.width * min(self.parents_per_doc, self.n_parents) / self.n_parents

    def core_seconds(self, passes: float) -> float:
        """Time of one core."""
        row = _NEAR_ROW if self.entries_per_cluster * PACKED_BYTES / 2 < _NEAR else _FAR_ROW
        per_entry = row * self.n_docs / max(self.entries, 1) + _ENTRY
        return self.n_children * passes * (self.entries_per_cluster * per_entry + self.values_per_cluster * _DENSE)

    def packed(self) -> float:
        """Bytes of the largest cluster's documents while its classifiers are trained, which every thread holds."""
        values = min(self.n_docs * self.width, _UNEVEN * self.values_per_cluster)
        return min(self.entries, _UNEVEN * self.entries_per_cluster) * PACKED_BYTES + values * DENSE_BYTES

    def joined(self) -> float:
        """Bytes of a document's terms and vector as one row, which prediction makes; terms alone are mapped."""
        return (self.entries / max(self.n_docs, 1) + self.width) * _ROW_BYTES if self.width else 0.0

    def laid_out(self) -> float:
        """Bytes that say which documents a cluster's classifiers see."""
        return self.n_docs * self.parents_per_doc * _PAIR_BYTES

    def weights(self) -> float:
        """Bytes of the kept weights: few documents bring as many as they have terms, many share theirs."""
        own = self.entries * self.parents_per_doc / self.n_children
        sparse = own / (1 + own / max(_COMMON * self.n_terms, 1)) * _WEIGHT_BYTES
        return self.n_children * (sparse + self.width * _FULL_BYTES)
