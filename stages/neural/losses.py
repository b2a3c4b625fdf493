"""Losses over all targets at once, each with the score in [0,1] that belongs to it.

Summed over a document's targets, not averaged: clusterings of different sizes then weigh about the same in one encoder.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from xbert.stages.neural.names import BCE, SQUARED_HINGE

_LEAST = 1e-6


@dataclass(frozen=True)
class Loss:
    """How far margins are from the truth, how a margin becomes a score, and which margin stands for a share."""

    of: Callable[[Tensor, Tensor], Tensor]  # margins (B, K), positives (B, K) of 0 and 1 -> scalar
    scores: Callable[[Tensor], Tensor]  # margins -> [0,1], rising
    margin_of: Callable[[Tensor], Tensor]  # share of the documents -> the margin to start from


def _bce(margins: Tensor, positives: Tensor) -> Tensor:
    return functional.binary_cross_entropy_with_logits(margins, positives, reduction="sum") / len(margins)


def _squared_hinge(margins: Tensor, positives: Tensor) -> Tensor:
    return functional.relu(1 - (2 * positives - 1) * margins).square().sum() / len(margins)


def _hinge_scores(margins: Tensor) -> Tensor:
    return torch.exp(-(functional.relu(1 - margins) ** 3))  # as the linear matchers do: rank/match `l3-hinge`


LOSSES = {
    BCE: Loss(_bce, torch.sigmoid, lambda share: torch.logit(share.clamp(_LEAST, 1 - _LEAST))),
    SQUARED_HINGE: Loss(_squared_hinge, _hinge_scores, lambda share: 2 * share - 1),
}
