import json
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from xbert.artifacts.errors import ArtifactError, InputError
from xbert.artifacts.fingerprint import Recipe
from xbert.artifacts.kinds.features import Features
from xbert.artifacts.kinds.linear_ranker import LinearRanker
from xbert.artifacts.kinds.neural_matcher import Clustering, NeuralMatcher
from xbert.artifacts.kinds.scores import Scores
from xbert.artifacts.manifest import Manifest
from xbert.artifacts.sparse import Sparse
from xbert.artifacts.store import Store
from xbert.stages.base import Config, Shape
from xbert.stages.kernels import chunks, levels, scoring
from xbert.stages.rank import linear
from xbert.stages.rank.linear import Linear, LinearConfig, rank

N_LABELS, N_CLUSTERS, WIDTH = 12, 3, 16
CLUSTERS = [label % N_CLUSTERS for label in range(N_LABELS)]


def matcher_of(index, scores, vectors, train_scores="linear"):
    clusterings = [Clustering(index.digest(), index.n_clusters)]
    return NeuralMatcher("nowhere", {"head": "cls"}, clusterings, [scores], vectors, 3, train_scores, [])


@pytest.fixture
def meaningless(dataset, index):
    """Inputs whose words say nothing and whose vectors say all; the matcher is sure of nothing either."""
    rng = np.random.default_rng(0)
    direction = rng.normal(size=(N_LABELS, WIDTH))
    labels, X, vectors, scores = {}, {}, {}, {}
    for split, n_docs in (("train", 240), ("test", 60)):
        labels[split] = [[int(label)] for label in rng.integers(N_LABELS, size=n_docs)]
        words = [sorted(rng.choice(30, 4, replace=False).tolist()) for _ in range(n_docs)]
        X[split] = Sparse.of_scipy(Sparse.of_rows(words, 30).to_scipy() / 2)
        noise = 0.3 * rng.normal(size=(n_docs, WIDTH))
        vectors[split] = (7 * (direction[[row[0] for row in labels[split]]] + noise)).astype(np.float16)
        everywhere = np.tile(np.arange(N_CLUSTERS, dtype=np.int32), (n_docs, 1))
        scores[split] = Scores.of_top(everywhere, np.full(everywhere.shape, 0.5, np.float32), N_CLUSTERS)
    clustering = index(CLUSTERS)
    inputs = {"data": dataset(N_LABELS, **labels), "features": Features(X, None, {}), "index": clustering}
    return inputs | {"match": matcher_of(clustering, scores, vectors)}


@pytest.fixture
def run(bench, tmp_path):
    """Run the ranker, each time in a place of its own."""
    places = (tmp_path / f"work{number}" for number in count())

    def call(inputs, threads=2, **settings):
        return Linear().run(inputs, LinearConfig(**settings), bench(next(places), threads))

    return call


def precision(inputs, ranker):
    first, _ = ranker.scores["test"].top(1)
    return np.mean([first[i, 0] in inputs["data"].splits["test"].Y.row(i) for i in range(len(first))])


def test_vectors_tell_what_words_do_not(meaningless, run):
    assert precision(meaningless, run(meaningless)) < 0.3
    assert precision(meaningless, run(meaningless, features="tfidf+dense")) > 0.9


def test_vectors_of_no_length_tell_nothing(meaningless, run):
    ranker = run(meaningless, features="tfidf+dense", dense_scale=0.0)
    assert ranker.scores["test"].S.indices.tolist() == run(meaningless).scores["test"].S.indices.tolist()


def test_no_threshold_takes_the_vectors_away(meaningless, run):
    ranker = run(meaningless, features="tfidf+dense", threshold=10.0)
    assert precision(meaningless, ranker) > 0.9
    terms, _ = ranker.weights.of_child(4)
    assert terms.tolist() == list(range(30, 30 + WIDTH))


def test_threads_and_how_many_are_asked_for_change_nothing(meaningless, run, monkeypatch):
    monkeypatch.setattr(scoring, "_SMALL", 10)  # so that two threads get a block each
    one, two = (run(meaningless, threads=n, features="tfidf+dense") for n in (1, 2))
    assert one.scores["test"].S.data.tobytes() == two.scores["test"].S.data.tobytes()
    X, vectors = meaningless["features"].X["test"], meaningless["match"].vectors["test"]
    clusters = meaningless["match"].scores_of(meaningless["index"])["test"]
    alone = rank(X.slice(7, 8), Scores(clusters.S.slice(7, 8)), one, 5, 1, vectors[7:8])
    assert alone.S.indices.tolist() == one.scores["test"].S.row(7)[:5].tolist()


