"""Scores of children for documents, a level of the label index at a time, block by block on all threads."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np

from xbert.artifacts.arrays import Array
from xbert.artifacts.kinds.scores import Scores
from xbert.artifacts.kinds.weights import ChunkedWeights
from xbert.artifacts.sparse import Sparse
from xbert.stages.kernels import beam

POWERS = {"sigmoid": 0, "l1-hinge": 1, "l2-hinge": 2, "l3-hinge": 3, "l4-hinge": 4}
BLOCK = 32_768  # documents scored at a time: enough that a chunk is read for many of them
_SMALL = 256  # documents not worth a thread


def scratch(n_terms: int) -> Array:
    """The scratch array the kernels look terms up in."""
    return np.full(n_terms, -1, np.int32)


@dataclass(frozen=True)
class Beam:
    """The clusters of each document and the logarithms of their scores, best first."""

    ptr: Array
    target: Array
    score: Array

    @classmethod
    def at_the_root(cls, n_docs: int) -> "Beam":
        """Before the first level: every document at the one root."""
        return cls(np.arange(n_docs + 1, dtype=np.int64), np.zeros(n_docs, np.int32), np.zeros(n_docs, np.float32))

    @classmethod
    def of_scores(cls, scores: Sparse, power: float = 1.0) -> "Beam":
        """From stored scores in [0,1], raised to a power of at least 0, which leaves their order as it is."""
        logarithms = np.log(np.maximum(scores.values(), np.finfo(np.float32).tiny))
        return cls(scores.indptr, scores.indices, logarithms * np.float32(power))

    def to_scores(self, n_targets: int) -> Scores:
        """As scores in [0,1]."""
        return Scores(Sparse(self.ptr, self.target, np.exp(np.minimum(self.score, 0)), n_targets))


def step(X: Sparse, beam_now: Beam, weights: ChunkedWeights, post_processor: str, k: int, lookup: Array) -> Beam:
    """One level down: the best k children of the documents' clusters."""
    documents = X.indptr, X.indices, X.values(), beam_now.ptr, beam_now.target, beam_now.score
    halves, power = weights.words.view(np.int16), POWERS[post_processor]
    arguments: tuple[Any, ...] = (*documents, *weights.arrays(), halves, power, k, lookup)
    return Beam(*beam.best_children(*arguments))


def by_blocks(n_docs: int, threads: int, one: Callable[[int, int], Scores], n_targets: int) -> Scores:
    """Score documents block by block on all threads, and join the blocks in order."""
    size = block_size(n_docs, threads)
    blocks = [(start, min(start + size, n_docs)) for start in range(0, n_docs, size)] or [(0, 0)]
    if len(blocks) == 1:
        return one(*blocks[0])
    pool = joblib.Parallel(min(threads, max(len(blocks), 1)), prefer="threads")
    return stack(pool(joblib.delayed(one)(start, stop) for start, stop in blocks), n_targets)


def block_size(n_docs: int, threads: int) -> int:
    """Documents in a block, so that all threads have equally many blocks; few documents stay one block."""
    if n_docs <= _SMALL:
        return max(n_docs, 1)
    rounds = -(-n_docs // (BLOCK * threads))
    return -(-n_docs // (rounds * threads))


def stack(parts: list[Scores], n_targets: int) -> Scores:
    """Scores of several groups of documents as one, in that order."""
    indptr = np.r_[np.int64(0), np.cumsum(np.concatenate([np.empty(0, np.int64), *(p.S.row_lengths() for p in parts)]))]
    indices = np.concatenate([np.empty(0, np.int32), *(p.S.indices for p in parts)])
    values = np.concatenate([np.empty(0, np.float32), *(p.S.values() for p in parts)])
    return Scores(Sparse(indptr, indices, values, n_targets))
