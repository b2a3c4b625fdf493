"""An encoder with one head for each clustering: what is trained, kept, and asked for clusters."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from xbert.stages.neural.encoders.base import Encoder
from xbert.stages.neural.heads.base import Head
from xbert.stages.neural.states import Batch


class Network(nn.Module):
    """The heads read the same states, so that several clusterings cost little more than one."""

    def __init__(self, encoder: Encoder, heads: Sequence[Head]) -> None:
        super().__init__()
        self.encoder = encoder
        self.heads = nn.ModuleList(heads)

    def forward(self, batch: Batch, positives: Sequence[Tensor]) -> Tensor:
        """The mean of the heads' losses."""
        states = self.encoder(batch)
        losses = [head.loss(states, each) for head, each in zip(self.all_heads(), positives, strict=True)]
        return torch.stack(losses).mean()

    def answer(self, batch: Batch, k: int) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """The documents' vectors as the first head reads them, and the best k targets of every head; of none where k is 0."""
        states = self.encoder(batch)
        heads = self.all_heads()
        if k == 0:
            return heads[0].read(states), []
        vectors = [head.read(states) for head in heads]
        return vectors[0], [head.best(each, k) for head, each in zip(heads, vectors, strict=True)]

    def all_heads(self) -> list[Head]:
        """The heads, in the order of their clusterings."""
        return [head for head in self.heads if isinstance(head, Head)]
