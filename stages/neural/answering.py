"""Ask a trained network about many documents: batches of similar length, no gradients."""

from collections.abc import Callable

import numpy as np
import torch

from xbert.artifacts.arrays import Array
from xbert.stages.neural.devices import Arithmetic
from xbert.stages.neural.network import Network
from xbert.stages.neural.states import make_batch
from xbert.stages.neural.tokens import Pieces

Answers = tuple[Array, list[tuple[Array, Array]]]  # vectors (n, D) float16; per head ids (n, k) and scores (n, k)
_TOKENS = 8192  # of a batch: enough to keep every core busy, little enough to stay in its cache
_MARGINS = 1 << 25  # documents x targets of a batch: short texts and very many targets would need a lot of memory


def answer_all(
    network: Network,
    pieces: Pieces,
    k: int,
    device: torch.device,
    arithmetic: Arithmetic,
    advance: Callable[[int], None] = lambda _: None,
) -> Answers:
    """The vectors and the best k targets of all documents, in their order; k = 0 asks for the vectors alone."""
    network.eval()
    sizes = [(pieces.n_docs, min(k, head.n_targets)) for head in network.all_heads()] if k else []
    ids, scores = [np.empty(size, np.int32) for size in sizes], [np.empty(size, np.float32) for size in sizes]
    vectors: Array | None = None
    order = np.argsort(-pieces.lengths(), kind="stable")  # the longest first: too little memory shows at once
    most = max(_MARGINS // max((head.n_targets for head in network.all_heads()), default=1), 1) if k else pieces.n_docs
    for documents in _batches(pieces, order, most):
        batch = make_batch(pieces, documents, network.encoder.tokenizer.padding, device)
        with torch.inference_mode(), arithmetic.context(device):
            read, best = network.answer(batch, k)
        if vectors is None:
            vectors = np.empty((pieces.n_docs, read.shape[1]), np.float16)
        vectors[documents] = read.float().cpu().numpy()
        for head, (found, values) in enumerate(best):
            ids[head][documents], scores[head][documents] = found.cpu().numpy(), values.cpu().numpy()
        advance(len(documents))
    return np.empty((0, 0), np.float16) if vectors is None else vectors, list(zip(ids, scores, strict=True))


def _batches(pieces: Pieces, order: Array, most: int) -> list[Array]:
    """Documents in that order, as many at once as their tokens allow, and at most so many."""
    cost = pieces.lengths() * np.diff(pieces.first)
    found, start, longest = [], 0, 0
    for at, document in enumerate(order):
        longest = max(longest, int(cost[document]), 1)
        if at > start and (longest * (at - start + 1) > _TOKENS or at - start >= most):
            found.append(order[start:at])
            start, longest = at, max(int(cost[document]), 1)
    return [*found, order[start:]] if len(order) else []
