"""A trained network with its matrices in 8 bits: smaller, and faster than fp32 on a CPU that has no bf16."""

import warnings
from typing import Any

import torch
from torch import nn

from xbert.artifacts.errors import InputError
from xbert.stages.neural.names import CPU
from xbert.stages.neural.network import Network


def in_eight_bits(network: Network, device: torch.device) -> Network:
    """The same network with its encoder's weights rounded to 8 bits, a scale for each row of a matrix.

    What is multiplied with them is rounded as it comes, by its own range; sums, norms, attention, embeddings and the heads,
    which tell thousands of targets apart, stay in fp32.
    """
    if device.type != CPU:
        raise InputError(
            f"precision = 'int8' is for the CPU, and the network runs on {device.type}: set device = 'cpu' or another one"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch speaks of a successor in another package
        from torch.ao import quantization

        library: Any = quantization  # which has no annotations
        how = {nn.Linear: library.per_channel_dynamic_qconfig, nn.LSTM: library.default_dynamic_qconfig}
        return Network(library.quantize_dynamic(network.encoder, how), network.all_heads()).eval()
