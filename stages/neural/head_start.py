"""Heads that start from a linear model on the encoder's vectors as they are, instead of from the targets' shares alone.

The output layer is fitted with the head's own loss, every target on its own:

    sum over documents of loss(w . v + b)  +  penalty / 2 |w|^2

with v the vectors, centred and scaled to a mean square of one: under 'bce', LogisticRegression(C=1/penalty) on them. Some
thousand documents and some seconds; fine-tuning then does not begin with what a linear model could have told.

L-BFGS looks for w along the principal axes of the vectors, each scaled by the curvature that the loss has there at the start:
it then needs a third of the rounds.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from xbert.artifacts.arrays import Array
from xbert.artifacts.sparse import Sparse
from xbert.stages.base import Work, batches
from xbert.stages.neural.answering import answer_all
from xbert.stages.neural.devices import Arithmetic
from xbert.stages.neural.heads.cls import Cls
from xbert.stages.neural.losses import LOSSES
from xbert.stages.neural.names import BCE, SQUARED_HINGE
from xbert.stages.neural.network import Network
from xbert.stages.neural.ranks import Ranks
from xbert.stages.neural.tokens import Pieces

_NAME = "head-start"
_TARGETS = 512  # fitted at once: documents x targets of margins are held
_ITERATIONS = 14
_LEAST_CURVATURE = 1e-3  # of the loss in a margin: a rare target's grows from almost nothing as soon as it is learnt
_PENALTY = {BCE: 30.0, SQUARED_HINGE: 500.0}  # best for documents not seen: MiniLM on 1,000 documents of EUR-Lex


def start_linear(
    network: Network,
    pieces: Pieces,
    targets: Sequence[Sparse],
    documents: int,
    device: torch.device,
    arithmetic: Arithmetic,
    work: Work,
    ranks: Ranks,
) -> None:
    """Fit the output layers on at most so many documents; kept, so that an interrupted run starts from the same."""
    found = work.recall(_NAME) if ranks.leads else None
    if found is None and ranks.leads:
        some = np.sort(work.rng(_NAME).permutation(pieces.n_docs)[:documents])
        with work.progress("reading documents to start the heads from", len(some), "documents") as bar:
            vectors, _ = answer_all(network, pieces.take(some), 0, device, arithmetic, bar.advance)
        with work.progress("starting the heads", sum(Y.n_cols for Y in targets), "targets") as bar:
            for head, Y in zip(_heads(network), targets, strict=True):
                fit(head, vectors, Y.take(some), bar.advance)
        found = {name: tensor.numpy(force=True) for name, tensor in _outputs(network).items()}
        work.keep(_NAME, found)
    told = ranks.tell_arrays(found) or {}
    with torch.no_grad():
        for name, tensor in _outputs(network).items():
            tensor.copy_(torch.from_numpy(told[name]))


def fit(head: Cls, vectors: Array, Y: Sparse, advance: Callable[[int], None] = lambda _: None) -> None:
    """The output layer that suits those vectors, (n, D). Targets that all or none of the documents have stay as they are."""
    device = head.output.weight.device
    X = torch.from_numpy(vectors).to(device, torch.float32)
    mean = X.mean(0)
    X -= mean
    scale = X.square().mean().sqrt().clamp(min=1e-6)
    X /= scale
    values, axes = torch.linalg.eigh(X.T @ X)
    X = X @ axes
    counts = Y.column_counts()
    known = np.flatnonzero((counts > 0) & (counts < Y.n_rows))
    advance(Y.n_cols - len(known))
    for start, stop in batches(len(known), _TARGETS):
        some = known[start:stop]
        with torch.enable_grad():
            along, bias = _fitted(head, X, values.clamp(min=0), _columns(Y, some, device), head.output.bias[some].detach())
        with torch.no_grad():
            weight = along @ axes.T / scale
            head.output.weight[some] = weight
            head.output.bias[some] = bias - weight @ mean
        advance(stop - start)


def _fitted(head: Cls, X: Tensor, squares: Tensor, positives: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """The minimum, by L-BFGS from the targets' shares: all documents at once, so that there is nothing random in it.

    `squares` are the sums of squares of X's columns, which are orthogonal.
    """
    penalty = next(_PENALTY[name] for name, loss in LOSSES.items() if loss is head.criterion)
    share = positives.mean(0)
    curvature = (share * (1 - share)).clamp(min=_LEAST_CURVATURE)[:, None]  # of 'bce'; near enough for the other loss
    unit = torch.rsqrt(curvature * squares + penalty)  # (targets, D)
    bias_unit = torch.rsqrt(curvature[:, 0] * len(X))
    steps = torch.zeros_like(unit, requires_grad=True)
    bias_steps = torch.zeros_like(bias, requires_grad=True)
    optimizer = torch.optim.LBFGS([steps, bias_steps], max_iter=_ITERATIONS, history_size=8, line_search_fn="strong_wolfe")

    def objective() -> Tensor:
        optimizer.zero_grad()
        weight = steps * unit
        margins = X @ weight.T + (bias + bias_steps * bias_unit)
        loss = head.criterion.of(margins, positives) + penalty / (2 * len(X)) * weight.square().sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimizer.step(objective)  # type: ignore[no-untyped-call]
    return (steps * unit).detach(), (bias + bias_steps * bias_unit).detach()


def _columns(Y: Sparse, columns: Array, device: torch.device) -> Tensor:
    """Those columns, (n, columns) of 0 and 1."""
    place = np.full(Y.n_cols, -1)
    place[columns] = np.arange(len(columns))
    rows, where = np.repeat(np.arange(Y.n_rows), Y.row_lengths()), place[Y.indices]
    dense = np.zeros((Y.n_rows, len(columns)), np.float32)
    dense[rows[where >= 0], where[where >= 0]] = 1
    return torch.from_numpy(dense).to(device)


def _heads(network: Network) -> list[Cls]:
    return [head for head in network.all_heads() if isinstance(head, Cls)]


def _outputs(network: Network) -> dict[str, Tensor]:
    """Weights and biases of all output layers."""
    heads = enumerate(_heads(network))
    return {f"{number}/{name}": tensor for number, head in heads for name, tensor in head.output.named_parameters()}
