"""A place for a stage to run in, a small corpus there is something to learn from, and the command line."""

import io
import json
import os
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from xbert.artifacts.store import Pieces
from xbert.pipeline.console import Console
from xbert.pipeline.runner import LocalWork

os.environ.setdefault("NUMBA_NUM_THREADS", "2")


@pytest.fixture
def work(tmp_path):
    """The real Work in a folder of its own; what it says is in `work.console.stream`."""
    folder = tmp_path / "work"
    folder.mkdir()
    return LocalWork(folder, 2, 0, Pieces(tmp_path / "pieces"), Console(stream=io.StringIO()))


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
