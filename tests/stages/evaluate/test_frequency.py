import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xbert.artifacts.sparse import Sparse
from xbert.stages.evaluate.frequency import LabelTally, by_frequency, classes, coverage, part, recall_bins
from xbert.stages.metrics.places import place


def tally_of(scores, true):
    return LabelTally.of(place(Sparse.of_rows(true, scores.n_targets), scores, 10), scores)


def test_classes_meet_at_their_bounds():
    found = classes(np.array([0, 1, 20, 21, 100, 101]), 20, 100)
    assert {name: np.flatnonzero(mask).tolist() for name, mask in found.items()} == {
        "few": [1, 2],
        "medium": [3, 4],
        "many": [5],
        "unseen": [0],
    }


def test_macro_scores_of_a_hand_counted_class(ranking):
    # Label 0: named 3 times, true twice, right once. Label 1: true once, never named.
    tally = tally_of(ranking([[0], [0], [0], []], 2), [[0], [1], [], [0]])
    few = by_frequency(tally, classes(np.array([5, 5]), 20, 100))["few"]
    assert few == {"labels": 2, "of": 2, "P@5": 16.67, "R@5": 25.0, "F@5": 20.0}


def test_labels_that_never_occur_in_the_split_are_left_out(ranking):
    tally = tally_of(ranking([[0, 1]], 3), [[0]])
    few = by_frequency(tally, classes(np.array([5, 5, 5]), 20, 100))["few"]
    assert (few["labels"], few["of"], few["P@5"]) == (1, 3, 100.0)


def test_a_class_without_labels_has_no_numbers(ranking):
    tally = tally_of(ranking([[0]], 1), [[0]])
    assert by_frequency(tally, classes(np.array([5]), 20, 100))["many"]["F@5"] is None


def test_labels_without_training_documents_are_counted(ranking):
    tally = tally_of(ranking([[0], [0]], 3), [[0, 1], [0, 1]])
    unseen = by_frequency(tally, classes(np.array([5, 0, 0]), 20, 100))["unseen"]
    assert unseen == {"labels": 1, "of": 2, "share": 50.0}


def test_only_the_first_five_count(ranking):
    tally = tally_of(ranking([[0, 1, 2, 3, 4, 5]], 6), [[4, 5]])
    assert tally.right.tolist() == [0, 0, 0, 0, 1, 0]
    assert tally.named.tolist() == [1, 1, 1, 1, 1, 0]


def test_coverage_counts_labels_found_at_least_once(ranking):
    tally = tally_of(ranking([[0, 3], [0], [1]], 4), [[0], [0, 1], [2]])
    assert coverage(tally) == 33.33  # of 0, 1 and 2 only 0 is rightly named


def test_part_gives_micro_recall_and_share(ranking):
    tally = tally_of(ranking([[0], [1], []], 2), [[0], [0], [1]])
    assert part(tally, np.array([True, False])) == {"R@5": 50.0, "share": 66.67, "labels": 1}


def test_part_without_assignments_has_no_recall(ranking):
    tally = tally_of(ranking([[0]], 2), [[0]])
    assert part(tally, np.array([False, True])) == {"R@5": None, "share": 0.0, "labels": 0}


def test_bins_hold_every_assignment_once(ranking):
    counts = np.array([0, 1, 2, 3, 20, 21, 1000, 1001, 50_000])
    tally = tally_of(ranking([[0, 8]], 9), [list(range(9))])
    bins = recall_bins(tally, counts)
    assert [one["documents"] for one in bins] == ["0", "1-2", "3-5", "11-20", "21-50", "501-1000", ">1000"]
    assert sum(one["labels"] for one in bins) == 9
    assert bins[0]["R@5"] == 100
    assert bins[-1]["R@5"] == 50


ROW = st.tuples(st.sets(st.integers(0, 7)), st.permutations(range(8)), st.integers(0, 8))


@settings(max_examples=40, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=8))
def test_macro_as_by_definition(ranking, rows):
    named = [list(order[:length])[:5] for _, order, length in rows]
    counts = np.array([1, 2, 3, 30, 40, 150, 150, 0])
    tally = tally_of(ranking([list(order[:length]) for _, order, length in rows], 8), [sorted(t) for t, _, _ in rows])
    found = by_frequency(tally, classes(counts, 20, 100))
    for name, labels in (("few", (0, 1, 2)), ("medium", (3, 4)), ("many", (5, 6))):
        met = [label for label in labels if any(label in true for true, _, _ in rows)]
        total = {"P@5": 0.0, "R@5": 0.0, "F@5": 0.0}
        for label in met:
            right = sum(label in true and label in row for (true, _, _), row in zip(rows, named, strict=True))
            precision = right / max(sum(label in row for row in named), 1)
            recall = right / sum(label in true for true, _, _ in rows)
            total["P@5"] += precision
            total["R@5"] += recall
            total["F@5"] += 2 * precision * recall / (precision + recall) if right else 0
        assert found[name]["labels"] == len(met)
        for metric, value in total.items():
            if met:
                assert found[name][metric] == pytest.approx(100 * value / len(met), abs=0.006)