def test_a_document_without_words_is_ranked_by_its_vector_and_one_without_either_by_frequency(meaningless, run):
    ranker = run(meaningless, features="tfidf+dense")
    of = {int(meaningless["data"].splits["test"].Y.row(i)[0]): i for i in range(60)}
    vectors = np.stack([meaningless["match"].vectors["test"][of[5]], np.zeros(WIDTH, np.float16)])
    nothing = Sparse(np.zeros(3, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), 30)
    clusters = Scores(meaningless["match"].scores[0]["test"].S.slice(0, 2))
    found, values = rank(nothing, clusters, ranker, 3, 1, vectors).top(3)
    frequent = np.argsort(-ranker.prior, kind="stable")[:3]
    assert found[0, 0] == 5
    assert found[1].tolist() == frequent.tolist()
    assert np.allclose(values[1], ranker.prior[frequent])


def test_a_document_without_words_is_ranked_by_frequency_where_words_are_all_there_is(meaningless, run):
    ranker = run(meaningless)
    nothing = Sparse(np.zeros(2, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), 30)
    found, _ = rank(nothing, Scores(meaningless["match"].scores[0]["test"].S.slice(0, 1)), ranker, 3, 1).top(3)
    assert found[0].tolist() == np.argsort(-ranker.prior, kind="stable")[:3].tolist()


def test_a_matcher_of_several_clusterings_is_asked_for_this_one(meaningless, index, run):
    plain = run(meaningless, features="tfidf+dense")
    other = index([label % 2 for label in range(N_LABELS)])
    mine = meaningless["match"]
    wrong = {split: Scores.of_top(*(a[:, :2] for a in s.top(3)), 2) for split, s in mine.scores[0].items()}
    shared = replace(mine, clusterings=[Clustering(other.digest(), 2), *mine.clusterings], scores=[wrong, *mine.scores])
    again = run(meaningless | {"match": shared}, features="tfidf+dense")
    assert again.scores["test"].S.indices.tolist() == plain.scores["test"].S.indices.tolist()


# -- equation (1) with a power


def by_hand(matcher_weight, post_processor="l1-hinge"):
    """Two labels in clusters of their own, with margins 0.2 and 0.9 whatever the document says."""
    children_ptr, children = levels.group_children(np.array([0, 1], np.int32), 2)
    writer = chunks.ChunkWriter(children_ptr, children, 3)
    writer.append(np.zeros(2, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), np.array([0.2, 0.9], np.float32))
    prior = np.array([0.5, 0.5], np.float32)
    ranker = LinearRanker(writer.close(), prior, {}, post_processor, 2, matcher_weight=matcher_weight)
    X = Sparse(np.array([0, 1]), np.array([0], np.int32), np.array([1], np.float32), 3)
    clusters = Scores.of_top(np.array([[0, 1]], np.int32), np.array([[0.8, 0.1]], np.float32), 2)
    found, values = rank(X, clusters, ranker, 2, 1).top(2)
    return dict(zip(found[0].tolist(), values[0].tolist(), strict=True)), found[0].tolist()


@pytest.mark.parametrize("weight", [0.0, 0.25, 1.0, 3.0])
def test_a_score_is_the_geometric_mean_of_the_matchers_to_a_power_and_the_rankers(weight):
    scores, _ = by_hand(weight)
    products = {0: 0.8**weight * np.exp(-0.8), 1: 0.1**weight * np.exp(-0.1)}
    assert scores == pytest.approx({label: product ** (1 / (1 + weight)) for label, product in products.items()}, rel=1e-5)


def test_without_the_matchers_weight_the_order_is_the_rankers():
    assert by_hand(1.0)[1] == [0, 1]
    assert by_hand(0.0)[1] == [1, 0]


