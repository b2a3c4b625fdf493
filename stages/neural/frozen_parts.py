"""The part of an encoder that is read once, and how the rest goes on from it."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from xbert.stages.neural.devices import Arithmetic
from xbert.stages.neural.heads.cls import Cls, pool
from xbert.stages.neural.network import Network
from xbert.stages.neural.states import Batch, States

if TYPE_CHECKING:
    from xbert.stages.neural.encoders.transformer import Transformer


class NotKept(Exception):
    """Why the frozen layers have to be read anew in every epoch."""


@dataclass(frozen=True)
class Part(ABC):
    """What is read once."""

    encoder: "Transformer"
    per_token: ClassVar[bool] = True  # a row a token, or a row a document
    dtype: ClassVar[type[np.floating[Any]]] = np.float16

    @abstractmethod
    def give(self, batch: Batch) -> Tensor:
        """What is kept of a batch, (P, T, H) or (B, 1, H)."""

    def go_on(self, batch: Batch, given: Tensor) -> States:
        """The encoder's states, from what was kept."""
        return States((given.float(),), batch.mask, batch.owner, batch.n_docs)

    def whole(self, batch: Batch) -> Tensor:
        """The last of those states with nothing kept: what `go_on` must come to."""
        return self.give(batch)


@dataclass(frozen=True)
class _Documents(Part):
    """A whole encoder under heads that read one vector a document: that vector, as if it were the only token's."""

    pooling: str
    per_token = False
    dtype = np.float32  # so few that nothing need be rounded

    def give(self, batch: Batch) -> Tensor:
        return pool(self.encoder.read(batch), self.pooling)[:, None]


@dataclass(frozen=True)
class _Tokens(Part):
    """A whole encoder under heads that read all tokens."""

    def give(self, batch: Batch) -> Tensor:
        return self.encoder.read(batch).last


@dataclass(frozen=True)
class _Layers(Part):
    """The lowest layers of any Hugging Face encoder: while the rest goes on, they all answer with what was kept.

    So the library's own code makes masks and positions for the layers above, whatever the architecture does there.
    """

    lowest: Sequence[nn.Module]
    turned: bool  # XLNet: (T, P, H)
    rest: tuple[Any, ...] | None  # where a layer gives a tuple: what follows the tokens' vectors
    given: torch.dtype

    @classmethod
    def of(cls, encoder: "Transformer", device: torch.device) -> "_Layers":
        """See what they give; what they depend on may not learn."""
        lowest, batch = list(encoder.layers())[: encoder.frozen_layers], small_batch(encoder, device)
        output = output_of(encoder, lowest[-1], batch)
        first, rest = (output[0], output[1:]) if isinstance(output, tuple) else (output, None)
        if not isinstance(first, Tensor) or any(each is not None for each in rest or ()):
            raise NotKept("they pass on more than the tokens' vectors")
        shapes = [(*shape, encoder.width) for shape in (batch.ids.shape, batch.ids.T.shape)]
        if tuple(first.shape) not in shapes:
            raise NotKept(f"they give {tuple(first.shape)} where one vector a token would be {shapes[0]}")
        if first.requires_grad:
            raise NotKept("something that learns feeds them")
        return cls(encoder, lowest, tuple(first.shape) == shapes[1], rest, first.dtype)

    def give(self, batch: Batch) -> Tensor:
        output = output_of(self.encoder, self.lowest[-1], batch)
        given: Tensor = output if self.rest is None else output[0]
        return given.transpose(0, 1) if self.turned else given

    def go_on(self, batch: Batch, given: Tensor) -> States:
        given = (given.transpose(0, 1) if self.turned else given).to(self.given)
        with _answering(self.lowest, given if self.rest is None else (given, *self.rest)):
            return self.encoder.read(batch)

    def whole(self, batch: Batch) -> Tensor:
        return self.encoder.read(batch).last


@contextmanager
def _answering(layers: Sequence[nn.Module], output: Any) -> Iterator[None]:
    """Inside, those layers compute nothing and give `output`."""
    for layer in layers:
        layer.forward = lambda *_, **__: output
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


class _Reached(Exception):
    """Thrown to leave an encoder after a layer: what is above is not needed."""

    def __init__(self, output: Any) -> None:
        super().__init__()
        self.output = output


def output_of(encoder: "Transformer", layer: nn.Module, batch: Batch) -> Any:
    """What that layer gives, or None if the encoder never asks it."""

    def leave(module: nn.Module, arguments: Any, output: Any) -> None:
        raise _Reached(output)

    handle = layer.register_forward_hook(leave)
    try:
        encoder.read(batch)
    except _Reached as reached:
        return reached.output
    finally:
        handle.remove()
    return None


def feeders(output: Any) -> list[nn.Parameter]:
    """The weights that learn and that a layer's output depends on, by autograd's own account of it."""
    first = output[0] if isinstance(output, tuple) else output
    todo, seen, found = [getattr(first, "grad_fn", None)], set(), []
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.append(node.variable)
        todo += [before for before, _ in node.next_functions]
    return found


def small_batch(encoder: "Transformer", device: torch.device) -> Batch:
    """One document of three tokens: to see what a layer gives."""
    ids = torch.full((1, 3), encoder.tokenizer.padding, device=device)
    return Batch(ids, torch.ones_like(ids), torch.zeros(1, dtype=torch.int64, device=device), 1)


def part_of(network: Network, device: torch.device, arithmetic: Arithmetic) -> Part:
    """As little of the network as what learns can go on from."""
    encoder, heads = cast("Transformer", network.encoder), network.all_heads()
    if any(parameter.requires_grad for parameter in encoder.parameters()):
        with arithmetic.context(device):
            return _Layers.of(encoder, device)
    first = heads[0]
    if isinstance(first, Cls) and all(isinstance(head, Cls) and head.pooling == first.pooling for head in heads):
        return _Documents(encoder, first.pooling)
    return _Tokens(encoder)
