import numpy as np
import pytest

from xbert.artifacts.kinds.scores import Scores
from xbert.stages.kernels.combine import blend, combine


def scores(rows, n_targets=6):
    """From lists of (label, score) a document."""
    width = max(len(row) for row in rows)
    targets, values = np.full((len(rows), width), -1, np.int32), np.zeros((len(rows), width), np.float32)
    for i, row in enumerate(rows):
        for j, (label, score) in enumerate(row):
            targets[i, j], values[i, j] = label, score
    return Scores.of_top(targets, values, n_targets)


A = scores([[(0, 0.9), (1, 0.2)], [(3, 0.4)]])
B = scores([[(2, 0.6), (1, 0.5)], [(4, 0.8), (3, 0.6)]])


def listed(combined):
    targets, values = combined.top(4)
    return [
        [(int(t), round(float(v), 3)) for t, v in zip(*row, strict=True) if t >= 0] for row in zip(targets, values, strict=True)
    ]


def test_average_counts_a_label_a_model_did_not_list_as_zero():
    assert listed(combine([A, B], "average", [1, 1], 4, 2)) == [[(0, 0.45), (1, 0.35), (2, 0.3)], [(3, 0.5), (4, 0.4)]]


def test_weights_shift_the_mean():
    assert listed(combine([A, B], "weighted", [3, 1], 1, 2)) == [[(0, 0.675)], [(3, 0.45)]]


def test_rank_average_looks_at_places_alone():
    assert listed(combine([A, B], "rank-average", [1, 1], 4, 2)) == [[(0, 0.5), (1, 0.5), (2, 0.5)], [(3, 0.75), (4, 0.5)]]


def test_round_robin_takes_turns():
    targets, _ = combine([A, B], "round-robin", [1, 1], 4, 2).top(3)
    assert targets.tolist() == [[0, 2, 1], [3, 4, -1]]


@pytest.mark.parametrize("way", ["average", "weighted", "rank-average", "round-robin"])
def test_the_result_is_a_proper_score_list(way):
    combine([A, B], way, [0.3, 0.7], 3, 2).check(way)


def test_one_model_alone_keeps_its_order():
    assert combine([B], "average", [1], 5, 2).top(2)[0].tolist() == B.top(2)[0].tolist()


def test_a_blend_is_the_product_of_powers_and_a_target_not_listed_counts_as_the_last_one():
    first = [(0, 0.9 * 0.5**2), (2, 0.2 * 0.6**2), (1, 0.2 * 0.5**2)]
    second = [(4, 0.4 * 0.8**2), (3, 0.4 * 0.6**2)]
    assert listed(blend([A, B], [1, 2])) == [[(label, round(value, 3)) for label, value in row] for row in (first, second)]


def test_a_member_that_lists_nothing_has_no_say():
    empty = Scores.of_top(np.full((2, 1), -1, np.int32), np.zeros((2, 1), np.float32), 6)
    assert listed(blend([A, empty], [1, 1])) == listed(A)


@pytest.mark.parametrize("powers", [(1, 1), (0.3, 0.7), (0, 2)])
def test_a_blend_is_a_proper_score_list(powers):
    blend([A, B], powers).check("blend")
