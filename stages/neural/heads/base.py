"""What every head can do."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from xbert.stages.neural.losses import LOSSES
from xbert.stages.neural.states import States


class Head(nn.Module, ABC):
    """Scores targets (clusters of an index) from an encoder's states, by a last layer that is linear."""

    output: nn.Linear

    def __init__(self, n_targets: int, loss: str) -> None:
        super().__init__()
        self.n_targets = n_targets
        self.criterion = LOSSES[loss]

    @abstractmethod
    def read(self, states: States) -> Tensor:
        """The documents' vectors that targets are scored from, (B, D)."""

    def margins(self, vectors: Tensor) -> Tensor:
        """How much each target suits, (B, n_targets), unbounded."""
        found: Tensor = self.output(vectors)
        return found

    def loss(self, states: States, positives: Tensor) -> Tensor:
        """What is to be made small, a scalar; `positives` is (B, n_targets) of 0 and 1."""
        return self.criterion.of(self.margins(self.read(states)).float(), positives)

    def topk(self, states: States, k: int) -> tuple[Tensor, Tensor]:
        """The best k targets of each document and their scores in [0,1], best first."""
        return self.best(self.read(states), k)

    def best(self, vectors: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """The same, from what `read` gives."""
        scores = self.criterion.scores(self.margins(vectors).float())
        best = torch.topk(scores, min(k, self.n_targets), dim=1)
        return best.indices, best.values

    def start(self, prior: Tensor) -> None:
        """Begin with each target's share of the documents, (n_targets,), instead of learning it first: the bias says it."""
        with torch.no_grad():
            self.output.bias.copy_(self.criterion.margin_of(prior))
