"""X-ttention (X-BERT, section 3.3.1): several weighted means of the tokens' vectors, and a two-layer perceptron.

    A = softmax(W2 tanh(W1 H)),  v = vec(H A^T),  margins = U relu(V v)

with H (2u x T) the tokens' vectors, W1 (350 x 2u), W2 (30 x 350), V (2000 x 30*2u): the sizes of section 5.1.
"""

import torch
from torch import Tensor, nn

from xbert.stages.neural.heads.base import Head
from xbert.stages.neural.states import States


class SelfAttention(Head):
    """Multi-head self-attention over the tokens, as in "A structured self-attentive sentence embedding"."""

    def __init__(self, width: int, n_targets: int, loss: str, attention: int = 350, rows: int = 30, hidden: int = 2000) -> None:
        super().__init__(n_targets, loss)
        self.inner = nn.Linear(width, attention, bias=False)
        self.outer = nn.Linear(attention, rows, bias=False)
        self.hidden = nn.Linear(rows * width, hidden)
        self.output = nn.Linear(hidden, n_targets)
        for layer in (self.inner, self.outer, self.hidden, self.output):
            nn.init.xavier_uniform_(layer.weight)
        for layer in (self.hidden, self.output):
            nn.init.zeros_(layer.bias)

    def attention(self, states: States) -> Tensor:
        """A, (P, rows, T): each row sums to one over the tokens that are no padding."""
        energies: Tensor = self.outer(torch.tanh(self.inner(states.last)))  # (P, T, rows)
        energies = energies.float().masked_fill(states.mask[:, :, None] == 0, float("-inf"))
        return torch.softmax(energies, dim=1).transpose(1, 2)

    def read(self, states: States) -> Tensor:
        """The hidden layer, (B, hidden)."""
        means = torch.bmm(self.attention(states), states.last.float())  # (P, rows, H)
        vectors = states.by_document(means.flatten(1))
        return torch.relu(self.hidden(vectors)).float()
