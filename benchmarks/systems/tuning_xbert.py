"""Fine-tuning by xbert's own loop, stages/neural/training.py, with its own choice of arithmetic."""

import time
from typing import Any

import numpy as np
import torch

from systems import protocol, tuning
from systems.tuning import MEAN, Curve, Settings
from xbert.artifacts.arrays import Array
from xbert.artifacts.sparse import Sparse
from xbert.stages.neural import training
from xbert.stages.neural.arithmetic import choose_arithmetic
from xbert.stages.neural.encoders.transformer import Transformer
from xbert.stages.neural.heads.cls import Cls
from xbert.stages.neural.names import AUTO, BCE
from xbert.stages.neural.network import Network
from xbert.stages.neural.pretrained import MINILM, find
from xbert.stages.neural.ranks import Ranks
from xbert.stages.neural.tokens import TRUNCATE, Reading


class Nowhere:
    """Keeps no checkpoints: the Trainer keeps none either."""

    def recall(self, name: str) -> dict[str, Array] | None:
        return None

    def keep(self, name: str, piece: dict[str, Array]) -> None:
        return None

    def rng(self, name: str) -> np.random.Generator:
        return np.random.default_rng(0)


def in_order(lengths: Array, size: int, *_: Any) -> list[Array]:
    """Batches in the documents' own order, as the Trainer is told to take them; xbert would sort them by length."""
    return [np.arange(at, min(at + size, len(lengths))) for at in range(0, len(lengths), size)]


def make_network(settings: Settings) -> Network:
    """The network, its head started as the Trainer's is."""
    if settings.pooling != MEAN:
        raise SystemExit("xbert's side pools by the mean")
    encoder = Transformer.load(find(MINILM), settings.dropout)
    head = Cls(encoder.width, settings.n_targets, BCE, MEAN)
    weights, bias = tuning.head_start(settings, encoder.width)
    with torch.no_grad():
        head.output.weight.copy_(torch.from_numpy(weights))
        head.output.bias.copy_(torch.from_numpy(bias))
    return Network(encoder, [head])


def xbert_curve(texts: list[str], targets: list[list[int]], settings: Settings) -> Curve:
    """One pass over the documents, in their order; the rate is that of both parts."""
    torch.set_num_threads(settings.threads)
    torch.manual_seed(settings.seed)
    training.similar = in_order  # type: ignore[assignment]
    network, device, keeper = make_network(settings), torch.device("cpu"), Nowhere()
    reading = Reading(TRUNCATE, settings.tokens)
    tokenize_s, pieces = protocol.clock(lambda: reading.pieces(texts, network.encoder.tokenizer))
    arithmetic = choose_arithmetic(network, settings.options.get("precision", AUTO), device, settings.tokens, keeper, Ranks())
    # xbert sums over targets where the Trainer averages: its longest gradient is as many times longer.
    plan = training.Plan(
        epochs=1, batch=settings.batch, at_once=settings.batch, encoder_rate=settings.rate, head_rate=settings.rate,
        warmup=0.0, weight_decay=0.0, clip=float(settings.n_targets), patience=0, seconds_between_checkpoints=1e9,
    )  # fmt: skip
    examples = training.Examples(pieces, [Sparse.of_rows([sorted(each) for each in targets], settings.n_targets)])
    loop = training.Training(network, examples, plan, device, arithmetic, keeper, None)
    losses, seconds, documents = [], [], []
    before = time.perf_counter()
    for step in loop.steps():
        now = time.perf_counter()
        losses.append(step.loss / settings.n_targets)
        seconds.append(now - before)
        documents.append(step.documents)
        before = now
    about = f"{arithmetic.precision}, attention {arithmetic.attention}, fused AdamW"
    return Curve(losses, seconds, documents, tokenize_s, about)


if __name__ == "__main__":
    tuning.serve(xbert_curve)
