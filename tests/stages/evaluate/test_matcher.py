import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from xbert.artifacts.sparse import Sparse
from xbert.stages.evaluate.matcher import measure, steps


def test_recall_counts_labels_and_precision_counts_clusters(ranking, index):
    # Labels 0, 1 are in cluster 0, label 2 in cluster 1, label 3 in cluster 2.
    Y = Sparse.of_rows([[0, 1, 2], [3]], 4)
    found = measure(Y, index([0, 0, 1, 2]), ranking([[0, 2], [1, 2]], 3))
    assert found["recall"] == {"1": 50.0, "2": 75.0}  # labels 0 and 1, then also 3; label 2's cluster is never proposed
    assert (found["P@1"], found["P@3"], found["clusters"]) == (50.0, 33.33, 3)


def test_steps_end_with_all_that_is_stored():
    assert steps(30) == [1, 2, 5, 10, 20, 30]
    assert steps(50) == [1, 2, 5, 10, 20, 50]
    assert steps(1) == [1]
    assert steps(0) == []


def test_a_split_without_labels_has_no_recall_to_lose(ranking, index):
    assert measure(Sparse.of_rows([[]], 2), index([0, 1]), ranking([[0]], 2))["recall"] == {"1": 0.0}


ROW = st.tuples(st.sets(st.integers(0, 9)), st.permutations(range(4)))


@settings(max_examples=40, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=6), st.lists(st.integers(0, 3), min_size=10, max_size=10))
def test_as_by_definition(ranking, index, rows, clusters):
    clusters[0] = 3
    Y = Sparse.of_rows([sorted(true) for true, _ in rows], 10)
    found = measure(Y, index(clusters), ranking([list(order) for _, order in rows], 4))
    for b, value in found["recall"].items():
        reached = [clusters[label] in order[: int(b)] for true, order in rows for label in true]
        assert value == (round(100 * float(np.mean(reached)), 2) if reached else 0.0)
