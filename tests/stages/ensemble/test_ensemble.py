import numpy as np
import pytest

from xbert.artifacts.errors import InputError
from xbert.artifacts.kinds.scores import Scores
from xbert.artifacts.sparse import Sparse
from xbert.stages.ensemble.ensemble import check_same_data, learn_weights
from xbert.stages.ensemble.trials import Trials
from xbert.stages.kernels.combine import combine
from xbert.stages.metrics.ranking import ndcg


def scores(rows, n_targets=6):
    """From lists of (label, score) a document."""
    width = max(len(row) for row in rows)
    targets, values = np.full((len(rows), width), -1, np.int32), np.zeros((len(rows), width), np.float32)
    for i, row in enumerate(rows):
        for j, (label, score) in enumerate(row):
            targets[i, j], values[i, j] = label, score
    return Scores.of_top(targets, values, n_targets)


def test_learnt_weights_leave_out_a_model_that_only_errs():
    Y = Sparse.of_rows([[0], [1], [2], [3]], 6)
    good = scores([[(label, 0.5), (5, 0.45)] for label in range(4)])
    bad = scores([[(5, 0.9), (4, 0.8)] for _ in range(4)])
    weights = learn_weights([good, bad], Y)
    assert weights[1] < 0.2
    assert combine([good, bad], "weighted", weights, 1, 2).top(1)[0].ravel().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("seed", range(3))
def test_a_trial_is_worth_what_the_ensemble_with_its_weights_is(seed):
    """Also for documents without labels, without scores, and with more labels than are judged."""
    rng = np.random.default_rng(seed)
    Y = Sparse.of_rows([np.sort(rng.choice(30, rng.integers(0, 9), replace=False)).tolist() for _ in range(40)], 30)
    members = []
    for _ in range(3):
        rows = [rng.choice(30, rng.integers(0, 15), replace=False) for _ in range(40)]
        members.append(scores([[*zip(row, np.sort(rng.random(len(row)))[::-1], strict=True)] for row in rows], 30))
    trials = Trials.of(members, Y)
    for weights in ([1 / 3, 1 / 3, 1 / 3], [0.7, 0.2, 0.1], [0.05, 0.35, 0.6]):
        whole = combine(members, "weighted", weights, 5, 15)
        assert trials.ndcg(np.array(weights)) == pytest.approx(ndcg(whole, Y, 5), abs=1e-4)


def test_scores_of_other_data_are_refused():
    two = scores([[(2, 0.6), (1, 0.5)], [(4, 0.8), (3, 0.6)]])
    with pytest.raises(InputError, match="scores of b have 6 labels, the dataset 7: they come from other data"):
        check_same_data({"b": two}, Sparse.of_rows([[0], [1]], 7), "valid")
    with pytest.raises(InputError, match="2 documents, valid 3"):
        check_same_data({"b": two}, Sparse.of_rows([[0], [1], [2]], 6), "valid")
