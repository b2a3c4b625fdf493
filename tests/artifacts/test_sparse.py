import numpy as np
import pytest
from scipy.sparse import random_array

from xbert.artifacts.errors import ArtifactError
from xbert.artifacts.kinds.label_index import parents_of
from xbert.artifacts.kinds.scores import Scores
from xbert.artifacts.sparse import Sparse


@pytest.fixture
def matrix():
    return random_array((30, 20), density=0.2, format="csr", dtype=np.float32, rng=np.random.default_rng(0))


def test_taking_rows_equals_scipy(matrix):
    rows = np.array([3, 3, 0, 29])
    assert (Sparse.of_scipy(matrix).take(rows).to_scipy() != matrix[rows]).nnz == 0


def test_slicing_rows_equals_scipy(matrix):
    assert (Sparse.of_scipy(matrix).slice(5, 17).to_scipy() != matrix[5:17]).nnz == 0


def test_transposing_equals_scipy(matrix):
    assert (Sparse.of_scipy(matrix).transpose().to_scipy() != matrix.T).nnz == 0


def test_saved_and_loaded_is_the_same(matrix, tmp_path):
    Sparse.of_scipy(matrix).save(tmp_path, "m")
    assert (Sparse.load(tmp_path, "m", 20).to_scipy() != matrix).nnz == 0


def test_a_column_out_of_range_is_found(matrix):
    sparse = Sparse.of_scipy(matrix)
    sparse.indices[3] = 20
    with pytest.raises(ArtifactError, match="outside"):
        sparse.check("m")


def test_row_pointers_that_do_not_fit_are_refused():
    with pytest.raises(ArtifactError, match="row pointers"):
        Sparse(np.array([0, 5], np.int64), np.array([1, 2], np.int32), None, 3)


def test_a_parent_is_on_where_any_child_is():
    Y = Sparse.of_rows([[0, 1], [2], []], 3)
    up = parents_of(Y, np.array([0, 0, 1], np.int32), 2)
    assert up.to_scipy().toarray().tolist() == [[1, 0], [0, 1], [0, 0]]


def test_top_pads_short_rows_and_of_top_undoes_it():
    scores = Scores(
        Sparse(np.array([0, 2, 2, 3], np.int64), np.array([4, 1, 0], np.int32), np.array([0.9, 0.5, 1], np.float32), 5)
    )
    targets, values = scores.top(2)
    assert targets.tolist() == [[4, 1], [-1, -1], [0, -1]]
    assert Scores.of_top(targets, values, 5).S.indices.tolist() == [4, 1, 0]


@pytest.mark.parametrize(("values", "why"), [([0.5, 0.9], "descending"), ([1.5, 0.2], "outside"), ([0.5, -0.1], "outside")])
def test_scores_that_cannot_be_are_found(values, why):
    scores = Scores(Sparse(np.array([0, 2], np.int64), np.array([0, 1], np.int32), np.array(values, np.float32), 2))
    with pytest.raises(ArtifactError, match=why):
        scores.check("S")


def test_a_later_document_may_start_higher():
    values = np.array([0.2, 0.1, 0.9], np.float32)
    Scores(Sparse(np.array([0, 2, 3], np.int64), np.array([0, 1, 0], np.int32), values, 2)).check("S")
