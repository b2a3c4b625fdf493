"""What fine-tuning will take in time, memory and disk, guessed from its settings and the shape of the data."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from xbert.artifacts.kinds.linear_matcher import IN_SAMPLE
from xbert.stages.base import AUTO, Estimate, Shape
from xbert.stages.neural.names import BILSTM, CLS

if TYPE_CHECKING:
    from xbert.stages.match.neural import NeuralConfig

_SECONDS = 4.5e-4  # to learn from one token of MiniLM on one core, forward and backward
_TOKENS_PER_BYTE = 0.3
_OF_A_WEIGHT = 28  # bytes: itself, its gradient, AdamW's two moments, and a copy while a checkpoint is written
_OF_A_STATE = 4 * 34  # bytes of a token's number in a layer that are kept for the backward pass
_ROWS, _HIDDEN = 30, 2000  # of X-ttention's head
_ADVICE = "a lower match.at_once or match.max_tokens, or match.gradient_checkpointing = true"


class Size(NamedTuple):
    """How large an encoder is."""

    weights: float
    width: int  # of a token's vector
    depth: int  # layers


_MINILM = Size(22.7e6, 384, 6)


def estimate(config: "NeuralConfig", shape: Shape, threads: int) -> Estimate:
    """Tokens read, forward and backward in every epoch, forward once more at the end."""
    encoder = size_of(config)
    text = _TOKENS_PER_BYTE * shape.text_bytes / max(shape.n_docs + shape.n_held_out, 1)
    per_doc = min(config.max_tokens, text + 2)
    learnt, asked = shape.n_docs * config.epochs, shape.n_held_out * (config.epochs + 1) / 2
    if config.train_vectors or config.train_scores == IN_SAMPLE:
        asked += shape.n_docs
    weight = encoder.weights / _MINILM.weights
    seconds = _SECONDS * weight * per_doc * (learnt + asked / 3) / threads
    weights = encoder.weights + _head(config, encoder.width, shape.n_clusters)
    at_once = config.batch if config.at_once == AUTO else int(config.at_once)
    layers = 1 + encoder.depth / 34 if config.gradient_checkpointing else encoder.depth
    memory = _OF_A_WEIGHT * weights + _OF_A_STATE * encoder.width * layers * at_once * per_doc
    disk = 4 * weights + 2 * encoder.width * (shape.n_docs + shape.n_held_out)
    if config.freeze_layers and config.cache_frozen:
        disk += 2 * encoder.width * per_doc * shape.n_docs  # while it learns: what frozen layers give for every token
    return Estimate(seconds, memory, memory, disk, _ADVICE)


def size_of(config: "NeuralConfig") -> Size:
    """That of a BiLSTM from its settings, that of an encoder in a folder from its files; any other may be like MiniLM."""
    if config.encoder == BILSTM:
        recurrent = 2 * 4 * config.lstm_width * (config.word_width + config.lstm_width + 2)
        return Size(config.words * config.word_width + recurrent, 2 * config.lstm_width, 1)
    folder = Path(config.model).expanduser()
    files = list(folder.glob("*.safetensors")) if folder.is_dir() else []
    if not files:
        return _MINILM
    try:
        said = json.loads((folder / "config.json").read_text("utf-8"))
    except (OSError, ValueError):
        said = {}
    width, depth = (said.get(name) if isinstance(said, dict) else None for name in ("hidden_size", "num_hidden_layers"))
    weights = sum(file.stat().st_size for file in files) / 4
    return Size(weights, width if isinstance(width, int) else _MINILM.width, depth if isinstance(depth, int) else _MINILM.depth)


def _head(config: "NeuralConfig", width: int, n_clusters: int) -> float:
    if config.head == CLS:
        return float(width * n_clusters)
    return float(_ROWS * width * _HIDDEN + _HIDDEN * n_clusters)
