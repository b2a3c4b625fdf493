import numpy as np
import pytest
from scipy.sparse import random_array

from xbert.artifacts.sparse import Sparse
from xbert.stages.kernels import levels
from xbert.stages.kernels.levels import Solver

SOLVER = Solver("dual", 1.0, 1.0, 0.01, 200, 0.01, 0)


class Memory:
    def __init__(self):
        self.pieces = {}

    def recall(self, name):
        return self.pieces.get(name)

    def keep(self, name, piece):
        self.pieces[name] = piece


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = Sparse.of_scipy(random_array((200, 60), density=0.1, format="csr", dtype=np.float32, rng=rng))
    Y = Sparse.of_rows([sorted(rng.choice(24, 2, replace=False).tolist()) for _ in range(200)], 24)
    parent = (np.arange(24) % 6).astype(np.int32)
    return X, Y, parent


def problem(data, negatives="tfn", proposed=None):
    return levels.make_problem(*data[:2], data[2], 6, negatives, proposed)


def train(problem, solver=SOLVER, threads=2, memory=None):
    return levels.train(problem, solver, threads, memory or Memory(), lambda n: None)


def same(a, b):
    return all(x.tobytes() == y.tobytes() for x, y in zip(a.arrays(), b.arrays(), strict=True))


def test_the_number_of_threads_changes_nothing(data):
    assert same(train(problem(data), threads=1), train(problem(data), threads=3))


def test_the_cut_into_shards_changes_nothing(data, monkeypatch):
    whole = train(problem(data))
    monkeypatch.setattr(levels, "_MIN_SHARDS", 1)
    assert len(list(levels.cut(problem(data)))) == 1
    assert same(whole, train(problem(data)))


def test_every_child_is_in_exactly_one_shard(data):
    places = [place for shard in levels.cut(problem(data)) for _, start, stop in shard for place in range(start, stop)]
    assert places == list(range(24))


def test_a_kept_shard_is_not_fitted_again(data):
    memory = Memory()
    first = train(problem(data), memory=memory)
    assert len(memory.pieces) > 1
    kept = dict(memory.pieces)
    kept.popitem()
    again = Memory()
    again.pieces = kept
    advanced = []
    assert same(first, levels.train(problem(data), SOLVER, 1, again, advanced.append))
    assert sum(advanced) == 24


def test_a_shard_in_another_process_gives_the_same(data):
    import joblib

    shard = next(iter(levels.cut(problem(data))))
    here = levels.fit_shard(problem(data), shard, SOLVER)
    (there,) = joblib.Parallel(2, backend="loky")([joblib.delayed(levels.fit_shard)(problem(data), shard, SOLVER)])
    assert all(here[name].tobytes() == there[name].tobytes() for name in here)


def test_liblinear_agrees(data):
    theirs = train(problem(data), Solver("liblinear", 1.0, 1.0, 1e-4, 1000, 0.0, 0))
    ours = train(problem(data), Solver("dual", 1.0, 1.0, 1e-4, 1000, 0.0, 0))
    for child in (0, 5, 23):
        dense = [np.bincount(*weights.of_child(child), minlength=60) for weights in (ours, theirs)]
        assert np.allclose(*dense, atol=5e-3)


def seen(problem, parent):
    return set(problem.rows.row(parent).tolist()), set(problem.negative.row(parent).tolist())


def test_matcher_aware_negatives_without_proposals_are_refused(data):
    with pytest.raises(ValueError, match="without the matcher's proposals"):
        problem(data, "tfn+man")


def test_taught_negatives_are_the_documents_of_the_cluster(data):
    _, Y, parent = data
    members = {doc for doc in range(200) if (parent[Y.row(doc)] == 2).any()}
    assert seen(problem(data), 2) == (members, members)


@pytest.mark.parametrize(("negatives", "both"), [("man", False), ("tfn+man", True)])
def test_matcher_aware_negatives_are_the_documents_sent_there(data, negatives, both):
    _, Y, parent = data
    proposed = Sparse.of_rows([[doc % 6] for doc in range(200)], 6)
    members = {doc for doc in range(200) if (parent[Y.row(doc)] == 2).any()}
    sent = set(range(2, 200, 6))
    rows, negative = seen(problem(data, negatives, proposed), 2)
    assert rows == members | sent
    assert negative == (members | sent if both else sent)
