"""Powers of the matchers' scores: as given, or those that rank the validation split best."""

import math

import numpy as np
import pytest

from xbert.artifacts.errors import InputError
from xbert.artifacts.kinds.scores import Scores
from xbert.artifacts.sparse import Sparse
from xbert.stages.rank.powers import BESIDE, MATCHER, choose, settle


@pytest.mark.parametrize("summit", [(0.1, 0.0), (2.8, 1.4), (0.5, 0.35), (1.0, 0.2)])
def test_the_summit_is_found_with_few_trials(summit):
    tried = []

    def quality(powers):
        tried.append(powers)
        return -sum(abs(math.log(a + 0.1) - math.log(b + 0.1)) for a, b in zip(powers, summit, strict=True))

    powers, best = choose(quality, MATCHER, BESIDE, (0.5, 0.5))
    assert (powers, best) == (summit, 0)
    assert len(tried) == len(set(tried)) < len(MATCHER) * len(BESIDE) / 3


class Work:
    def __init__(self):
        self.said = []

    def say(self, line):
        self.said.append(line)


def products(powers):
    """Two documents; the matcher is right about the first label of both, a linear one wrong, the ranker undecided."""
    matcher, beside = np.array([0.6, 0.4]) ** powers[0], np.array([0.4, 0.6]) ** powers[1]
    scores = matcher * beside
    order = np.argsort(-scores, kind="stable")
    return Scores.of_top(np.tile(order, (2, 1)), np.tile(scores[order], (2, 1)), 2)


TRUTH = Sparse.of_rows([[0], [0]], 2)


def test_given_powers_stay_and_nothing_is_tried():
    def never(powers):
        raise AssertionError

    work = Work()
    assert settle({"matcher_weight": 0.3, "linear_weight": 0.5}, None, never, work) == (0.3, 0.5)
    assert work.said == []


@pytest.mark.parametrize(("matcher", "beside"), [("auto", "auto"), ("auto", 0.6), (0.4, "auto")])
def test_what_is_auto_is_chosen_so_that_the_right_label_comes_first(matcher, beside):
    work = Work()
    powers = settle({"matcher_weight": matcher, "linear_weight": beside}, TRUTH, products, work)
    assert matcher in ("auto", powers[0])
    assert beside in ("auto", powers[1])
    assert products(powers).top(1)[0].tolist() == [[0], [0]]
    assert work.said == [f"powers chosen on valid: matcher {powers[0]:g}, linear {powers[1]:g} (nDCG@5 100.00)"]


def test_without_a_validation_split_there_is_nothing_to_choose_on():
    with pytest.raises(InputError, match=r"\[rank\] linear_weight = 'auto' is chosen on a validation split, and there is none"):
        settle({"matcher_weight": 1.0, "linear_weight": "auto"}, None, products, Work())