def test_the_weight_counts_in_a_run(meaningless, run):
    tilted = np.tile(np.array([0.9, 0.5, 0.01], np.float32), (60, 1))
    everywhere = np.tile(np.arange(3, dtype=np.int32), (60, 1))
    inputs = meaningless | {
        "match": replace(
            meaningless["match"],
            scores=[meaningless["match"].scores[0] | {"test": Scores.of_top(everywhere, tilted, 3)}],
        )
    }
    with_matcher, without = (run(inputs, features="tfidf+dense", matcher_weight=weight) for weight in (1.0, 0.0))
    assert (
        without.scores["test"].S.indices.tolist()
        == run(meaningless, features="tfidf+dense", matcher_weight=0.0).scores["test"].S.indices.tolist()
    )
    assert precision(inputs, without) > precision(inputs, with_matcher)


# -- what is kept


def test_what_a_ranker_needs_for_new_documents_is_kept(meaningless, run, tmp_path):
    ranker = run(meaningless, features="tfidf+dense", dense_scale=0.5, matcher_weight=2.0)
    (tmp_path / "kept").mkdir()
    ranker.save(tmp_path / "kept")
    again = LinearRanker.load(tmp_path / "kept")
    assert (again.features, again.dense_scale, again.matcher_weight) == ("tfidf+dense", 0.5, 2.0)
    assert again.takes_vectors
    X, vectors = meaningless["features"].X["test"], meaningless["match"].vectors["test"]
    scores = rank(X, meaningless["match"].scores[0]["test"], again, again.top, 1, vectors)
    assert scores.S.indices.tolist() == ranker.scores["test"].S.indices.tolist()


def test_a_ranker_of_format_2_is_opened_and_is_what_it_was(meaningless, run, tmp_path):
    """Format 2 had no `features`, `dense_scale` and `matcher_weight`; its other files are the same."""
    ranker, store = run(meaningless), Store(tmp_path / "run")
    recipe = Recipe("rank", "linear", 2, {"top": 50}, {})
    folder = store.make(recipe, LinearRanker, lambda partial, pieces: ranker)
    header = json.loads((folder / "linear_ranker.json").read_text())
    for name in ("features", "dense_scale", "matcher_weight"):
        del header[name]
    (folder / "linear_ranker.json").write_text(json.dumps(header))
    replace(Manifest.of(folder, recipe, LinearRanker), kind_format=2).write(folder)
    old = store.load(recipe, LinearRanker)
    assert (old.features, old.dense_scale, old.matcher_weight) == ("tfidf", 1.0, 1.0)
    assert not old.takes_vectors
    scores = rank(meaningless["features"].X["test"], meaningless["match"].scores[0]["test"], old, old.top, 1)
    assert scores.S.data.tobytes() == ranker.scores["test"].S.data.tobytes()


# -- what is refused


class Matcher(Config):
    """Settings of a matcher without an encoder."""


def settings_of_match(**settings):
    found = Matcher()
    for name, value in settings.items():
        object.__setattr__(found, name, value)
    return {"match": found}


@pytest.mark.parametrize("train_scores", ["out-of-fold", "linear"])
def test_negatives_may_come_from_scores_of_classifiers_that_did_not_see_the_document(train_scores):
    Linear.check(LinearConfig(), settings_of_match(train_scores=train_scores))


@pytest.mark.parametrize("train_scores", ["none", "in-sample"])
def test_negatives_from_scores_learnt_by_heart_are_refused(meaningless, run, train_scores):
    with pytest.raises(InputError, match=rf"which are '{train_scores}': set train_scores = 'out-of-fold' in \[match\]"):
        Linear.check(LinearConfig(), settings_of_match(train_scores=train_scores))
    with pytest.raises(InputError, match="learns from the matcher's scores"):
        run(meaningless | {"match": replace(meaningless["match"], train_scores=train_scores)})
    Linear.check(LinearConfig(negatives="tfn"), settings_of_match(train_scores=train_scores))


NO_VECTORS = r"\[rank\] features = 'tfidf\+dense' needs the document vectors of a fine-tuned encoder: set \[match\] method = "


@pytest.mark.parametrize("others", [{}, {"train_vectors": False}])
def test_vectors_of_a_matcher_that_makes_none_are_refused_before_anything_runs(others):
    with pytest.raises(InputError, match=NO_VECTORS):
        Linear.check(LinearConfig(features="tfidf+dense"), settings_of_match(**others))
    Linear.check(LinearConfig(), settings_of_match(**others))


