"""Features the corpus came with."""

import numpy as np
import pytest

from xbert.artifacts.errors import ArtifactError, InputError
from xbert.artifacts.sparse import Sparse
from xbert.stages.features.given import Given, GivenConfig, weigh_given


def rows(*documents, n_terms=4):
    indptr = np.cumsum([0] + [len(document) for document in documents])
    indices = np.array([term for document in documents for term, _ in document], np.int32)
    data = np.array([value for document in documents for _, value in document], np.float32)
    return Sparse(indptr, indices, data, n_terms)


def run(dataset, work, **settings):
    return Given().run({"data": dataset}, GivenConfig(**settings), work)


TRAIN = rows([(0, 3.0), (2, 4.0)], [], [(2, 5.0)])


def test_rows_are_brought_to_unit_length(dataset_of, work):
    X = run(dataset_of(train=TRAIN, test=rows([(1, 2.0)])), work).X
    np.testing.assert_allclose(X["train"].to_scipy().toarray(), [[0.6, 0, 0.8, 0], [0] * 4, [0, 0, 1, 0]], atol=1e-7)
    np.testing.assert_allclose(X["test"].to_scipy().toarray(), [[0, 1, 0, 0]])


def test_values_can_be_left_alone(dataset_of, work):
    X = run(dataset_of(train=TRAIN), work, normalize=False).X["train"]
    np.testing.assert_array_equal(X.data, TRAIN.data)


def test_idf_counts_training_documents(dataset_of, work):
    features = run(dataset_of(train=TRAIN, test=rows([(1, 1.0)])), work, normalize=False, idf=True)
    idf = np.log(4 / np.array([2, 1, 3, 1])) + 1
    np.testing.assert_allclose(features.X["train"].data, [3 * idf[0], 4 * idf[2], 5 * idf[2]], rtol=1e-6)
    np.testing.assert_allclose(features.X["test"].data, [idf[1]], rtol=1e-6)


def test_columns_are_put_in_order(dataset_of, work):
    X = run(dataset_of(train=rows([(2, 4.0), (0, 3.0)], [(1, 1.0), (0, 0.0)])), work, normalize=False).X["train"]
    assert X.indices.tolist() == [0, 2, 0, 1]
    assert X.data.tolist() == [3, 4, 0, 1]


def test_a_row_of_zeros_stays_one(dataset_of, work):
    assert run(dataset_of(train=rows([(0, 0.0)])), work).X["train"].data.tolist() == [0.0]


def test_new_documents_are_treated_alike(dataset_of, work):
    features = run(dataset_of(train=TRAIN), work, idf=True)
    again = weigh_given(features, TRAIN)
    np.testing.assert_array_equal(again.data, features.X["train"].data)
    np.testing.assert_array_equal(again.indices, features.X["train"].indices)


def test_new_documents_of_another_width_are_refused(dataset_of, work):
    features = run(dataset_of(train=TRAIN), work)
    with pytest.raises(InputError, match="have 5 features, the training documents 4"):
        weigh_given(features, rows([(0, 1.0)], n_terms=5))


def test_features_made_of_text_take_no_rows(features_of):
    with pytest.raises(InputError, match="give documents as text"):
        weigh_given(features_of(train=["aa", "aa"]), TRAIN)


def test_text_without_features_is_refused(dataset_of, work):
    with pytest.raises(InputError, match=r'set features.method = "tfidf"'):
        run(dataset_of(train=["some text"]), work)


def test_values_that_are_no_numbers_are_refused(dataset_of, work):
    with pytest.raises(ArtifactError, match="not a finite number"):
        run(dataset_of(train=rows([(0, np.nan)])), work)
