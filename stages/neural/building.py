"""From settings to encoders and heads, and from a matcher's folder back to its network."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from xbert.artifacts.errors import ArtifactError, InputError
from xbert.artifacts.kinds.neural_matcher import WEIGHTS
from xbert.stages.neural import checkpoint
from xbert.stages.neural.encoders.base import Encoder
from xbert.stages.neural.heads.base import Head
from xbert.stages.neural.heads.cls import Cls
from xbert.stages.neural.heads.self_attention import SelfAttention
from xbert.stages.neural.names import BILSTM, CLS, ENCODERS, HEADS, LOSSES, POOLING, TRANSFORMER
from xbert.stages.neural.network import Network
from xbert.stages.neural.pretrained import find


class HeadSettings(Protocol):
    """What a head is built from."""

    @property
    def head(self) -> str:
        """Which head."""

    @property
    def loss(self) -> str:
        """What learning makes small."""

    @property
    def pooling(self) -> str:
        """Which vector stands for a document."""


class EncoderSettings(Protocol):
    """What an encoder is built from."""

    @property
    def encoder(self) -> str:
        """Which kind."""

    @property
    def model(self) -> str:
        """The name or folder of a pre-trained one."""

    @property
    def dropout(self) -> float:
        """Share of values left out while learning."""

    @property
    def freeze_layers(self) -> int:
        """Lowest layers that do not learn."""

    @property
    def words(self) -> int:
        """Most words of a vocabulary."""

    @property
    def word_vectors(self) -> str:
        """A file of word vectors, or nothing."""

    @property
    def word_width(self) -> int:
        """Size of a word's vector."""

    @property
    def lstm_width(self) -> int:
        """Size of a hidden state, each direction."""


def build_encoder(settings: EncoderSettings, texts: Iterable[str]) -> Encoder:
    """The encoder that the settings name: pre-trained, or with a vocabulary of its own from `texts`."""
    if settings.encoder == TRANSFORMER:
        from xbert.stages.neural.encoders.transformer import Transformer

        encoder: Encoder = Transformer.load(find(settings.model), settings.dropout)
    else:
        from xbert.stages.neural.encoders.bilstm import BiLstm

        widths = settings.word_width, settings.lstm_width
        encoder = BiLstm.start(texts, settings.words, *widths, settings.word_vectors, settings.dropout)
    if settings.freeze_layers > encoder.depth():
        raise InputError(f"freeze_layers = {settings.freeze_layers}, but the encoder has {encoder.depth()} layers")
    return encoder


def build_head(settings: HeadSettings, width: int, n_targets: int) -> Head:
    """The head that the settings name."""
    if settings.head == CLS:
        return Cls(width, n_targets, settings.loss, settings.pooling)
    return SelfAttention(width, n_targets, settings.loss)


def restore_network(folder: Path, described: Mapping[str, Any], n_targets: Sequence[int]) -> Network:
    """The network of a matcher's folder with its weights, ready to be asked; `described` is what the matcher's header keeps."""
    for name, known in _KNOWN.items():
        if described.get(name) not in known:
            raise ArtifactError(
                f"the matcher in {folder} has {name} = {described.get(name)!r}, which this version of xbert does not know: "
                "use the version it was made with, or remove the folder and run again"
            )
    settings = _Described(described["head"], described["loss"], described["pooling"])
    with torch.random.fork_rng(devices=[]):  # an empty shell is filled at random before its weights come
        encoder = _shell(folder, described)
        heads = [build_head(settings, encoder.width, each) for each in n_targets]
    network = Network(encoder, heads)
    checkpoint.load_weights(network, checkpoint.read_weights(folder / WEIGHTS))
    return network.eval()


_KNOWN = {"encoder": ENCODERS, "head": HEADS, "loss": LOSSES, "pooling": POOLING}


@dataclass(frozen=True)
class _Described:
    head: str
    loss: str
    pooling: str


def _shell(folder: Path, described: Mapping[str, Any]) -> Encoder:
    if described["encoder"] == BILSTM:
        from xbert.stages.neural.encoders.bilstm import BiLstm

        return BiLstm.load(folder, described)
    from xbert.stages.neural.encoders.transformer import Transformer

    return Transformer.load(folder, weights=False)
