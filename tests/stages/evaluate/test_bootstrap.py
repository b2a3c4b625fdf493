import numpy as np
import pytest

from xbert.artifacts.sparse import Sparse
from xbert.stages.base import seeded
from xbert.stages.evaluate import bootstrap
from xbert.stages.evaluate.bootstrap import Draws, drawn_sums
from xbert.stages.metrics.places import place
from xbert.stages.metrics.ranking import Truth, overall, shares

KS = (1, 3)


def setup(ranking, n_docs, seed=0):
    """A split where half of the documents get their label first, and the shares of two models."""
    rng = np.random.default_rng(seed)
    true = [[int(label)] for label in rng.integers(0, 5, n_docs)]
    truth = Truth.of(Sparse.of_rows(true, 5), np.array([1.0, 2, 3, 4, 5]), KS)
    found = {}
    for name in ("one", "two"):
        named = [[label if rng.random() < 0.5 else (label + 1) % 5] for (label,) in true]
        found[name] = shares(place(truth.Y, ranking(named, 5), 3), truth, KS)
    return found, truth


def draws(found, truth, seed=0, n_draws=300, confidence=95.0):
    return Draws.of(found, truth, n_draws, confidence, seeded(seed, "bootstrap"))


def test_sums_are_those_of_the_documents_drawn():
    columns = [np.arange(7.0), np.arange(7.0) ** 2]
    found = drawn_sums(columns, 20, np.random.default_rng(5))
    rng = np.random.default_rng(5)
    for row in found:
        drawn = rng.integers(0, 7, 7)
        assert row.tolist() == pytest.approx([column[drawn].sum() for column in columns])


def test_blocks_do_not_change_the_sums(monkeypatch):
    columns = [np.arange(50.0)]
    whole = drawn_sums(columns, 30, np.random.default_rng(1))
    monkeypatch.setattr(bootstrap, "_CELLS", 120)
    monkeypatch.setattr(bootstrap, "_BLOCK", 7)
    np.testing.assert_allclose(drawn_sums(columns, 30, np.random.default_rng(1)), whole)


def test_an_interval_holds_the_value(ranking):
    found, truth = setup(ranking, 200)
    values, made = overall(found["one"], truth), draws(found, truth)
    for metric, value in values.items():
        low, high = made.interval("one", metric)
        assert low <= value <= high


def test_the_same_seed_gives_the_same_interval(ranking):
    found, truth = setup(ranking, 100)
    assert draws(found, truth).interval("one", "PSP@1") == draws(found, truth).interval("one", "PSP@1")
    assert draws(found, truth).interval("one", "PSP@1") != draws(found, truth, seed=1).interval("one", "PSP@1")


def test_a_mean_has_the_interval_of_its_standard_error(ranking):
    found, truth = setup(ranking, 1000)
    low, high = draws(found, truth, n_draws=2000).interval("one", "P@1")
    error = 100 * found["one"]["P@1"].std() / np.sqrt(1000)
    assert high - low == pytest.approx(2 * 1.96 * error, rel=0.1)


def test_psp_is_drawn_as_a_ratio_of_sums(ranking):
    found, truth = setup(ranking, 60)
    made = draws(found, truth, n_draws=5)
    rng = seeded(0, "bootstrap")
    for value in made.values["two", "PSP@3"]:
        drawn = rng.integers(0, 60, 60)
        assert value == pytest.approx(100 * found["two"]["PSP@3"][drawn].sum() / truth.best[3][drawn].sum(), rel=1e-5)


def test_less_confidence_is_a_narrower_interval(ranking):
    found, truth = setup(ranking, 100)
    wide, narrow = draws(found, truth).interval("one", "P@1"), draws(found, truth, confidence=50).interval("one", "P@1")
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_a_model_gains_nothing_over_itself(ranking):
    found, truth = setup(ranking, 100)
    made = draws({"one": found["one"], "again": found["one"]}, truth)
    assert made.interval("one", "P@1", over="again") == [0.0, 0.0]


def test_a_split_without_true_labels_has_intervals_of_zero(ranking):
    truth = Truth.of(Sparse.of_rows([[], []], 3), np.ones(3), KS)
    found = {"one": shares(place(truth.Y, ranking([[0], [1]], 3), 3), truth, KS)}
    assert draws(found, truth).interval("one", "PSP@1") == [0.0, 0.0]
