"""Which arithmetic a network learns in: measured once on the network itself, then kept for the rest of its training."""

import json

import numpy as np
import torch

from xbert.stages.neural.devices import Arithmetic, bf16_is_native, fastest
from xbert.stages.neural.names import AUTO, BF16, CUDA, EAGER, FP32, SDPA
from xbert.stages.neural.network import Network
from xbert.stages.neural.ranks import Ranks
from xbert.stages.neural.states import Batch
from xbert.stages.neural.training import Keeper

_NAME = "arithmetic"
_DOCUMENTS, _MOST_TOKENS = 16, 128


def choose_arithmetic(
    network: Network, precision: str, device: torch.device, usual_tokens: int, keeper: Keeper, ranks: Ranks
) -> Arithmetic:
    """The fastest of what the settings allow at the documents' usual length; a run that goes on uses what it began with."""
    found = keeper.recall(_NAME) if ranks.leads else None
    if found is not None:
        chosen = Arithmetic(**json.loads(found["choice"].tobytes()))
    elif ranks.leads:
        chosen = _measured(network, precision, device, min(usual_tokens, _MOST_TOKENS))
        keeper.keep(_NAME, {"choice": np.frombuffer(json.dumps(vars(chosen)).encode(), np.uint8)})
    else:
        chosen = Arithmetic(FP32, EAGER)
    chosen = Arithmetic(**ranks.tell(vars(chosen)))
    network.encoder.set_attention(chosen.attention)
    return chosen


def _measured(network: Network, precision: str, device: torch.device, length: int) -> Arithmetic:
    precisions = [precision] if precision != AUTO else [BF16, FP32] if bf16_is_native(device) else [FP32]
    candidates = [Arithmetic(each, attention) for each in precisions for attention in (EAGER, SDPA)]
    ids = torch.full((_DOCUMENTS, length), network.encoder.tokenizer.padding, device=device)
    batch = Batch(ids, torch.ones_like(ids), torch.arange(_DOCUMENTS, device=device), _DOCUMENTS)
    positives = [torch.zeros(_DOCUMENTS, head.n_targets, device=device) for head in network.all_heads()]
    network.train()

    def step(arithmetic: Arithmetic) -> None:
        network.encoder.set_attention(arithmetic.attention)
        with arithmetic.context(device):
            loss = network(batch, positives)
        if loss.requires_grad:
            loss.backward()
        network.zero_grad(set_to_none=True)
        if device.type == CUDA:
            torch.cuda.synchronize()

    with torch.random.fork_rng([device] if device.type == CUDA else []):  # what dropout draws here must not change learning
        return fastest(candidates, step)
