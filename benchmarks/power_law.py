"""A corpus of any size with power laws where real ones have them, and something to learn: for benchmarks/scale.py.

python benchmarks/power_law.py FOLDER --labels 100000 [--docs-per-label 2] [--test-docs 10000] [--seed 0]

Labels stand in the order of a random tree of topics, so that a topic is a range of places and its parent a wider one. A
document has a first label and others near it in the tree. Each of its words belongs to one of its labels, and is that label's
own word, a word of a topic above it (which its sibling labels use too), or a word of the language at large.

- label frequency: Zipf with exponent 0.8, and one training document for every label: three in four have 1 to 5
- word frequency: Zipf-Mandelbrot; own words and topic words are drawn from the rarer 99 % of the vocabulary
- vocabulary: Heaps' law, 50,000 words at 10,000 labels and 1,000,000 at 1,000,000 labels

Every block of documents has random numbers of its own, so the same settings give the same bytes, and memory holds the labels,
the vocabulary and one block. Writes train.jsonl, test.jsonl, and corpus.json last, which says that the others are whole.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

VERSION = 1  # raised whenever other bytes come out, so that older corpora are made anew
SPLITS = ("train", "test")
BLOCK = 50_000  # documents made at a time
LABEL_EXPONENT = 0.8
N_LABELS_OF_DOC = (0.1, 0.2, 0.2, 0.2, 0.3)  # shares of documents with 1 to 5, before labels drawn twice are dropped
KIN = (0.7, 0.2, 0.1)  # a further label comes from the first one's topic, the topic above, or anywhere
LABELS_PER_TOPIC, TOPICS_PER_TOPIC = 12, 12  # means: the tree's branches are cut at random
SHORTEST, LONGEST = 10, 20  # words of a document
OWN, OF_TOPIC = 0.2, 0.3  # shares of words that are the label's own, or a topic's; the rest is the language's
OWN_WORDS, TOPIC_WORDS = 4, 24
MANDELBROT = 5.0  # flattens the head of the words' Zipf law
CONSONANTS, VOWELS = "bcdfghjklmnpqrstvwxz", "aeiou"


@dataclass(frozen=True)
class Settings:
    """What decides every byte of a corpus."""

    labels: int
    docs_per_label: float = 2.0
    test_docs: int = 10_000
    seed: int = 0
    version: int = VERSION

    @property
    def train_docs(self) -> int:
        """At least one for each label."""
        return max(self.labels, round(self.labels * self.docs_per_label))

    @property
    def n_words(self) -> int:
        """Heaps' law."""
        return max(1000, int(50_000 * (self.labels / 10_000) ** 0.65))


