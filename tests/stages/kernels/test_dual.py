import numpy as np
import pytest
from scipy.sparse import random_array

from xbert.artifacts.sparse import Sparse
from xbert.stages.kernels import dual, packing, reference


def problem(seed, n_rows=300, n_columns=80, share=0.15):
    """Unit rows whose sign is a noisy linear rule."""
    rng = np.random.default_rng(seed)
    X = random_array((n_rows, n_columns), density=0.1, format="csr", rng=rng)
    X = X / np.maximum(np.sqrt(X.multiply(X).sum(axis=1)), 1e-9)[:, None]
    margin = X @ rng.normal(size=n_columns) + 0.3 * rng.normal(size=n_rows)
    return Sparse.of_scipy(X.tocsr()), np.where(margin > np.quantile(margin, 1 - share), 1, -1).astype(np.float32)


def objective(X, sign, w, bias, cost_positive, cost_negative):
    loss = np.maximum(0, 1 - sign * (X.to_scipy() @ w.astype(float) + bias))
    return 0.5 * (w @ w + bias * bias) + (np.where(sign > 0, cost_positive, cost_negative) * loss**2).sum()


def pack(X, narrow=True):
    """All rows, every column used, so that local columns are columns."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "_NARROW_COLUMNS", 1 << 16 if narrow else 0)
        packed = packing.pack(X.indptr, X.indices, X.data, np.arange(X.n_rows, dtype=np.int32), np.full(X.n_cols, -1, np.int32))
    assert len(packed.columns) == X.n_cols
    assert packed.bits == (16 if narrow else 32)
    return packed


def solve(X, sign, cost_positive=1.0, cost_negative=1.0, tolerance=1e-3, seed=0, narrow=True):
    w = np.zeros(X.n_cols, np.float32)
    rows = pack(X, narrow)
    bias, passes = dual.solve(*rows.arguments(), sign, cost_positive, cost_negative, tolerance, 1000, seed, w)
    return w, bias, passes


@pytest.mark.parametrize("costs", [(1.0, 1.0), (4.0, 1.0), (0.25, 0.5), (30.0, 30.0)])
@pytest.mark.parametrize("seed", range(6))
def test_the_objective_is_within_a_thousandth_of_liblinears(seed, costs):
    X, sign = problem(seed)
    w, bias, _ = solve(X, sign, *costs)
    theirs, their_bias = reference.solve(X.to_scipy(), sign, *costs, 1e-4, seed)
    assert objective(X, sign, w, bias, *costs) <= 1.001 * objective(X, sign, theirs, their_bias, *costs)


@pytest.mark.parametrize("seed", range(3))
def test_words_of_either_width_give_the_same_classifier(seed):
    X, sign = problem(seed)
    (w, bias, _), (wide, wide_bias, _) = (solve(X, sign, tolerance=1e-5, narrow=narrow) for narrow in (True, False))
    assert np.allclose(w, wide, atol=2e-3)
    assert bias == pytest.approx(wide_bias, abs=2e-3)


@pytest.mark.parametrize("narrow", [True, False])
def test_a_word_holds_its_column_and_value(narrow):
    X, _ = problem(3)
    packed = pack(X, narrow)
    assert np.array_equal(packed.words >> np.uint64(packed.bits), X.indices)
    lower = (packed.words.astype(np.uint64) << np.uint64(32 - packed.bits)).astype(np.uint32).view(np.int32)
    assert np.allclose(lower * packed.unit, X.data, atol=abs(X.data).max() / 32767)


def test_values_of_very_different_size_take_the_wide_word():
    data = np.full(10_000, 1e-4, np.float32)
    data[0] = 1.0
    X = Sparse(np.arange(10_001, dtype=np.int64), np.zeros(10_000, np.int32), data, 1)
    packed = packing.pack(X.indptr, X.indices, X.data, np.arange(10_000, dtype=np.int32), np.full(1, -1, np.int32))
    assert packed.bits == 32


def test_rows_left_out_do_not_matter():
    X, sign = problem(0)
    kept = np.arange(X.n_rows) % 3 > 0
    w, bias, _ = solve(X, np.where(kept, sign, 0).astype(np.float32), tolerance=1e-6)
    alone, alone_bias, _ = solve(X.take(np.flatnonzero(kept)), sign[kept], tolerance=1e-6)
    assert np.allclose(w, alone, atol=1e-3)
    assert bias == pytest.approx(alone_bias, abs=1e-3)


def test_the_same_seed_gives_the_same_bytes():
    X, sign = problem(1)
    assert solve(X, sign, seed=7)[0].tobytes() == solve(X, sign, seed=7)[0].tobytes()


def test_packing_gathers_rows_and_renumbers_their_columns():
    X, _ = problem(2)
    rows = np.array([5, 250, 17], np.int32)
    lookup = np.full(X.n_cols, -1, np.int32)
    columns, indptr, indices, data = packing.gather(X.indptr, X.indices, X.data, rows, lookup)
    packed = Sparse(indptr, indices.astype(np.int32), data, len(columns)).to_scipy().toarray()
    assert np.array_equal(packed, X.to_scipy().toarray()[rows][:, columns])
    assert (lookup == -1).all()


def dual_children(indptr, indices, data, n_columns, *rest):
    """With the arguments that the reference takes."""
    X = Sparse(indptr, indices.astype(np.int32), data, n_columns)
    return dual.solve_children(*pack(X).arguments(), n_columns, *rest)


def reference_children(indptr, indices, data, n_columns, *rest):
    """All columns are sparse ones."""
    return reference.solve_children(indptr, indices, data, n_columns, n_columns, *rest)


def solve_cluster(solver, X, positives, threshold=0.0, other=None):
    ptr = np.r_[0, np.cumsum([len(rows) for rows in positives])]
    flat = np.concatenate([np.asarray(rows, np.int64) for rows in positives])
    other = np.full(X.n_rows, -1, np.float32) if other is None else other
    seeds = np.arange(len(positives))
    return solver(X.indptr, X.indices, X.data, X.n_cols, ptr, flat, other, 1.0, 1.0, 1e-4, 1000, threshold, seeds)


def test_both_solvers_find_the_same_weights_for_a_cluster():
    X, sign = problem(3)
    positives = [np.flatnonzero(sign > 0), np.arange(0, 300, 7)]
    ours, theirs = solve_cluster(dual_children, X, positives), solve_cluster(reference_children, X, positives)
    for child in range(2):
        dense = []
        for child_ptr, columns, values, _ in (ours, theirs):
            mine = slice(child_ptr[child], child_ptr[child + 1])
            dense.append(np.bincount(columns[mine], values[mine], X.n_cols))
        assert np.allclose(*dense, atol=2e-3)
    assert np.allclose(ours[3], theirs[3], atol=2e-3)


def test_a_child_without_documents_is_a_certain_no():
    X, _ = problem(4)
    child_ptr, _, _, bias = solve_cluster(dual_children, X, [np.empty(0, np.int64), np.array([1, 2, 3])])
    assert child_ptr[1] == 0
    assert bias[0] == -1


def test_small_weights_are_dropped():
    X, sign = problem(5)
    _, _, values, _ = solve_cluster(dual_children, X, [np.flatnonzero(sign > 0)], threshold=0.2)
    assert len(values)
    assert (np.abs(values) > 0.2).all()
