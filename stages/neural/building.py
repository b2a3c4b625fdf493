"""From settings to encoders and heads."""

from collections.abc import Iterable
from typing import Protocol

from xbert.artifacts.errors import InputError
from xbert.stages.neural.encoders.base import Encoder
from xbert.stages.neural.heads.base import Head
from xbert.stages.neural.heads.cls import Cls
from xbert.stages.neural.heads.self_attention import SelfAttention
from xbert.stages.neural.names import CLS, TRANSFORMER
from xbert.stages.neural.pretrained import find


class HeadSettings(Protocol):
    """What a head is built from."""

    head: str
    loss: str
    pooling: str


class EncoderSettings(Protocol):
    """What an encoder is built from."""

    encoder: str
    model: str
    dropout: float
    freeze_layers: int
    words: int
    word_vectors: str
    word_width: int
    lstm_width: int


def build_encoder(settings: EncoderSettings, texts: Iterable[str]) -> Encoder:
    """The encoder that the settings name: pre-trained, or with a vocabulary of its own from `texts`."""
    if settings.encoder == TRANSFORMER:
        from xbert.stages.neural.encoders.transformer import Transformer

        encoder: Encoder = Transformer.load(find(settings.model), settings.dropout)
    else:
        from xbert.stages.neural.encoders.bilstm import BiLstm

        encoder = BiLstm.start(texts, settings.words, settings.word_width, settings.lstm_width, settings.word_vectors)
    if settings.freeze_layers > encoder.depth():
        raise InputError(f"freeze_layers = {settings.freeze_layers}, but the encoder has {encoder.depth()} layers")
    return encoder


def build_head(settings: HeadSettings, width: int, n_targets: int) -> Head:
    """The head that the settings name."""
    if settings.head == CLS:
        return Cls(width, n_targets, settings.loss, settings.pooling)
    return SelfAttention(width, n_targets, settings.loss)