def test_vectors_of_an_encoder_are_accepted():
    Linear.check(LinearConfig(features="tfidf+dense"), settings_of_match(head="cls", train_scores="linear", train_vectors=True))


def test_a_matcher_that_kept_no_vectors_is_refused(meaningless, run):
    with pytest.raises(InputError, match=NO_VECTORS):
        run(meaningless | {"match": replace(meaningless["match"], vectors={})}, features="tfidf+dense")
    held_out = {split: found for split, found in meaningless["match"].vectors.items() if split != "train"}
    with pytest.raises(InputError, match=NO_VECTORS):
        run(meaningless | {"match": replace(meaningless["match"], vectors=held_out)}, features="tfidf+dense")


def test_documents_that_do_not_fit_the_ranker_are_refused(meaningless, run):
    X, clusters = meaningless["features"].X["test"], meaningless["match"].scores[0]["test"]
    vectors, ranker = meaningless["match"].vectors["test"], run(meaningless, features="tfidf+dense")
    with pytest.raises(InputError, match="none are given"):
        rank(X, clusters, ranker, 5, 1)
    with pytest.raises(ArtifactError, match="have 45 columns, the ranker 46"):
        rank(X, clusters, ranker, 5, 1, vectors[:, 1:])
    with pytest.raises(ArtifactError, match="59 vectors for 60 documents"):
        rank(X, clusters, ranker, 5, 1, vectors[1:])


@pytest.mark.parametrize("name", ["dense_scale", "matcher_weight"])
def test_a_negative_weight_is_refused(name):
    with pytest.raises(InputError, match=f"{name} = -0.5: must be at least 0.0"):
        LinearConfig(**{name: -0.5})


# -- what it will take


def test_vectors_take_time_memory_and_disk():
    labels = {"n_labels": 4_108, "pairs": 228_000, "n_clusters": 64}
    shape = Shape(n_docs=45_000, n_held_out=6_000, text_bytes=0, entries=8_000_000, n_terms=39_000, **labels)
    plain, dense = (Linear.estimate(LinearConfig(features=each), shape, 2) for each in ("tfidf", "tfidf+dense"))
    assert 1.05 < dense.seconds / plain.seconds < 2
    assert dense.memory > plain.memory
    assert dense.least > plain.least
    assert dense.disk - plain.disk == pytest.approx(4_108 * 384 * 2)


def test_the_proposals_are_the_matchers_best_clusters(meaningless):
    best = linear.proposals(meaningless["match"], meaningless["index"], LinearConfig(proposals=2))
    assert best.shape == (240, N_CLUSTERS)
    assert np.array_equal(best.row_lengths(), np.full(240, 2))
    assert linear.proposals(meaningless["match"], meaningless["index"], LinearConfig(negatives="tfn")) is None


class Beside:
    """A linear matcher, as far as a ranker looks at it."""

    def __init__(self, scores):
        self.scores_of = lambda index: scores


def test_a_linear_matcher_beside_the_neural_one_decides_where_that_is_sure_of_nothing(meaningless, run):
    right = [CLUSTERS[row[0]] for row in (meaningless["data"].splits["test"].Y.row(i) for i in range(60))]
    sure = Scores.of_top(np.array(right, np.int32)[:, None], np.full((60, 1), 0.9, np.float32), N_CLUSTERS)
    others = np.array([[c for c in range(N_CLUSTERS) if c != one] for one in right], np.int32)
    told = Scores.of_top(np.c_[sure.top(1)[0], others], np.tile(np.float32([0.9, 1e-6, 1e-6]), (60, 1)), N_CLUSTERS)
    ranker = run(meaningless | {"linear": Beside({"test": told})}, linear_weight=1.0)
    first, _ = ranker.scores["test"].top(1)
    assert [CLUSTERS[int(label)] for label in first[:, 0]] == right
    silent, _ = run(meaningless).scores["test"].top(1)
    assert [CLUSTERS[int(label)] for label in silent[:, 0]] != right


def test_a_ranker_that_asks_a_linear_matcher_must_be_given_its_clusters(meaningless, run):
    with pytest.raises(InputError, match="its clusters are not given"):
        run(meaningless, linear_weight=1.0)


def test_a_linear_matcher_is_not_asked_beside_itself():
    with pytest.raises(InputError, match="set linear_weight = 0"):
        Linear.check(LinearConfig(linear_weight=0.5), {"match": Config()})
