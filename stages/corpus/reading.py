"""One reading of a corpus: every format's documents as blocks, all with the same labels."""

from collections.abc import Iterator
from dataclasses import replace

from xbert.artifacts.arrays import Array
from xbert.artifacts.errors import InputError
from xbert.artifacts.kinds.dataset import Labels
from xbert.stages.base import Progress
from xbert.stages.corpus.documents import Documents
from xbert.stages.corpus.labels import numbered_labels, read_label_file, read_names, unlinked_labels
from xbert.stages.corpus.lines import TextFile
from xbert.stages.corpus.notes import Notes
from xbert.stages.corpus.npz import NpzRows
from xbert.stages.corpus.pecos import read_part
from xbert.stages.corpus.sources import Corpus, Source
from xbert.stages.corpus.text_formats import Keys, gather, read_records
from xbert.stages.corpus.vocabulary import Vocabulary
from xbert.stages.corpus.xmc import SparseTextFile


class Reading:
    """Reads the sources in turn; afterwards, `labels` knows what they used."""

    def __init__(self, corpus: Corpus, keys: Keys, notes: Notes, progress: Progress) -> None:
        self.corpus, self._keys, self._notes, self._progress = corpus, keys, notes, progress
        self._given: Labels | None = None
        if corpus.labels is not None:
            self._given = read_label_file(corpus.labels, notes, corpus.numbered)
        elif corpus.names is not None:
            self._given = numbered_labels(read_names(corpus.names, notes))
        file_name = "" if corpus.labels is None else corpus.labels.name
        known = None if self._given is None else list(self._given.ids)
        self._vocabulary = Vocabulary(notes, known, file_name)
        self._shape: tuple[int, int] | None = None  # labels and terms, where the files number them

    def documents(self, source: Source) -> Iterator[Documents]:
        """The documents of a source, block by block."""
        file = TextFile(source.content, self._progress)
        if source.format == "xmc":
            sparse = SparseTextFile(file, self._notes)
            self._agree(source, sparse.header.n_labels, sparse.header.n_terms)
            yield from sparse.read()
        elif source.matrix is not None:
            with NpzRows(source.matrix) as rows:
                self._agree(source, rows.n_cols, 0)
                yield from read_part(file, rows, self._notes)
        else:
            # Only train is ever split: documents held out by the user need no group.
            keys = self._keys if source.split == "train" else replace(self._keys, group="")
            yield from gather(read_records(file, source.format, keys), file, self._vocabulary)

    def _agree(self, source: Source, n_labels: int, n_terms: int) -> None:
        name = (source.matrix or source.content).name
        if self._shape is None:
            self._shape = n_labels, n_terms
        if self._shape != (n_labels, n_terms):
            raise InputError(
                f"{name} has {n_labels} labels and {n_terms} features, train {self._shape[0]} and {self._shape[1]}: "
                f"they come from other data"
            )
        names = self.corpus.labels or self.corpus.names
        if names is not None and self._given is not None and len(self._given) != n_labels:
            raise InputError(f"{names.name} has {len(self._given)} labels, {name} {n_labels}: they come from other data")

    def labels(self) -> tuple[Labels, Array | None]:
        """The labels, and the final number of each number in the documents; None where those are final already."""
        if self._shape is not None:
            return self._given or numbered_labels([""] * self._shape[0]), None
        self._vocabulary.check()
        ids, final = self._vocabulary.in_order()
        return self._given or unlinked_labels(ids), final
