"""Whole words as tokens (X-BERT, section 5.1): the most frequent ones of the training texts, and one token for all numbers.

    "In 1998, 3.5 Million cats"  ->  in <number> <number> million cats

Words are lower-cased; a word that is not among them is the unknown one. Section 5.1 also cuts documents after 300 words:
that is `max_tokens`, as for every encoder.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.artifacts.atomic import write_text
from xbert.artifacts.errors import ArtifactError

PADDING, UNKNOWN, NUMBER, FIRST_WORD = 0, 1, 2, 3  # token numbers
_FILE = "words.txt"
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_TOKEN = re.compile(_NUMBER.pattern + r"(?![^\W_])|[^\W_]+")  # a number, if no letter follows; or letters and digits
_AT_ONCE = 1024  # texts


class _TokenNumbers(dict[str, int]):
    """The numbers of the words; a word that is not there is a number, or unknown."""

    def __missing__(self, word: str) -> int:
        return NUMBER if _NUMBER.fullmatch(word) else UNKNOWN


class Words:
    """A vocabulary of words, which cuts texts into them."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)
        self.prefix: list[int] = []
        self.suffix: list[int] = []
        self.padding = PADDING
        self.numbers = _TokenNumbers(zip(self.words, range(FIRST_WORD, FIRST_WORD + len(self.words)), strict=True))

    @classmethod
    def of(cls, texts: Iterable[str], most: int) -> "Words":
        """The `most` most frequent words of the texts; of equally frequent ones, the first by the alphabet."""
        counts: Counter[str] = Counter()
        texts = iter(texts)
        while some := [split(text) for _, text in zip(range(_AT_ONCE), texts, strict=False)]:
            counts.update(chain.from_iterable(some))
        words = sorted(
            (word for word in counts if not _NUMBER.fullmatch(word)),
            key=lambda word: (-counts[word], word),
        )
        return cls(words[:most])

    def __len__(self) -> int:
        return FIRST_WORD + len(self.words)

    def tokenize(self, texts: Sequence[str]) -> list[Array]:
        """Token numbers of each text; a text without words reads as one unknown word."""
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> Array:
        words = split(text)
        if not words:
            return np.array([UNKNOWN], np.int32)
        return np.fromiter(map(self.numbers.__getitem__, words), np.int32, len(words))

    def save(self, folder: Path) -> None:
        """Write `words.txt`: a word a line, in the order of their numbers."""
        write_text(folder / _FILE, "".join(f"{word}\n" for word in self.words))

    @classmethod
    def load(cls, folder: Path, n_words: int) -> "Words":
        """What `save` wrote, if it is as many words as it was."""
        path = folder / _FILE
        try:
            words = path.read_bytes().decode("utf-8").split("\n")[:-1]
        except FileNotFoundError:
            raise ArtifactError(f"{path} is missing: the artifact is damaged; remove its folder and run again") from None
        except UnicodeDecodeError:
            raise ArtifactError(f"{path} is not UTF-8: the artifact is damaged; remove its folder and run again") from None
        if len(words) != n_words or len(set(words)) != n_words:
            raise ArtifactError(f"{path} holds {len(set(words))} words where {n_words} were kept: the artifact is damaged")
        return cls(words)


def split(text: str) -> list[str]:
    """The lower-cased words and numbers of a text."""
    return _TOKEN.findall(text.lower())
