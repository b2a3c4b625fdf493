import numpy as np
import pytest
from scipy.sparse import csr_array, hstack, random_array

from xbert.artifacts.errors import ArtifactError
from xbert.artifacts.sparse import Sparse
from xbert.stages.kernels import dense, dual, levels, packing, reference
from xbert.stages.kernels.dense import Vectors
from xbert.stages.kernels.levels import Solver

WIDTH = 12


def rows(n_docs=300, n_terms=60, seed=0):
    rng = np.random.default_rng(seed)
    X = random_array((n_docs, n_terms), density=0.1, format="csr", dtype=np.float32, rng=rng)
    X[[5, 6]] *= 0
    X.eliminate_zeros()
    vectors = (5 * rng.normal(size=(n_docs, WIDTH))).astype(np.float16)
    vectors[[6, 9]] = 0
    return Sparse.of_scipy(X), vectors


def unit(vectors):
    return vectors.astype(float) / np.maximum(np.linalg.norm(vectors.astype(float), axis=1), 1e-9)[:, None]


@pytest.mark.parametrize("batch", [1, 7, 4096])
def test_rows_and_vectors_are_joined_as_scipy_does_it(monkeypatch, batch):
    monkeypatch.setattr(dense, "_BATCH", batch)
    X, vectors = rows()
    joined = dense.concatenate(X, vectors, 0.5)
    joined.check("joined")
    assert joined.shape == (300, 60 + WIDTH)
    assert np.allclose(joined.to_scipy().toarray(), hstack([X.to_scipy(), csr_array(0.5 * unit(vectors))]).toarray(), atol=1e-6)
    assert np.array_equal(joined.row_lengths(), X.row_lengths() + WIDTH)  # all columns, zeros too


def test_columns_of_a_row_ascend():
    joined = dense.concatenate(*rows(), 1.0)
    assert all((np.diff(joined.row(i)) > 0).all() for i in range(300))


def test_no_documents_are_no_rows():
    X, vectors = rows()
    assert dense.concatenate(X.slice(0, 0), vectors[:0], 1.0).shape == (0, 60 + WIDTH)


def test_vectors_of_other_documents_are_refused():
    X, vectors = rows()
    with pytest.raises(ArtifactError, match="299 vectors for 300 documents"):
        dense.concatenate(X, vectors[1:], 1.0)
    with pytest.raises(ArtifactError, match="299 vectors for 300 documents"):
        levels.make_problem(X, Sparse.of_rows([[0]] * 300, 1), np.zeros(1, np.int32), 1, "tfn", None, Vectors(vectors[1:], 1.0))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_vector_that_is_no_number_is_refused(value):
    X, vectors = rows()
    vectors[17, 3] = value
    with pytest.raises(ArtifactError, match="no number"):
        dense.concatenate(X, vectors, 1.0)


def solve(packed, n_columns, sign):
    w = np.zeros(n_columns, np.float32)
    bias, _ = dual.solve(*packed.arguments(), sign, 1.0, 1.0, 1e-5, 2000, 0, w)
    return w, bias


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0])
def test_dense_columns_give_the_classifier_that_sparse_ones_give(scale):
    X, vectors = rows()
    joined, everything = dense.concatenate(X, vectors, scale), np.arange(300, dtype=np.int32)
    sign = np.where(joined.to_scipy() @ np.random.default_rng(1).normal(size=60 + WIDTH) > 0.3, 1, -1).astype(np.float32)
    packed = packing.pack(X.indptr, X.indices, X.data, everything, np.full(60, -1, np.int32), Vectors(vectors, scale))
    assert np.array_equal(packed.columns, np.arange(60))
    whole = packing.pack(joined.indptr, joined.indices, joined.data, everything, np.full(60 + WIDTH, -1, np.int32))
    assert np.allclose(packed.squares, whole.squares, atol=1e-3)
    (w, bias), (sparse, sparse_bias) = (solve(each, 60 + WIDTH, sign) for each in (packed, whole))
    theirs, their_bias = reference.solve(joined.to_scipy(), sign, 1.0, 1.0, 1e-6, 0)
    for other, other_bias in ((sparse, sparse_bias), (theirs, their_bias)):
        assert np.allclose(w, other, atol=5e-3)
        assert bias == pytest.approx(other_bias, abs=5e-3)


def test_vectors_are_packed_in_batches(monkeypatch):
    _, vectors = rows()
    chosen = np.array([3, 6, 200, 17, 42], np.int32)
    whole = packing.pack_dense(Vectors(vectors, 1.0), chosen)
    assert np.allclose(whole / 32767, unit(vectors)[chosen], atol=1 / 32767)
    monkeypatch.setattr(packing, "_BATCH", 2)
    assert np.array_equal(packing.pack_dense(Vectors(vectors, 1.0), chosen), whole)


class Nothing:
    def recall(self, name):
        return None

    def keep(self, name, piece):
        pass


def problem():
    X, vectors = rows()
    rng = np.random.default_rng(3)
    Y = Sparse.of_rows([sorted(rng.choice(24, 2, replace=False).tolist()) for _ in range(300)], 24)
    return levels.make_problem(X, Y, (np.arange(24) % 6).astype(np.int32), 6, "tfn", None, Vectors(vectors, 1.0))


def train(solver="dual", tolerance=1e-4, threshold=0.2, threads=2):
    return levels.train(problem(), Solver(solver, 1.0, 1.0, tolerance, 2000, threshold, 0), threads, Nothing(), lambda n: None)


def whole(weights, child):
    return np.bincount(*weights.of_child(child), minlength=60 + WIDTH)


@pytest.mark.parametrize("solver", ["dual", "liblinear"])
def test_small_weights_of_dense_columns_are_kept(solver):
    weights = train(solver)
    weights.check("weights")
    assert weights.n_terms == 60 + WIDTH
    for child in range(24):
        terms, values = weights.of_child(child)
        assert (np.abs(values[terms < 60]) > 0.19).all()
        assert (terms >= 60).sum() == WIDTH
    assert np.abs(values[terms >= 60]).min() < 0.2


def test_liblinear_agrees_on_a_level_with_dense_columns():
    ours, theirs = train("dual", threshold=0.0), train("liblinear", threshold=0.0)
    for child in (0, 5, 23):
        assert np.allclose(whole(ours, child), whole(theirs, child), atol=1e-2)


def test_neither_threads_nor_the_cut_change_a_level_with_dense_columns(monkeypatch):
    first = train(threads=1)
    monkeypatch.setattr(levels, "_MIN_SHARDS", 3)
    again = train(threads=2)
    assert all(x.tobytes() == y.tobytes() for x, y in zip(first.arrays(), again.arrays(), strict=True))
