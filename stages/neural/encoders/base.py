"""What every encoder can do."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from xbert.artifacts.errors import InputError
from xbert.stages.neural.states import Batch, States
from xbert.stages.neural.tokens import Tokenizer


class Encoder(nn.Module, ABC):
    """Reads padded rows of token numbers."""

    width: int  # of a token's vector
    tokenizer: Tokenizer

    @abstractmethod
    def forward(self, batch: Batch, all_layers: bool = False) -> States:
        """The tokens' vectors at the last layer, or at all layers."""

    @abstractmethod
    def most_tokens(self) -> int | None:
        """How many tokens it can read at once; None for any number."""

    @abstractmethod
    def depth(self) -> int:
        """How many layers can be frozen from below, the embeddings not counted."""

    @abstractmethod
    def freeze(self, layers: int, embeddings: bool) -> None:
        """Leave the lowest layers, and the embeddings if asked or below a frozen layer, as they are."""

    @abstractmethod
    def save_files(self, folder: Path) -> None:
        """Write what it takes to build it again, but for the weights."""

    def set_attention(self, attention: str) -> None:
        """How attention is computed, where there is a choice: the numbers are the same, the speed is not."""

    def checkpoint_gradients(self) -> None:
        """Compute activations again in the backward pass instead of keeping them, where that is possible."""
        raise InputError(
            "gradient_checkpointing = true, but this encoder cannot do without what it keeps: set it to false and lower at_once"
        )

    def describe(self) -> Mapping[str, Any]:
        """What a header keeps of it, to build it again."""
        return {}


def frozen(module: nn.Module) -> None:
    """No weight of the module learns."""
    for parameter in module.parameters():
        parameter.requires_grad_(False)


def masked_mean(vectors: Tensor, mask: Tensor) -> Tensor:
    """The mean of the tokens' vectors, (P, T, H) -> (P, H), without padding."""
    weights = mask[:, :, None].to(vectors.dtype)
    return (vectors * weights).sum(1) / weights.sum(1).clamp(min=1)
