"""Label embeddings: a sparse unit vector per label, from its training documents, its own text, or both."""

from dataclasses import dataclass
from itertools import pairwise

import joblib
import numpy as np

from xbert.artifacts.arrays import Array
from xbert.artifacts.errors import InputError
from xbert.artifacts.kinds.dataset import Dataset
from xbert.artifacts.kinds.features import Features
from xbert.artifacts.sparse import Sparse
from xbert.stages.base import Shape
from xbert.stages.kernels import sums

_SUM_BYTES = 16  # of an entry read while labels are summed: room for the result, and the result
_SHARED = 0.4
PIFA, TEXT, BOTH = "pifa", "text", "pifa+text"
CONTEXTUAL, PIFA_CONTEXTUAL = "contextual", "pifa+contextual"
EMBEDDINGS = (PIFA, TEXT, BOTH, CONTEXTUAL, PIFA_CONTEXTUAL)
ENCODED = (CONTEXTUAL, PIFA_CONTEXTUAL)  # an encoder reads the labels
REFUSE = "refuse"


@dataclass(frozen=True)
class Embeddings:
    """Z, and which of its rows say what a label means; the others are placed afterwards."""

    Z: Sparse  # labels x terms, unit rows
    known: Array  # bool: the label has what its embedding is made of
    guess: Sparse  # labels x terms: a stand-in for labels that are not known, from text or from related labels


def embed_contextual(
    dataset: Dataset, features: Features, vectors: Array, embedding: str, without_text: str, threads: int, memory: int
) -> Embeddings:
    """From vectors of the labels' texts, zero where a label has none: alone, or beside PIFA.

    Alone, with `without_text` "pifa", labels without text are described by their documents in columns of their own: they
    are like each other or not, and like no label that has text.
    """
    rows = Sparse.of_dense(vectors)
    worded = rows.row_lengths() > 0
    if embedding == CONTEXTUAL and without_text == REFUSE and not worded.all():
        first = int(np.flatnonzero(~worded)[0])
        raise InputError(
            f"index.embedding = {embedding!r} needs a text for every label, and {int((~worded).sum())} of {dataset.n_labels} "
            f"have none, like {dataset.labels.ids[first]!r}: give data.labels, or set index.without_text = 'pifa'"
        )
    if embedding == CONTEXTUAL and worded.all():
        return Embeddings(rows, worded, _stand_in(rows, worded, None, dataset))
    pifa = sum_by_label(features.X["train"], dataset.train.Y, threads, memory // 4)
    if embedding == CONTEXTUAL:
        from scipy.sparse import diags_array

        pifa = Sparse.of_scipy(diags_array((~worded).astype(np.float32)) @ pifa.to_scipy())
    Z = _side_by_side(pifa, rows)
    known = Z.row_lengths() > 0
    return Embeddings(Z, known, _stand_in(Z, known, None, dataset))


def embed(dataset: Dataset, features: Features, embedding: str, threads: int, memory: int) -> Embeddings:
    """The label vectors of that name; labels without them get a stand-in from their text or their relatives."""
    rows = features.label_rows
    pifa = sum_by_label(features.X["train"], dataset.train.Y, threads, memory // 4)
    if embedding == PIFA:
        Z, known = pifa, pifa.row_lengths() > 0
    elif rows is None:
        raise InputError(
            f"index.embedding = {embedding!r} needs label texts, "
            + (
                "which given features say nothing of: "
                if dataset.labels.have_text
                else "and this dataset has none: give data.labels, or "
            )
            + "set index.embedding = 'pifa'"
        )
    elif embedding == TEXT:
        Z, known = rows, rows.row_lengths() > 0
    else:
        Z, known = _side_by_side(pifa, rows), (pifa.row_lengths() > 0) | (rows.row_lengths() > 0)
    guess = _stand_in(Z, known, rows if embedding == PIFA else pifa if embedding == TEXT else None, dataset)
    return Embeddings(Z, known, guess)


def sum_by_label(X: Sparse, Y: Sparse, threads: int, memory: int) -> Sparse:
    """PIFA (X-BERT, section 3.2): the sum of the rows of a label's documents, brought to unit length.

    Labels are summed in blocks on all threads, of which `memory` holds as many as there are threads.
    """
    documents = Y.transpose()
    read = np.r_[0, np.cumsum(X.row_lengths()[documents.indices])][documents.indptr]  # entries up to each label
    most = max(min(memory // (_SUM_BYTES * threads), int(read[-1]) // (8 * threads)), 1)
    edges = [0]
    while edges[-1] < documents.n_rows:
        stop = int(np.searchsorted(read, read[edges[-1]] + most, "right")) - 1
        edges.append(min(max(stop, edges[-1] + 1), documents.n_rows))

    def block(start: int, stop: int) -> tuple[Array, Array, Array]:
        part = documents.slice(start, stop)
        return sums.unit_sums(part.indptr, part.indices, X.indptr, X.indices, X.values(), X.n_cols)

    parts = joblib.Parallel(threads, prefer="threads")(joblib.delayed(block)(*pair) for pair in pairwise(edges))
    lengths, indices, data = ([part[i] for part in parts] for i in range(3))
    indptr = np.concatenate([np.zeros(1, np.int64), *lengths]).cumsum()
    return Sparse(indptr, np.concatenate(indices), np.concatenate(data), X.n_cols)


def entries_of_labels(shape: Shape) -> float:
    """About how many terms the labels' vectors have: a label's documents share some of theirs."""
    return _SHARED * shape.pairs * shape.entries / max(shape.n_docs, 1)


def _unit(Z: Sparse) -> Sparse:
    values = Z.values()
    norms = np.sqrt(np.add.reduceat(np.append(values, 0).astype(np.float64) ** 2, Z.indptr[:-1]))
    norms[Z.row_lengths() == 0] = 1
    scale = np.repeat(1 / np.maximum(norms, np.finfo(np.float32).tiny), Z.row_lengths())
    return Sparse(Z.indptr, Z.indices, (values * scale).astype(np.float32), Z.n_cols)


def _side_by_side(left: Sparse, right: Sparse) -> Sparse:
    """Both vectors one after the other, each of unit length, then scaled to unit length together."""
    from scipy.sparse import hstack

    return _unit(Sparse.of_scipy(hstack([left.to_scipy(), right.to_scipy()], format="csr")))


def _stand_in(Z: Sparse, known: Array, other: Sparse | None, dataset: Dataset) -> Sparse:
    """For the unknown labels: the other source's vector if it shares the terms, else the mean of parents and children."""
    from scipy.sparse import csr_array, diags_array

    missing = ~known
    if not missing.any():
        return Sparse.of_scipy(csr_array(Z.shape, dtype=np.float32))
    if other is not None and other.n_cols == Z.n_cols:
        guess = diags_array(missing.astype(np.float32)) @ other.to_scipy()
    else:
        guess = csr_array(Z.shape, dtype=np.float32)
    parents = dataset.labels.parents.to_scipy()
    empty = missing & (np.diff(guess.tocsr().indptr) == 0)
    relatives = diags_array(empty.astype(np.float32)) @ ((parents + parents.T) @ Z.to_scipy())
    return _unit(Sparse.of_scipy(guess + relatives))
