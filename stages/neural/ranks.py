"""Several processes that train one network together (torchrun), or one process alone."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from xbert.artifacts.arrays import Array


@dataclass(frozen=True)
class Ranks:
    """This process's number, and how many there are."""

    rank: int = 0
    world: int = 1

    @classmethod
    def current(cls) -> "Ranks":
        """As torch.distributed says; alone where it was not started."""
        if dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size())
        return cls()

    @property
    def alone(self) -> bool:
        """Whether there is no one to talk to."""
        return self.world == 1

    @property
    def leads(self) -> bool:
        """Whether this process writes what is kept."""
        return self.rank == 0

    def share(self, network: nn.Module, device: torch.device) -> nn.Module:
        """The network, whose gradients are averaged over all processes."""
        if self.alone:
            return network
        return DistributedDataParallel(network, device_ids=[device] if device.type == "cuda" else None)

    def wait_with_sharing(self, shared: nn.Module, wait: bool) -> AbstractContextManager[object]:
        """While parts of a batch are added up, gradients need not be shared yet."""
        if wait and isinstance(shared, DistributedDataParallel):
            return shared.no_sync()
        return nullcontext()

    def tell(self, value: Any) -> Any:
        """The first process's value, in all of them."""
        if self.alone:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def tell_arrays(self, arrays: Mapping[str, Array] | None) -> dict[str, Array] | None:
        """The first process's arrays, in all of them; none where it has none."""
        found: dict[str, Array] | None = self.tell(dict(arrays) if arrays is not None else None)
        return found

    def mine(self, documents: Array) -> Array:
        """This process's share of a batch."""
        return documents[self.rank :: self.world]

    def total(self, value: float) -> float:
        """The sum over all processes."""
        if self.alone:
            return value
        box = torch.tensor([value], dtype=torch.float64)
        dist.all_reduce(box)
        return float(box.item())
