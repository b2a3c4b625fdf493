"""What goes into an encoder and what comes out of it, as tensors."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from xbert.artifacts.arrays import Array
from xbert.artifacts.sparse import Sparse
from xbert.stages.neural.tokens import Pieces


@dataclass(frozen=True)
class Batch:
    """Pieces of some documents, padded to one length."""

    ids: Tensor  # (P, T)
    mask: Tensor  # (P, T) 1 for a token, 0 for padding
    owner: Tensor  # (P,) which document of the batch a piece belongs to
    n_docs: int


@dataclass(frozen=True)
class States:
    """What an encoder makes of a batch: the vectors of every token at every layer it was asked for, the last one last."""

    layers: tuple[Tensor, ...]  # each (P, T, H)
    mask: Tensor  # (P, T)
    owner: Tensor  # (P,)
    n_docs: int

    @property
    def last(self) -> Tensor:
        """The last layer, (P, T, H)."""
        return self.layers[-1]

    def by_document(self, vectors: Tensor) -> Tensor:
        """From a vector a piece, (P, D), to one a document, (B, D): their mean."""
        if len(vectors) == self.n_docs:
            return vectors
        total = vectors.new_zeros(self.n_docs, vectors.shape[1]).index_add(0, self.owner, vectors)
        counts = torch.bincount(self.owner, minlength=self.n_docs).clamp(min=1)
        return total / counts[:, None]


def make_batch(pieces: Pieces, documents: Array, padding: int, device: torch.device) -> Batch:
    """The pieces of those documents."""
    counts = pieces.first[documents + 1] - pieces.first[documents]
    which = np.concatenate([np.arange(pieces.first[doc], pieces.first[doc + 1]) for doc in documents])
    lengths = pieces.indptr[which + 1] - pieces.indptr[which]
    column = np.arange(int(lengths.max(initial=1)))
    filled = column < lengths[:, None]
    ids = np.full(filled.shape, padding, np.int64)
    ids[filled] = pieces.ids[(pieces.indptr[which, None] + column)[filled]]
    owner = np.repeat(np.arange(len(documents)), counts)
    arrays = (ids, filled.astype(np.int64), owner)
    tokens, mask, owners = (torch.from_numpy(each).to(device, non_blocking=True) for each in arrays)
    return Batch(tokens, mask, owners, len(documents))


def make_targets(Y: Sparse, documents: Array, device: torch.device) -> Tensor:
    """Which targets those documents have, (B, n_targets) of 0 and 1."""
    rows = Y.take(documents)
    dense = np.zeros((len(documents), Y.n_cols), np.float32)
    dense[np.repeat(np.arange(len(documents)), rows.row_lengths()), rows.indices] = 1
    return torch.from_numpy(dense).to(device, non_blocking=True)
