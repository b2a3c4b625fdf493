"""The inputs of an evaluation, as the stages before it leave them, but with rankings written down by hand."""

import numpy as np
import pytest

from xbert.artifacts.kinds.ensemble import Ensemble
from xbert.artifacts.kinds.label_index import LabelIndex
from xbert.artifacts.kinds.linear_matcher import OUT_OF_FOLD, LinearMatcher
from xbert.artifacts.kinds.linear_ranker import LinearRanker
from xbert.artifacts.kinds.weights import ChunkedWeights
from xbert.artifacts.sparse import Sparse

TOP = 5


def no_weights(n_children):
    """Classifiers under one root that know no terms."""
    nothing, start = np.zeros(2, np.int64), np.zeros(1, np.uint32)
    children, bias = np.arange(n_children, dtype=np.int32), np.zeros(n_children, np.float32)
    pointers = np.array([0, n_children])
    none = np.zeros(0, np.int32), start, np.zeros(0, np.uint32)
    return ChunkedWeights(pointers, children, bias, np.ones(1, np.float32), nothing, nothing, *none, n_terms=1)


@pytest.fixture(scope="session")
def matcher():
    """A linear matcher that found these clusters."""

    def build(n_clusters, **scores):
        return LinearMatcher([no_weights(n_clusters)], scores, "l2-hinge", 10, OUT_OF_FOLD)

    return build


@pytest.fixture(scope="session")
def ranker():
    """A linear ranker that found these labels."""

    def build(n_labels, **scores):
        return LinearRanker(no_weights(n_labels), np.zeros(n_labels, np.float32), scores, "l2-hinge", TOP)

    return build


@pytest.fixture(scope="session")
def embedded():
    """A label index from the cluster of each label and the embedding it was made of."""

    def build(clusters, embedding):
        rows = Sparse.of_rows([[cluster] for cluster in clusters], max(clusters) + 1)
        return LabelIndex([rows], {"embedding": embedding})

    return build


@pytest.fixture
def example(dataset, index, ranking, matcher, ranker):
    """Inputs with two models and an ensemble over six labels in three clusters."""
    train = [[0], [0], [0], [0, 1], [1], [1, 2], [3]]
    valid, test = [[0, 1], [3]], [[0], [1, 2], [0, 5], [3]]
    data = dataset(6, {"source": "made up", "files": {"train": "train.jsonl"}}, train=train, valid=valid, test=test)

    def ranked(valid, test):
        return {"valid": ranking(valid, 6), "test": ranking(test, 6)}

    inputs = {"data": data}
    found = {"valid": ranking([[0, 1], [1, 0]], 3), "test": ranking([[0, 1], [0, 1], [2, 0], [1]], 3)}
    for name, clusters in (("one", [0, 0, 1, 1, 2, 2]), ("two", [0, 1, 2, 0, 1, 2])):
        inputs[f"{name}/index"] = index(clusters)
        inputs[f"{name}/match"] = matcher(3, **found)
    inputs["one/rank"] = ranker(6, **ranked([[0, 1, 2], [0, 3]], [[0, 1], [1, 0, 2], [1, 2], [0, 1, 3]]))
    inputs["two/rank"] = ranker(6, **ranked([[1, 0, 2], [3]], [[1, 0], [2, 1, 0], [0], [1, 0, 2]]))
    together = ranked([[0, 1, 2], [3, 0]], [[0, 1], [1, 2, 0], [0, 1], [3, 1]])
    inputs["ensemble"] = Ensemble(["one", "two"], "average", [1.0, 1.0], TOP, TOP, together)
    return inputs
