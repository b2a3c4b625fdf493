import numpy as np
from scipy.sparse import random_array

from xbert.artifacts.sparse import Sparse
from xbert.stages.index.embeddings import sum_by_label
from xbert.stages.kernels import sums


def data(seed=0):
    rng = np.random.default_rng(seed)
    X = Sparse.of_scipy(random_array((60, 40), density=0.2, format="csr", dtype=np.float32, rng=rng))
    Y = Sparse.of_rows([sorted(rng.choice(15, 2, replace=False).tolist()) for _ in range(60)], 16)  # label 15 has none
    return X, Y


def expected(X, Y):
    total = Y.to_scipy().T.toarray() @ X.to_scipy().toarray()
    return total / np.maximum(np.linalg.norm(total, axis=1, keepdims=True), 1e-30)


def test_sums_have_unit_length():
    X, Y = data()
    documents = Y.transpose()
    lengths, columns, values = sums.unit_sums(documents.indptr, documents.indices, X.indptr, X.indices, X.data, X.n_cols)
    assert lengths[15] == 0
    Z = Sparse(np.r_[0, np.cumsum(lengths)], columns, values, X.n_cols).to_scipy().toarray()
    assert np.allclose(Z, expected(X, Y), atol=1e-6)


def test_threads_and_memory_change_nothing():
    X, Y = data(1)
    parts = [sum_by_label(X, Y, threads, memory) for threads, memory in ((1, 1 << 30), (3, 1 << 30), (2, 1))]
    assert np.allclose(parts[0].to_scipy().toarray(), expected(X, Y), atol=1e-6)
    for name in ("indptr", "indices", "data"):
        assert len({getattr(part, name).tobytes() for part in parts}) == 1
