import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from xbert.artifacts.arrays import Strings
from xbert.artifacts.errors import InputError
from xbert.artifacts.kinds.dataset import Dataset, Labels, Split
from xbert.artifacts.kinds.features import Features
from xbert.artifacts.sparse import Sparse
from xbert.stages.index.kmeans import KMeans, KMeansConfig, levels_of

N_TERMS = 40


def inputs(Y_rows, n_labels, X=None, label_rows=None, parents=None, texts=True):
    """A dataset of those labels per document, with random features unless given."""
    rng = np.random.default_rng(0)
    if X is None:
        X = random_array((len(Y_rows), N_TERMS), density=0.2, format="csr", dtype=np.float32, rng=rng)
    names = Strings.of([f"L{i}" for i in range(n_labels)])
    parents = Sparse.of_rows(parents or [[] for _ in range(n_labels)], n_labels)
    texts_of = names if texts else Strings.of([""] * n_labels)
    labels = Labels(names, texts_of, Strings.of([""] * n_labels), parents)
    split = Split(Sparse.of_rows(Y_rows, n_labels), Strings.of(["x"] * len(Y_rows)), None)
    features = Features({"train": Sparse.of_scipy(X)}, None, {}, label_rows)
    return {"data": Dataset(labels, {"train": split}, {}), "features": features}


@settings(max_examples=25, deadline=None)
@given(n_labels=st.integers(2, 90), data=st.data())
def test_cluster_sizes_differ_by_at_most_one(bench, tmp_path_factory, n_labels, data):
    n_clusters = data.draw(st.integers(2, n_labels))
    seed = data.draw(st.integers(0, 9))
    index = run(inputs([[i] for i in range(n_labels)], n_labels), bench, tmp_path_factory, clusters=n_clusters, seed=seed)
    sizes = index.cluster_sizes()
    assert index.n_clusters == n_clusters
    assert sizes.max() - sizes.min() <= 1


def run(given_inputs, bench, tmp_path_factory, **config):
    chosen = KMeansConfig(**config)
    return KMeans().run(given_inputs, chosen, bench(tmp_path_factory.mktemp("index"), seed=chosen.seed))


@settings(max_examples=15, deadline=None)
@given(n_labels=st.integers(6, 60), n_unknown=st.integers(1, 40), n_clusters=st.integers(2, 6))
def test_sizes_stay_balanced_with_labels_nothing_is_known_of(bench, tmp_path_factory, n_labels, n_unknown, n_clusters):
    index = run(inputs([[i] for i in range(n_labels)], n_labels + n_unknown), bench, tmp_path_factory, clusters=n_clusters)
    sizes = index.cluster_sizes()
    assert sizes.sum() == n_labels + n_unknown
    assert sizes.max() - sizes.min() <= 1


def test_labels_that_share_their_documents_words_share_a_cluster(work):
    X = np.zeros((40, N_TERMS), np.float32)
    X[::2, :10], X[1::2, 20:30] = 1, 1
    clusters = KMeans().run(inputs([[i] for i in range(40)], 40, csr_array(X)), KMeansConfig(clusters=2), work).chain[0].indices
    assert len(set(clusters[::2])) == len(set(clusters[1::2])) == 1
    assert clusters[0] != clusters[1]


def test_another_seed_gives_another_clustering(bench, tmp_path_factory):
    given_inputs = inputs([[i] for i in range(64)], 64)
    chains = [run(given_inputs, bench, tmp_path_factory, clusters=8, seed=seed).chain[0].indices.tolist() for seed in (0, 0, 1)]
    assert chains[0] == chains[1] != chains[2]


def test_the_levels_above_nest_and_shrink(bench, tmp_path_factory):
    index = run(inputs([[i] for i in range(200)], 200), bench, tmp_path_factory, clusters=64, branching=4)
    assert [level.n_cols for level in index.chain] == [64, 16, 4]
    for level in index.chain[1:]:
        assert (level.column_counts() == 4).all()


@pytest.mark.parametrize(
    ("n_clusters", "branching", "widths"), [(64, 64, [6]), (64, 16, [6, 3]), (300, 16, [9, 6, 3]), (2, 16, [1])]
)
def test_levels_are_spaced_evenly(n_clusters, branching, widths):
    assert levels_of(int(np.ceil(np.log2(n_clusters))), n_clusters, branching) == widths


def test_a_label_without_documents_goes_to_the_cluster_of_its_text(work):
    X = np.zeros((20, N_TERMS), np.float32)
    X[:10, :5], X[10:, 20:25] = 1, 1
    rows = np.zeros((22, N_TERMS), np.float32)
    rows[20, 21], rows[21, 2] = 1, 1
    given_inputs = inputs([[i] for i in range(20)], 22, csr_array(X), Sparse.of_scipy(csr_array(rows)))
    clusters = KMeans().run(given_inputs, KMeansConfig(clusters=2), work).chain[0].indices
    assert clusters[20] == clusters[15]
    assert clusters[21] == clusters[5]
    assert work.said[0].startswith("2 labels have no training document")


def test_a_label_without_documents_or_text_goes_to_its_parent(work):
    X = np.zeros((20, N_TERMS), np.float32)
    X[:10, :5], X[10:, 20:25] = 1, 1
    parents = [[] for _ in range(20)] + [[12], [3]]
    clusters = KMeans().run(inputs([[i] for i in range(20)], 22, csr_array(X), parents=parents), KMeansConfig(clusters=2), work)
    assert clusters.chain[0].indices[20] == clusters.chain[0].indices[12]


def test_a_cluster_a_label_leaves_out_labels_whose_documents_have_no_terms(work):
    X = np.eye(12, N_TERMS, dtype=np.float32)
    X[9:] = 0  # of three labels no document has a known word
    index = KMeans().run(inputs([[i] for i in range(12)], 12, csr_array(X)), KMeansConfig(labels_per_cluster=1), work)
    assert index.n_clusters == 9
    assert sorted(index.cluster_sizes()) == [1] * 6 + [2] * 3


def test_more_clusters_than_labels_is_one_sentence(work):
    with pytest.raises(InputError, match="only 5 labels"):
        KMeans().run(inputs([[i] for i in range(5)], 5), KMeansConfig(clusters=6), work)


@pytest.mark.parametrize("clusters", [0, 1, -3, "many", 2.5])
def test_a_number_of_clusters_that_cannot_be_is_one_sentence(clusters):
    with pytest.raises(InputError, match="clusters ="):
        KMeansConfig(clusters=clusters)


@pytest.mark.parametrize("embedding", ["text", "pifa+text"])
def test_an_embedding_that_needs_label_texts_says_so(work, embedding):
    with pytest.raises(InputError, match="needs label texts"):
        KMeans().run(inputs([[i] for i in range(5)], 5, texts=False), KMeansConfig(clusters=2, embedding=embedding), work)


def test_pifa_is_the_unit_sum_of_a_labels_documents():
    from xbert.stages.index.embeddings import embed

    given_inputs = inputs([[0, 1], [1], [0]], 2)
    X = given_inputs["features"].X["train"].to_scipy().toarray()
    Z = embed(given_inputs["data"], given_inputs["features"], "pifa", 2, 1 << 30).Z.to_scipy().toarray()
    for label, rows in ((0, [0, 2]), (1, [0, 1])):
        total = X[rows].sum(axis=0)
        assert np.allclose(Z[label], total / np.linalg.norm(total), atol=1e-6)
