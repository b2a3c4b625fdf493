import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xbert.artifacts.sparse import Sparse
from xbert.stages.metrics import places
from xbert.stages.metrics.places import MISSED, named_counts, place


def test_the_place_of_every_true_label_is_found(ranking):
    Y = Sparse.of_rows([[2, 5], [], [1]], 8)
    placed = place(Y, ranking([[5, 7, 2], [0], [3]], 8), 5)
    assert placed.rows.tolist() == [0, 0, 2]
    assert placed.targets.tolist() == [2, 5, 1]
    assert placed.places.tolist() == [2, 0, MISSED]


def test_places_beyond_the_depth_are_misses(ranking):
    placed = place(Sparse.of_rows([[1, 2]], 4), ranking([[0, 1, 2]], 4), 2)
    assert placed.places.tolist() == [1, MISSED]


def test_a_label_named_twice_counts_at_its_first_place(ranking):
    placed = place(Sparse.of_rows([[1]], 4), ranking([[0, 1, 1]], 4), 5)
    assert placed.places.tolist() == [1]


def test_true_labels_need_not_be_sorted(ranking):
    Y = Sparse(np.array([0, 3]), np.array([4, 0, 2], np.int32), None, 5)
    assert place(Y, ranking([[2, 4]], 5), 5).places.tolist() == [1, MISSED, 0]


def test_labels_are_counted_among_the_first_only(ranking):
    assert named_counts(ranking([[0, 1, 2], [1], []], 4), 2).tolist() == [1, 2, 0, 0]


@pytest.mark.parametrize("block", [1, 2, 100])
def test_blocks_do_not_change_the_places(ranking, monkeypatch, block):
    monkeypatch.setattr(places, "_BLOCK", block)
    Y, scores = Sparse.of_rows([[0], [1, 2], [], [3]], 4), ranking([[1, 0], [2], [3], [3]], 4)
    assert place(Y, scores, 5).places.tolist() == [1, MISSED, 0, 0]
    assert named_counts(scores, 5).tolist() == [1, 1, 1, 2]


ROWS = st.lists(st.tuples(st.sets(st.integers(0, 11)), st.permutations(range(12)), st.integers(0, 12)), max_size=6)


@settings(max_examples=60, deadline=None)
@given(ROWS, st.integers(1, 13))
def test_as_looking_each_one_up(ranking, rows, depth):
    named = [list(order[:length]) for _, order, length in rows]
    Y = Sparse.of_rows([list(true) for true, _, _ in rows], 12)
    found = place(Y, ranking(named, 12), depth)
    wanted = []
    for (true, _, _), row in zip(rows, named, strict=True):
        wanted += [row.index(label) if label in row[:depth] else MISSED for label in sorted(true)]
    assert found.places.tolist() == wanted
