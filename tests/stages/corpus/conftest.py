"""A place for the corpus stage to run in, and small files for it to read."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from xbert.artifacts.kinds.dataset import Dataset
from xbert.stages.base import seeded
from xbert.stages.corpus.prepare import Prepare, PrepareConfig


class Bar:
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
    """The smallest Work there is: remembers what was said and how far bars came."""

    folder: Path
    threads: int = 1
    said: list = field(default_factory=list)
    bars: list = field(default_factory=list)

    def rng(self, name):
        return seeded(0, name)

    def progress(self, what, total, unit):
        self.bars.append(Bar(total))
        return self.bars[-1]

    def say(self, sentence):
        self.said.append(sentence)

    def once(self, name, compute):
        return compute()


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "artifact"
    folder.mkdir()
    return Bench(folder)


@pytest.fixture
def write(tmp_path):
    """Write a file of the user: text, bytes, or objects as JSON lines."""

    def write_file(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, list):
            content = "".join(json.dumps(each) + "\n" for each in content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return str(path)

    return write_file


@pytest.fixture
def prepare(work):
    """Run the stage without held-out splits unless asked, save, and load what was saved."""

    def run(**settings):
        config = PrepareConfig(**{"valid_fraction": 0.0, "test_fraction": 0.0, **settings})
        Prepare().run({}, config, work).save(work.folder)
        return Dataset.load(work.folder)

    return run


@pytest.fixture
def label_names():
    """The label ids of every document of a split."""

    def names(dataset, split="train"):
        ids, Y = list(dataset.labels.ids), dataset.splits[split].Y
        return [[ids[label] for label in Y.row(i)] for i in range(Y.n_rows)]

    return names
