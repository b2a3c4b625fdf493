"""The encoder of X-ttention (X-BERT, section 3.3.1): vectors of whole words, read by an LSTM in both directions.

    H = (h_1, ..., h_T),  h_t = (forward_t, backward_t),  each direction 512 wide (section 5.1)

The backward LSTM reads each document turned round within its own length, so that padding always comes last and no state of
a word ever depends on it. Packed sequences do the same for one bidirectional LSTM; torch has no fast path for them on a
CPU, where learning took twice as long.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from xbert.artifacts.errors import ArtifactError, InputError
from xbert.stages.neural.encoders.base import Encoder, frozen
from xbert.stages.neural.encoders.word_vectors import read_word_vectors
from xbert.stages.neural.encoders.words import PADDING, Words
from xbert.stages.neural.states import Batch, States


class BiLstm(Encoder):
    """Starts from nothing, or from word vectors of a file."""

    def __init__(self, tokenizer: Words, word_width: int, lstm_width: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.tokenizer: Words = tokenizer
        self.width = 2 * lstm_width
        self.n_found = 0  # words that started from a file's vector
        self.words = nn.Embedding(len(tokenizer), word_width, padding_idx=PADDING)
        self.ahead = nn.LSTM(word_width, lstm_width, batch_first=True)
        self.back = nn.LSTM(word_width, lstm_width, batch_first=True)
        self.dropout = nn.Dropout(dropout)

    @classmethod
    def start(
        cls,
        texts: Iterable[str],
        words: int,
        word_width: int,
        lstm_width: int,
        word_vectors: str = "",
        dropout: float = 0.0,
    ) -> "BiLstm":
        """A new encoder for the words of those texts; what no file gives starts at random."""
        encoder = cls(Words.of(texts, words), word_width, lstm_width, dropout)
        if word_vectors:
            encoder._take_vectors(Path(word_vectors).expanduser())
        return encoder

    @classmethod
    def load(cls, folder: Path, described: Mapping[str, Any]) -> "BiLstm":
        """The encoder of a matcher's folder and of what `describe` told: an empty shell for weights that follow."""
        n_words, word_width, lstm_width, n_found = (_count(described, name) for name in _DESCRIBED)
        encoder = cls(Words.load(folder, n_words), word_width, lstm_width)
        encoder.n_found = n_found
        return encoder

    def forward(self, batch: Batch, all_layers: bool = False) -> States:
        """The words' vectors; before the LSTM, too, if all layers are asked for."""
        words = self.words(batch.ids)  # (P, T, W)
        read = self.dropout(words)
        turned = _turned(batch.mask)
        ahead, _ = self.ahead(read)
        back, _ = self.back(_reordered(read, turned))
        last = self.dropout(torch.cat([ahead, _reordered(back, turned)], dim=2))  # (P, T, 2u)
        return States((words, last) if all_layers else (last,), batch.mask, batch.owner, batch.n_docs)

    def most_tokens(self) -> int | None:
        """Any number."""
        return None

    def depth(self) -> int:
        """There is no pre-trained layer to leave as it is."""
        return 0

    def freeze(self, layers: int, embeddings: bool) -> None:
        """The word vectors, if asked."""
        if embeddings:
            frozen(self.words)

    def save_files(self, folder: Path) -> None:
        """Its words."""
        self.tokenizer.save(folder)

    def describe(self) -> Mapping[str, Any]:
        """Its sizes."""
        sizes = (len(self.tokenizer.words), self.words.embedding_dim, self.ahead.hidden_size, self.n_found)
        return dict(zip(_DESCRIBED, sizes, strict=True))

    def _take_vectors(self, path: Path) -> None:
        """Words of the file start there, all others at random in the same range."""
        found = read_word_vectors(path, dict(self.tokenizer.numbers), self.words.embedding_dim)
        if not found:
            raise InputError(f"{path} has none of the {len(self.tokenizer.words)} words of the training documents")
        vectors = torch.from_numpy(np.stack(list(found.values())))
        with torch.no_grad():
            self.words.weight *= vectors.std(correction=0)
            self.words.weight[list(found)] = vectors
        self.n_found = len(found)


_DESCRIBED = ("words", "word_width", "lstm_width", "words_found")


def _count(described: Mapping[str, Any], name: str) -> int:
    value = described.get(name)
    if type(value) is not int or value < 0:
        raise ArtifactError(f"the matcher's header says {name} = {value!r}: the artifact is damaged; remove it and run again")
    return value


def _turned(mask: Tensor) -> Tensor:
    """For every place of every row, the place it trades with when the row is turned round within its length, (P, T)."""
    places = torch.arange(mask.shape[1], device=mask.device)
    lengths = mask.sum(1, keepdim=True)
    return torch.where(places < lengths, lengths - 1 - places, places)


def _reordered(vectors: Tensor, places: Tensor) -> Tensor:
    return vectors.gather(1, places[:, :, None].expand_as(vectors))
