"""A linear layer on one vector a document (X-BERT, section 3.3.2): the first token's, or the mean of all."""

import torch
from torch import Tensor, nn

from xbert.stages.neural.encoders.base import masked_mean
from xbert.stages.neural.heads.base import Head
from xbert.stages.neural.names import FIRST, MEAN
from xbert.stages.neural.states import States


class Cls(Head):
    """W v + b, with a small W at first: a pre-trained encoder is not shaken by the first steps."""

    def __init__(self, width: int, n_targets: int, loss: str, pooling: str) -> None:
        super().__init__(n_targets, loss)
        self.pooling = pooling
        self.output = nn.Linear(width, n_targets)
        nn.init.normal_(self.output.weight, std=0.02)
        nn.init.zeros_(self.output.bias)

    def read(self, states: States) -> Tensor:
        """The pooled vectors, (B, H)."""
        return pool(states, self.pooling)


def pool(states: States, pooling: str) -> Tensor:
    """One vector a document."""
    if pooling == MEAN:
        vectors = masked_mean(states.last.float(), states.mask)
    elif pooling == FIRST:
        vectors = states.last[:, 0].float()
    else:
        last = states.mask.sum(1).clamp(min=1) - 1
        vectors = states.last[torch.arange(len(last), device=last.device), last].float()
    return states.by_document(vectors)
