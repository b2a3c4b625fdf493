"""Documents as rows of token numbers, and what of a long one an encoder gets to read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from xbert.artifacts.arrays import Array

TRUNCATE, HEAD_TAIL, WINDOWS = "truncate", "head+tail", "windows"
LONG = (TRUNCATE, HEAD_TAIL, WINDOWS)
_CHARACTERS = 8  # of a token, generously: a text that needs more is read whole


class Tokenizer(Protocol):
    """Cuts texts into tokens; an encoder brings its own."""

    prefix: list[int]  # what stands before and after every piece: [CLS], [SEP]
    suffix: list[int]
    padding: int

    def tokenize(self, texts: Sequence[str]) -> list[Array]:
        """The token numbers of each text, without what `prefix` and `suffix` add."""


@dataclass(frozen=True)
class Pieces:
    """What the encoder reads: one piece a document, or several windows of it."""

    indptr: Array  # int64: where a piece's tokens begin
    ids: Array  # int32
    first: Array  # int64: where a document's pieces begin; one more than there are documents

    @property
    def n_docs(self) -> int:
        """Number of documents."""
        return len(self.first) - 1

    def lengths(self) -> Array:
        """Tokens of each document's longest piece: what it costs to read it beside others."""
        pieces = np.diff(self.indptr)
        return np.maximum.reduceat(pieces, self.first[:-1]) if self.n_docs else pieces

    def take(self, documents: Array) -> "Pieces":
        """Those documents."""
        which = [np.arange(self.first[doc], self.first[doc + 1]) for doc in documents]
        every = np.concatenate(which) if which else np.empty(0, np.int64)
        rows = [self.tokens(piece) for piece in every]
        ids = np.concatenate(rows) if rows else np.empty(0, np.int32)
        return Pieces(_starts([len(row) for row in rows]), ids, _starts([len(each) for each in which]))

    def tokens(self, piece: int) -> Array:
        """One piece."""
        return self.ids[self.indptr[piece] : self.indptr[piece + 1]]


@dataclass(frozen=True)
class Reading:
    """How much of a document is read: at most `most` tokens at once, and which."""

    long: str
    most: int  # tokens of a piece, special ones included
    windows: int = 4  # most pieces of a document
    overlap: int = 16  # tokens two neighbouring windows share

    def pieces(self, texts: Iterable[str], tokenizer: Tokenizer, batch: int = 4096) -> Pieces:
        """The pieces of all texts."""
        lengths: list[int] = []
        counts: list[int] = []
        rows: list[Array] = []
        prefix, suffix = np.array(tokenizer.prefix, np.int32), np.array(tokenizer.suffix, np.int32)
        room = self.most - len(prefix) - len(suffix)
        for chunk in _chunks(texts, batch):
            for tokens in self._tokenized(chunk, tokenizer, room):
                cut = self.cut(tokens, room)
                counts.append(len(cut))
                for piece in cut:
                    row = np.concatenate([prefix, piece, suffix])
                    rows.append(row if len(row) else np.array([tokenizer.padding]))  # there must be something to read
                    lengths.append(len(rows[-1]))
        ids = np.concatenate(rows).astype(np.int32) if rows else np.empty(0, np.int32)
        return Pieces(_starts(lengths), ids, _starts(counts))

    def _tokenized(self, texts: list[str], tokenizer: Tokenizer, room: int) -> list[Array]:
        """The tokens of each text; where only the first ones are read, of no more of a long text than they need."""
        if self.long != TRUNCATE:
            return tokenizer.tokenize(texts)
        heads = [_head(text, room * _CHARACTERS) for text in texts]
        found = tokenizer.tokenize(heads)
        short = [i for i, tokens in enumerate(found) if len(tokens) < room and len(heads[i]) < len(texts[i])]
        for i, tokens in zip(short, tokenizer.tokenize([texts[i] for i in short]) if short else (), strict=True):
            found[i] = tokens
        return found

    def cut(self, tokens: Array, room: int) -> list[Array]:
        """The pieces of one document, each of at most `room` tokens."""
        if len(tokens) <= room or self.long == TRUNCATE:
            return [tokens[:room]]
        if self.long == HEAD_TAIL:
            tail = room // 2
            return [np.concatenate([tokens[: room - tail], tokens[len(tokens) - tail :]])]
        overlap = min(self.overlap, room // 2)  # a short window would else be all overlap, and never get on
        starts = range(0, len(tokens) - overlap, room - overlap)[: self.windows]
        return [tokens[start : start + room] for start in starts]


def _head(text: str, length: int) -> str:
    """At most that many characters of a text, up to the end of a word; all of it where no word ends there."""
    if len(text) <= length:
        return text
    end = max(text.rfind(" ", 0, length), text.rfind("\n", 0, length))
    return text[:end] if end > 0 else text


def _chunks(texts: Iterable[str], size: int) -> Iterable[list[str]]:
    chunk: list[str] = []
    for text in texts:
        chunk.append(text)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _starts(lengths: list[int]) -> Array:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def similar(lengths: Array, size: int, rng: np.random.Generator, among: int = 64) -> list[Array]:
    """Batches of all documents in random order, each of documents of similar length: little is read that is only padding.

    Documents are shuffled, `among` batches are sorted by length at a time, and the batches shuffled again.
    """
    order = rng.permutation(len(lengths))
    found: list[Array] = []
    for start in range(0, len(order), size * among):
        part = order[start : start + size * among]
        part = part[np.argsort(lengths[part], kind="stable")]
        found += [part[at : at + size] for at in range(0, len(part), size)]
    return [found[at] for at in rng.permutation(len(found))]
