"""Several processes that train one network together (torchrun), or one process alone."""

import json
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
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
    local: int = 1  # of them on this machine

    @classmethod
    def current(cls) -> "Ranks":
        """As torch.distributed and torchrun say; alone where neither was started."""
        if dist.is_available() and dist.is_initialized():
            world = dist.get_world_size()
            return cls(dist.get_rank(), world, int(os.environ.get("LOCAL_WORLD_SIZE", world)))
        return cls()

    @property
    def alone(self) -> bool:
        """Whether there is no one to talk to."""
        return self.world == 1

    @property
    def leads(self) -> bool:
        """Whether this process writes what is kept."""
        return self.rank == 0

    def share(self, network: nn.Module, device: torch.device, some_unused: bool) -> nn.Module:
        """The network, whose gradients are averaged over all processes; it begins with the first process's weights.

        Weights that no document uses (`some_unused`) have no gradient to wait for, and to look for them costs a little.
        """
        if self.alone:
            return network
        if device.type == "cuda":
            torch.cuda.set_device(device)
        where = [device] if device.type == "cuda" else None
        return DistributedDataParallel(network, where, find_unused_parameters=some_unused)

    def wait_with_sharing(self, shared: nn.Module, wait: bool) -> AbstractContextManager[object]:
        """While parts of a batch are added up, gradients need not be shared yet."""
        if wait and isinstance(shared, DistributedDataParallel):
            return shared.no_sync()
        return nullcontext()

    def tell(self, value: Any) -> Any:
        """The first process's value, anything that JSON can say, in all of them."""
        if self.alone:
            return value
        content = np.frombuffer(json.dumps(value).encode(), np.uint8) if self.leads else np.empty(0, np.uint8)
        length = _broadcast(np.array([len(content)], np.int64))
        return json.loads(_broadcast(content if self.leads else np.zeros(length[0], np.uint8)).tobytes())

    def tell_arrays(self, arrays: Mapping[str, Array] | None) -> dict[str, Array] | None:
        """The first process's arrays, in all of them; none where it has none."""
        if self.alone:
            return dict(arrays) if arrays is not None else None
        shapes = self.tell([[name, a.dtype.str, a.shape] for name, a in arrays.items()] if arrays is not None else None)
        if shapes is None:
            return None
        own = arrays or {name: np.zeros(shape, dtype) for name, dtype, shape in shapes}
        flat = {name: np.ascontiguousarray(own[name]).reshape(-1).view(np.uint8) for name, _, _ in shapes}
        return {name: _broadcast(flat[name]).view(dtype).reshape(shape) for name, dtype, shape in shapes}

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


def _broadcast(content: Array) -> Array:
    """The first process's content of an array that has the same size in all."""
    box = torch.from_numpy(content if content.flags.writeable else content.copy())
    if len(content):
        dist.broadcast(box, src=0)
    found: Array = box.numpy()
    return found
