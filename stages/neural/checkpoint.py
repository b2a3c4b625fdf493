"""The whole state of a training as plain arrays, so that it can be kept, and taken up as if nothing had happened."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file
from torch import nn
from torch.optim import Optimizer

from xbert.artifacts.arrays import Array
from xbert.artifacts.errors import ArtifactError

_FACTS = "facts"


def take(network: nn.Module, optimizer: Optimizer, facts: Mapping[str, Any]) -> dict[str, Array]:
    """Weights, the optimizer's memory, random numbers, and `facts` (JSON)."""
    arrays = {f"weight/{name}": _array(tensor) for name, tensor in network.state_dict().items()}
    for number, state in optimizer.state_dict()["state"].items():
        arrays |= {f"optimizer/{number}/{name}": _array(value) for name, value in state.items()}
    arrays["random"] = _array(torch.get_rng_state())
    if torch.cuda.is_available():
        arrays["random-cuda"] = _array(torch.cuda.get_rng_state())
    arrays[_FACTS] = np.frombuffer(json.dumps(dict(facts)).encode(), np.uint8)
    return arrays


def facts_of(arrays: Mapping[str, Array]) -> dict[str, Any]:
    """What `take` was given as facts."""
    found: dict[str, Any] = json.loads(arrays[_FACTS].tobytes())
    return found


def restore(network: nn.Module, optimizer: Optimizer, arrays: Mapping[str, Array]) -> None:
    """Put everything back where `take` found it."""
    load_weights(network, {name.removeprefix("weight/"): a for name, a in arrays.items() if name.startswith("weight/")})
    state: dict[int, dict[str, torch.Tensor]] = {}
    for name, array in arrays.items():
        if name.startswith("optimizer/"):
            _, number, what = name.split("/")
            state.setdefault(int(number), {})[what] = torch.from_numpy(array.copy())
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    torch.set_rng_state(torch.from_numpy(arrays["random"].copy()))
    if torch.cuda.is_available() and "random-cuda" in arrays:
        torch.cuda.set_rng_state(torch.from_numpy(arrays["random-cuda"].copy()))


def weights_of(network: nn.Module) -> dict[str, Array]:
    """The network's weights by name."""
    return {name: _array(tensor) for name, tensor in network.state_dict().items()}


def read_weights(path: Path) -> dict[str, Array]:
    """The weights of a file in the safetensors format, which holds arrays and nothing that could run."""
    try:
        found: dict[str, Array] = load_file(path)
    except FileNotFoundError:
        raise ArtifactError(f"{path} is missing: the artifact is damaged; remove its folder and run again") from None
    except SafetensorError as error:
        raise ArtifactError(f"{path} holds no weights ({error}); remove its folder and run again") from None
    return found


def load_weights(network: nn.Module, weights: Mapping[str, Array]) -> None:
    """Give the network those weights; those of another architecture are refused."""
    own = network.state_dict()
    for name in sorted(own.keys() ^ weights.keys()):
        where = "the network has no" if name not in own else "the checkpoint lacks"
        raise ArtifactError(f"{where} {name!r}: the weights are of another architecture; remove the folder and run again")
    for name, tensor in own.items():
        if tuple(weights[name].shape) != tuple(tensor.shape):
            raise ArtifactError(
                f"{name} is {tuple(weights[name].shape)} in the checkpoint, {tuple(tensor.shape)} in the network: "
                "they are of different architectures, tokenizers or data; remove the folder and run again"
            )
    network.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in weights.items()})


def _array(tensor: torch.Tensor) -> Array:
    found: Array = tensor.detach().cpu().contiguous().numpy().copy()
    return found
