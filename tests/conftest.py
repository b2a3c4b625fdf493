"""A place for a stage to run in, a small corpus there is something to learn from, and the command line."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from xbert.stages.base import seeded


class Bar:
    """A progress bar that remembers how far it came."""

    def __init__(self, total):
        self.total, self.done = total, 0

    def advance(self, amount=1):
        self.done += amount

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


@dataclass
class Bench:
    """A place for a stage to run in: remembers what was said, how far bars came, and the pieces kept."""

    folder: Path
    threads: int = 2
    memory: int = 1 << 30
    seed: int = 0
    said: list = field(default_factory=list)
    bars: list = field(default_factory=list)
    pieces: dict = field(default_factory=dict)

    def __post_init__(self):
        self.folder.mkdir(parents=True, exist_ok=True)

    def rng(self, name):
        return seeded(self.seed, name)

    def progress(self, what, total, unit):
        self.bars.append(Bar(total))
        return self.bars[-1]

    def say(self, sentence):
        self.said.append(sentence)

    def recall(self, name):
        return self.pieces.get(name)

    def keep(self, name, piece):
        self.pieces[name] = piece


@pytest.fixture
def work(tmp_path):
    return Bench(tmp_path / "work")


@pytest.fixture(scope="session")
def bench():
    """Bench itself, for tests that need several, or another number of threads."""
    return Bench


def make_documents(n_docs, n_labels, seed=0, words_per_doc=12):
    """Documents whose words come from the vocabularies of their labels: each label has six words of its own."""
    rng = np.random.default_rng(seed)
    frequency = 1 / np.arange(1, n_labels + 1)
    documents = []
    for number in range(n_docs):
        labels = rng.choice(n_labels, rng.integers(1, 4), replace=False, p=frequency / frequency.sum())
        words = [f"w{rng.choice(labels)}x{rng.integers(6)}" for _ in range(words_per_doc)]
        words += [f"common{rng.integers(20)}" for _ in range(3)]
        documents.append({"id": f"d{number}", "text": " ".join(words), "labels": sorted(f"L{label}" for label in labels)})
    return documents


def write_jsonl(path: Path, rows) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def documents():
    return make_documents


@pytest.fixture
def jsonl():
    return write_jsonl


@pytest.fixture
def corpus(tmp_path):
    """train, valid, test and a label file of 40 labels, in tmp_path."""
    for name, n_docs, seed in (("train", 400, 1), ("valid", 60, 2), ("test", 80, 3)):
        write_jsonl(tmp_path / f"{name}.jsonl", make_documents(n_docs, 40, seed))
    labels = [{"id": f"L{i}", "text": f"w{i}x0 label {i}", "parents": [f"L{i // 8}"] if i > 8 else []} for i in range(40)]
    write_jsonl(tmp_path / "labels.jsonl", labels)
    return tmp_path


@pytest.fixture
def xbert():
    """Call the command line: xbert("run", "e.toml") -> result with exit_code, stdout, stderr."""
    from xbert.cli import main

    def call(*arguments, stdin=None):
        return CliRunner().invoke(main, [str(each) for each in arguments], input=stdin, catch_exceptions=False)

    return call


@pytest.fixture
def experiment(corpus, xbert):
    """The default linear experiment over the corpus, with 8 clusters: the path of its file."""
    written = xbert(
        "init",
        "linear",
        "--train",
        "train.jsonl",
        "--valid",
        "valid.jsonl",
        "--test",
        "test.jsonl",
        "--labels",
        "labels.jsonl",
    )
    path = corpus / "e.toml"
    path.write_text(written.stdout.replace('clusters = "auto"', "clusters = 8"), encoding="utf-8")
    return path
