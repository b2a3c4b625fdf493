"""Small files for the corpus stage to read."""

import json

import pytest

from xbert.artifacts.kinds.dataset import Dataset
from xbert.stages.corpus.prepare import Prepare, PrepareConfig


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