class PowerLaw:
    """The labels, their tree of topics and their words: everything but the documents."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        rng = np.random.default_rng([settings.seed, settings.labels])
        # A label is named by its place in frequency, which tells nothing of its place in the tree.
        self.name = rng.permutation(settings.labels)
        self.mass = np.concatenate([[0.0], np.cumsum((self.name + 1.0) ** -LABEL_EXPONENT)])
        self.topics = tree(settings.labels, rng)
        self.words = [spell(rank) for rank in range(settings.n_words)]

    def draw(self, rng: np.random.Generator, first: Array, last: Array) -> Array:
        """A label from each range of places, in proportion to frequency."""
        low, high = self.mass[first], self.mass[last]
        found = np.searchsorted(self.mass, low + rng.random(low.shape) * (high - low), "right") - 1
        return np.asarray(np.clip(found, first, last - 1))

    def anywhere(self, rng: np.random.Generator, n: int) -> Array:
        """Labels in proportion to frequency."""
        return self.draw(rng, np.zeros(n, np.int64), np.full(n, self.settings.labels))

    def train_firsts(self) -> Array:
        """The first label of every training document: each label once, the rest in proportion to frequency."""
        rng = np.random.default_rng([self.settings.seed, self.settings.labels, 1])
        more = self.anywhere(rng, self.settings.train_docs - self.settings.labels)
        return rng.permutation(np.concatenate([np.arange(self.settings.labels), more]))

    def test_firsts(self) -> Array:
        """The first label of every test document, mixed as in training."""
        rng, n = np.random.default_rng([self.settings.seed, self.settings.labels, 2]), self.settings.test_docs
        evenly = rng.random(n) < self.settings.labels / self.settings.train_docs
        return np.where(evenly, rng.integers(self.settings.labels, size=n), self.anywhere(rng, n))

    def labels_of(self, rng: np.random.Generator, firsts: Array) -> Array:
        """The labels of each document, (n_docs, 5): their places, then -1."""
        n = len(firsts)
        most = len(N_LABELS_OF_DOC)
        ranges = [topic_range(bounds, firsts) for bounds in self.topics[:2]]
        ranges += [(np.zeros(n, np.int64), np.full(n, self.settings.labels))] * (len(KIN) - len(ranges))
        low, high = (np.stack(ends, axis=1) for ends in zip(*ranges, strict=True))
        kin = rng.choice(len(KIN), (n, most - 1), p=KIN)
        others = self.draw(rng, np.take_along_axis(low, kin, 1), np.take_along_axis(high, kin, 1))
        labels = np.column_stack([firsts, others])
        labels[np.arange(most) > rng.choice(most, n, p=N_LABELS_OF_DOC)[:, None]] = -1
        for at in range(1, most):
            labels[(labels[:, :at] == labels[:, at : at + 1]).any(axis=1), at] = -1
        return -np.sort(-labels, axis=1)

    def words_of(self, rng: np.random.Generator, labels: Array) -> Array:
        """Words for documents of these labels, (n_docs, LONGEST): their places in frequency."""
        shape = (len(labels), LONGEST)
        owner = np.take_along_axis(labels, (rng.random(shape) * (labels >= 0).sum(axis=1)[:, None]).astype(np.int64), 1)
        source, skewed = rng.random(shape), rng.random(shape) ** 1.5  # a label and a topic have favourite words, too
        n_words = self.settings.n_words
        words = (MANDELBROT * ((1 + n_words / MANDELBROT) ** rng.random(shape) - 1)).astype(np.int64)
        own = source < OWN
        words[own] = self._rare(0, owner[own], (skewed[own] * OWN_WORDS).astype(np.int64))
        depth = np.minimum(rng.geometric(0.5, shape), len(self.topics))  # half of them from the nearest topic
        for level, bounds in enumerate(self.topics, 1):
            mine = (source >= OWN) & (source < OWN + OF_TOPIC) & (depth == level)
            topic = np.searchsorted(bounds, owner[mine], "right") - 1
            words[mine] = self._rare(level, topic, (skewed[mine] * TOPIC_WORDS).astype(np.int64))
        return np.minimum(words, n_words - 1)

    def _rare(self, level: int, number: Array, which: Array) -> Array:
        """A topic's or label's words, found by hashing (splitmix64) rather than kept in a table."""
        x = (number.astype(np.uint64) << np.uint64(16)) + which.astype(np.uint64) + (np.uint64(level) << np.uint64(8))
        x += np.uint64((self.settings.seed + 1) * 0x9E3779B97F4A7C15 % 2**64)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        common = self.settings.n_words // 100
        return common + ((x ^ (x >> np.uint64(31))) % np.uint64(self.settings.n_words - common)).astype(np.int64)

    def lines(self, split: int, firsts: Array) -> Iterator[tuple[list[str], int]]:
        """The documents as JSON lines, a block at a time, and how many labels they have together."""
        for number, start in enumerate(range(0, len(firsts), BLOCK)):
            rng = np.random.default_rng([self.settings.seed, self.settings.labels, split, number])
            labels = self.labels_of(rng, firsts[start : start + BLOCK])
            lengths = rng.integers(SHORTEST, LONGEST + 1, len(labels)).tolist()
            names = np.where(labels >= 0, self.name[labels], -1).tolist()
            spelling = self.words.__getitem__
            block = []
            for words, length, mine in zip(self.words_of(rng, labels).tolist(), lengths, names, strict=True):
                text = " ".join(map(spelling, words[:length]))
                ids = '", "'.join([f"L{name:07d}" for name in mine if name >= 0])
                block.append(f'{{"text": "{text}", "labels": ["{ids}"]}}\n')
            yield block, int((labels >= 0).sum())


def tree(n_labels: int, rng: np.random.Generator) -> list[Array]:
    """Where the topics of each level begin and end, the smallest topics first.

    The cuts of a level are the first few of one random order, so that those of a wider level are among them: nested.
    """
    cuts, levels, n_topics = rng.permutation(n_labels - 1) + 1, [], n_labels // LABELS_PER_TOPIC
    while n_topics > 1:
        levels.append(np.concatenate([[0], np.sort(cuts[: n_topics - 1]), [n_labels]]))
        n_topics //= TOPICS_PER_TOPIC
    return levels or [np.array([0, n_labels])]


def topic_range(bounds: Array, places: Array) -> tuple[Array, Array]:
    """From where to where the topic of each place goes."""
    topic = np.searchsorted(bounds, places, "right") - 1
    return bounds[topic], bounds[topic + 1]


def spell(rank: int) -> str:
    """A word of its own for every rank: two syllables or more, as in a language the shorter the more frequent."""
    syllables: list[str] = []
    base = len(CONSONANTS) * len(VOWELS)
    while rank or len(syllables) < 2:
        rank, digit = divmod(rank, base)
        syllables.append(CONSONANTS[digit // len(VOWELS)] + VOWELS[digit % len(VOWELS)])
    return "".join(syllables)


def make(folder: Path, settings: Settings) -> dict[str, Any]:
    """Write the corpus, unless a whole one of these settings is there; returns its facts."""
    note = folder / "corpus.json"
    if note.exists():
        facts: dict[str, Any] = json.loads(note.read_text("utf-8"))
        sizes = {name: (folder / f"{name}.jsonl").stat().st_size for name in SPLITS if (folder / f"{name}.jsonl").exists()}
        if facts["settings"] == asdict(settings) and sizes == {name: facts[name]["bytes"] for name in SPLITS}:
            return facts
        note.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    begun = time.perf_counter()
    corpus = PowerLaw(settings)
    facts = {"settings": asdict(settings), "vocabulary": settings.n_words}
    for split, (name, firsts) in enumerate(zip(SPLITS, (corpus.train_firsts(), corpus.test_firsts()), strict=True)):
        part, pairs = folder / f"{name}.jsonl.part", 0
        with part.open("w", encoding="ascii") as stream:
            for block, n_pairs in corpus.lines(split, firsts):
                stream.writelines(block)
                pairs += n_pairs
        facts[name] = {"docs": len(firsts), "pairs": pairs, "bytes": part.stat().st_size}
        part.replace(folder / f"{name}.jsonl")
    facts["seconds"] = round(time.perf_counter() - begun, 2)
    part = folder / "corpus.json.part"
    part.write_text(json.dumps(facts, indent=1), "utf-8")
    part.replace(note)
    return facts


def main() -> None:
    """The command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path)
    options.add_argument("--labels", type=int, required=True)
    options.add_argument("--docs-per-label", type=float, default=2.0)
    options.add_argument("--test-docs", type=int, default=10_000)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    print(json.dumps(make(given.folder, Settings(given.labels, given.docs_per_label, given.test_docs, given.seed)), indent=1))


if __name__ == "__main__":
    main()
