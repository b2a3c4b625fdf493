import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from xbert.artifacts.kinds.scores import Scores
from xbert.artifacts.sparse import Sparse
from xbert.stages.metrics.places import place
from xbert.stages.metrics.ranking import Truth, against_seen, inverse_propensities, names, overall, percent, shares

KS = (1, 3, 5)


def measure(scores, true, inverse=None, ks=KS):
    Y = Sparse.of_rows(true, scores.n_targets)
    truth = Truth.of(Y, np.ones(scores.n_targets) if inverse is None else np.asarray(inverse, float), ks)
    return overall(shares(place(Y, scores, max(ks)), truth, ks), truth)


def brute(named, true, inverse, k):
    """Every metric by its definition, document by document."""
    sums = dict.fromkeys(("P", "R", "nDCG", "RP"), 0.0)
    gained = reachable = 0.0
    for row, labels in zip(named, true, strict=True):
        hits = [label in labels for label in row[:k]]
        best = sorted((inverse[label] for label in labels), reverse=True)[:k]
        gained += sum(inverse[label] for label in row[:k] if label in labels)
        reachable += sum(best)
        sums["P"] += sum(hits) / k
        if labels:
            ideal = sum(1 / math.log2(place + 2) for place in range(min(k, len(labels))))
            sums["R"] += sum(hits) / len(labels)
            sums["nDCG"] += sum(hit / math.log2(place + 2) for place, hit in enumerate(hits)) / ideal
            sums["RP"] += sum(hits[: min(k, len(labels))]) / min(k, len(labels))
    values = {name: 100 * value / len(named) for name, value in sums.items()}
    return {**values, "PSP": 100 * gained / reachable if reachable else 0.0}


def test_the_worked_example_of_the_docstring(ranking):
    found = measure(ranking([[5, 7, 2]], 8), [[2, 5]])
    assert found["P@3"] == pytest.approx(66.67)
    assert found["R@3"] == 100
    assert found["RP@3"] == 50
    assert found["nDCG@3"] == pytest.approx(91.97)


def test_a_perfect_ranking_reaches_a_hundred_where_that_can_be(ranking):
    found = measure(ranking([[1, 2], [3]], 5), [[1, 2], [3]], inverse=[1, 2, 3, 4, 5])
    assert {found[f"{name}@5"] for name in ("R", "nDCG", "PSP", "RP")} == {100.0}
    assert found["P@5"] == 30  # (2/5 + 1/5) / 2


def test_places_left_empty_are_misses(ranking):
    assert measure(ranking([[1]], 5), [[1, 2, 3]])["P@3"] == pytest.approx(33.33)


def test_a_document_without_true_labels_counts_zero_and_leaves_psp_alone(ranking):
    found = measure(ranking([[1], [1]], 5), [[1], []])
    assert (found["P@1"], found["R@1"], found["nDCG@1"], found["RP@1"]) == (50, 50, 50, 50)
    assert found["PSP@1"] == 100


def test_without_any_true_label_everything_is_zero(ranking):
    assert set(measure(ranking([[1], []], 5), [[], []]).values()) == {0.0}


def test_psp_divides_by_the_best_reachable_sum(ranking):
    # Document 1 could have had the rare label 1 (worth 4) and had label 0 (worth 1); document 2 got its label 0.
    assert measure(ranking([[0], [0]], 2), [[0, 1], [0]], inverse=[1, 4])["PSP@1"] == 40  # (1 + 1) / (4 + 1)


def test_the_propensity_model():
    n_docs, a, b = 1000, 0.55, 1.5
    c = (math.log(n_docs) - 1) * (b + 1) ** a
    found = inverse_propensities(np.array([0, 1, 50]), n_docs, a, b)
    assert found.tolist() == pytest.approx([1 + c * (n + b) ** -a for n in (0, 1, 50)])


def test_rare_labels_are_never_worth_less_than_frequent_ones():
    assert inverse_propensities(np.array([0, 1, 2]), 2, 0.55, 1.5).tolist() == [1, 1, 1]


def test_ndcg_is_that_of_scikit_learn():
    rng = np.random.default_rng(3)
    scores, true = rng.random((40, 12)), rng.random((40, 12)) < 0.3
    true[:, 0] = True  # scikit-learn has no nDCG of a document without labels
    order = np.argsort(-scores, axis=1)
    ranked = Scores.of_top(order, np.take_along_axis(scores, order, 1), 12)
    found = measure(ranked, [np.flatnonzero(row).tolist() for row in true])
    for k in KS:
        assert found[f"nDCG@{k}"] == pytest.approx(100 * ndcg_score(true, scores, k=k), abs=0.006)


ROW = st.tuples(st.sets(st.integers(0, 11)), st.permutations(range(12)), st.integers(0, 12))


@settings(max_examples=60, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=6), st.lists(st.floats(1, 50), min_size=12, max_size=12))
def test_as_by_definition(ranking, rows, inverse):
    named = [list(order[:length]) for _, order, length in rows]
    true = [sorted(labels) for labels, _, _ in rows]
    found = measure(ranking(named, 12), true, inverse, (1, 3, 5, 8))
    for k in (1, 3, 5, 8):
        for name, value in brute(named, true, inverse, k).items():
            assert found[f"{name}@{k}"] == pytest.approx(value, abs=0.006), f"{name}@{k}"


def test_names_stand_in_the_order_of_the_metrics():
    assert names((1, 5)) == ["P@1", "P@5", "R@1", "R@5", "nDCG@1", "nDCG@5", "PSP@1", "PSP@5", "RP@1", "RP@5"]


def test_a_share_of_nothing_is_no_number():
    assert percent(0, 0) is None
    assert percent(1, 3) == 33.33


def test_against_seen_labels_is_the_metric_with_the_others_out_of_the_truth(ranking):
    scores = ranking([[0, 1, 2], [1, 0, 2], [2, 1, 0]], 5)
    counts, inverse = np.array([9, 4, 2, 0, 0]), np.array([1.0, 2.0, 3.0, 50.0, 50.0])
    found = against_seen(scores, Sparse.of_rows([[0, 3], [4], [1, 2]], 5), inverse, counts, KS)
    assert found == measure(ranking([[0, 1, 2], [2, 1, 0]], 5), [[0], [1, 2]], inverse)
    assert found["PSP@3"] == 100
