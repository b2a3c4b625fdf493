"""The smallest place a method can run in, and data sets built by hand."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from xbert.artifacts.arrays import Array, Strings
from xbert.artifacts.kinds.dataset import Dataset, Labels, Split
from xbert.artifacts.kinds.features import Features
from xbert.artifacts.sparse import Sparse
from xbert.stages.base import seeded
from xbert.stages.features.tfidf import Tfidf, TfidfConfig


class Silent:
    """A progress bar nobody sees, which adds up what it is told."""

    def __init__(self, total: int) -> None:
        self.total, self.done = total, 0

    def __enter__(self) -> "Silent":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def advance(self, amount: int = 1) -> None:
        self.done += amount


class Bench:
    """A Work without a store."""

    def __init__(self, folder: Path, threads: int = 1) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.threads = folder, threads
        self.said: list[str] = []
        self.bars: dict[str, Silent] = {}
        self.kept: dict[str, dict[str, Array]] = {}

    def rng(self, name: str) -> np.random.Generator:
        return seeded(0, name)

    def progress(self, what: str, total: int, unit: str) -> Silent:
        self.bars[what] = Silent(total)
        return self.bars[what]

    def say(self, sentence: str) -> None:
        self.said.append(sentence)

    def recall(self, name: str) -> dict[str, Array] | None:
        return self.kept.get(name)

    def keep(self, name: str, piece: dict[str, Array]) -> None:
        self.kept[name] = piece


def dataset_of(**splits: list[str] | Sparse) -> Dataset:
    """A data set with one label that no document has."""
    none = Strings.of([""])
    labels = Labels(Strings.of(["label"]), none, none, Sparse.of_rows([[]], 1))
    made = {}
    for name, content in splits.items():
        if isinstance(content, Sparse):
            made[name] = Split(Sparse.of_rows([[]] * content.n_rows, 1), None, content)
        else:
            made[name] = Split(Sparse.of_rows([[]] * len(content), 1), Strings.of(content), None)
    return Dataset(labels, made, {})


def features_of(settings: dict[str, object] | None = None, threads: int = 1, **splits: list[str]) -> Features:
    """Run Tfidf over texts in a folder that is gone afterwards; what is mapped stays readable."""
    with TemporaryDirectory() as folder:
        return Tfidf().run({"data": dataset_of(**splits)}, TfidfConfig(**(settings or {})), Bench(Path(folder), threads))


@pytest.fixture
def work(tmp_path: Path) -> Bench:
    """One thread, an empty folder."""
    return Bench(tmp_path / "work")


# Tests cannot import a conftest: they are handed its functions.
@pytest.fixture(scope="session", name="dataset_of")
def _dataset_of():
    return dataset_of


@pytest.fixture(scope="session", name="features_of")
def _features_of():
    return features_of


@pytest.fixture(scope="session", name="bench")
def _bench():
    return Bench
