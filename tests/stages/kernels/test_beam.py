import numpy as np
import pytest
from scipy.sparse import random_array

from xbert.artifacts.sparse import Sparse
from xbert.stages.kernels import beam, chunks, levels, scoring

N_TERMS, N_CHILDREN, N_PARENTS = 50, 30, 5


@pytest.fixture
def setup():
    rng = np.random.default_rng(0)
    X = Sparse.of_scipy(random_array((40, N_TERMS), density=0.15, format="csr", dtype=np.float32, rng=rng))
    W = random_array((N_CHILDREN, N_TERMS), density=0.3, format="csr", dtype=np.float32, rng=rng)
    parent = rng.permutation(np.arange(N_CHILDREN) % N_PARENTS).astype(np.int32)
    bias = rng.normal(size=N_CHILDREN).astype(np.float32)
    return X, W, parent, bias


def chunked(W, parent, bias):
    children_ptr, children = levels.group_children(parent, N_PARENTS)
    grouped = Sparse.of_scipy(W[children])
    writer = chunks.ChunkWriter(children_ptr, children, N_TERMS)
    writer.append(grouped.row_lengths(), grouped.indices, grouped.data, bias[children])
    return writer.close()


def stored(weights):
    """The weights as they are kept, in 16 bits: what a step must agree with."""
    return np.array([np.bincount(*weights.of_child(child), minlength=N_TERMS) for child in range(N_CHILDREN)])


def brute_force(X, W, parent, bias, beams, power, k):
    """Every child of every cluster of a document, by plain arithmetic."""
    margins = X.to_scipy().toarray() @ W.T + bias
    found = []
    for doc, clusters in enumerate(beams):
        scored = []
        for cluster, score in clusters:
            for child in np.flatnonzero(parent == cluster):
                z = margins[doc, child]
                log = -np.log1p(np.exp(-z)) if power == 0 else -(max(0, 1 - z) ** power)
                scored.append((-(np.float32(score) + np.float32(log)), child))  # rounded as the kernel rounds: equals by number
        found.append([(child, -value) for value, child in sorted(scored)[:k]])
    return found


@pytest.mark.parametrize("post_processor", ["sigmoid", "l1-hinge", "l2-hinge", "l3-hinge"])
@pytest.mark.parametrize("n_docs", [1, 40])  # one document is searched by bisection, many through the laid-out chunk
def test_a_step_equals_brute_force(setup, post_processor, n_docs):
    X, W, parent, bias = setup
    X = X.slice(0, n_docs)
    beams = [[(doc % N_PARENTS, -0.1), ((doc + 2) % N_PARENTS, -0.7)] for doc in range(n_docs)]
    now = scoring.Beam(
        np.arange(0, 2 * n_docs + 1, 2),
        np.array([c for row in beams for c, _ in row], np.int32),
        np.array([s for row in beams for _, s in row], np.float32),
    )
    weights = chunked(W, parent, bias)
    best = scoring.step(X, now, weights, post_processor, 4, scoring.scratch(N_TERMS))
    expected = brute_force(X, stored(weights), parent, bias, beams, scoring.POWERS[post_processor], 4)
    assert best.target.tolist() == [child for row in expected for child, _ in row]
    assert np.allclose(best.score, [score for row in expected for _, score in row], atol=1e-5)


@pytest.mark.parametrize("k", [1, 4, 25])
@pytest.mark.parametrize("n_docs", [1, 40])
def test_clusters_that_are_skipped_change_nothing(setup, n_docs, k):
    X, W, parent, bias = setup
    X, falling = X.slice(0, n_docs), [-0.01, -0.3, -2.0, -6.0, -20.0]  # the last ones can hold no label of the best few
    beams = [[((doc + i) % N_PARENTS, score) for i, score in enumerate(falling)] for doc in range(n_docs)]
    now = scoring.Beam(
        np.arange(0, 5 * n_docs + 1, 5),
        np.array([c for row in beams for c, _ in row], np.int32),
        np.array([s for row in beams for _, s in row], np.float32),
    )
    weights = chunked(W, parent, bias)
    best = scoring.step(X, now, weights, "l3-hinge", k, scoring.scratch(N_TERMS))
    expected = brute_force(X, stored(weights), parent, bias, beams, 3, k)
    assert np.allclose(best.score, [score for row in expected for _, score in row], atol=1e-4)


def test_the_scratch_is_left_as_it_was(setup):
    X, W, parent, bias = setup
    lookup = scoring.scratch(N_TERMS)
    now = scoring.Beam(np.arange(41), np.zeros(40, np.int32), np.zeros(40, np.float32))
    scoring.step(X, now, chunked(W, parent, bias), "sigmoid", 3, lookup)
    assert (lookup == -1).all()


def test_a_child_of_a_chunk_has_its_weights(setup):
    _, W, parent, bias = setup
    weights = chunked(W, parent, bias)
    weights.check("W")
    for child in (0, 7, 29):
        terms, values = weights.of_child(child)
        expected = W[[child]].toarray().ravel()
        assert set(terms.tolist()) == set(np.flatnonzero(expected).tolist())
        assert np.allclose(np.bincount(terms, values, N_TERMS), expected, atol=abs(expected).max() / 30_000)


def test_the_best_come_first_and_equals_by_number():
    best, score, n = np.empty(3, np.int32), np.empty(3, np.float32), 0
    for child, value in zip([4, 3, 9, 1, 0], [0.5, 0.7, 0.7, 0.5, 0.1], strict=True):
        n = beam.insert(best, score, 0, 3, n, child, np.float32(value))
    assert best.tolist() == [3, 9, 1]
    assert np.allclose(score, [0.7, 0.7, 0.5])


def test_far_margins_keep_their_order():
    assert beam.log_score(np.float32(-80.0), 0) > beam.log_score(np.float32(-90.0), 0)
