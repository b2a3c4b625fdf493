"""Small datasets and rankings, built from lists, and a place for a stage to run in."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from xbert.artifacts.arrays import Strings
from xbert.artifacts.kinds.dataset import Dataset, Labels, Split
from xbert.artifacts.kinds.label_index import LabelIndex
from xbert.artifacts.kinds.scores import Scores
from xbert.artifacts.sparse import Sparse


def _ranking(rows: list[list[int]], n_targets: int) -> Scores:
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    targets = np.array([target for row in rows for target in row], np.int32)
    values = np.array([1 / (place + 1) for row in rows for place in range(len(row))], np.float32)
    return Scores(Sparse(indptr, targets, values, n_targets))


@pytest.fixture(scope="session")
def ranking():
    """Scores from lists of targets, best first."""
    return _ranking


@pytest.fixture(scope="session")
def dataset():
    """A dataset from lists of true labels."""

    def build(n_labels: int, facts: dict[str, Any] | None = None, **splits: list[list[int]]) -> Dataset:
        blank = Strings.of([""] * n_labels)
        no_parents = Sparse.of_rows([[] for _ in range(n_labels)], n_labels)
        labels = Labels(Strings.of([f"label {i}" for i in range(n_labels)]), blank, blank, no_parents)
        made = {}
        for name, rows in splits.items():
            made[name] = Split(Sparse.of_rows(rows, n_labels), Strings.of(["text"] * len(rows)), None)
        return Dataset(labels, made, facts or {})

    return build


@pytest.fixture(scope="session")
def index():
    """A label index from the cluster of each label."""

    def build(clusters: list[int]) -> LabelIndex:
        return LabelIndex([Sparse.of_rows([[cluster] for cluster in clusters], max(clusters) + 1)], {})

    return build


@pytest.fixture
def example(dataset, index):
    """Inputs with two models and an ensemble over six labels in three clusters."""
    train = [[0], [0], [0], [0, 1], [1], [1, 2], [3]]
    valid, test = [[0, 1], [3]], [[0], [1, 2], [0, 5], [3]]
    data = dataset(6, {"source": "made up", "files": {"train": "train.jsonl"}}, train=train, valid=valid, test=test)

    def scored(n_targets: int, valid: list[list[int]], test: list[list[int]]) -> SimpleNamespace:
        return SimpleNamespace(scores={"valid": _ranking(valid, n_targets), "test": _ranking(test, n_targets)})

    inputs: dict[str, Any] = {"data": data}
    for name, clusters in (("one", [0, 0, 1, 1, 2, 2]), ("two", [0, 1, 2, 0, 1, 2])):
        inputs[f"{name}/index"] = index(clusters)
        inputs[f"{name}/match"] = scored(3, [[0, 1], [1, 0]], [[0, 1], [0, 1], [2, 0], [1]])
    inputs["one/rank"] = scored(6, [[0, 1, 2], [0, 3]], [[0, 1], [1, 0, 2], [1, 2], [0, 1, 3]])
    inputs["two/rank"] = scored(6, [[1, 0, 2], [3]], [[1, 0], [2, 1, 0], [0], [1, 0, 2]])
    inputs["ensemble"] = scored(6, [[0, 1, 2], [3, 0]], [[0, 1], [1, 2, 0], [0, 1], [3, 1]])
    return inputs
