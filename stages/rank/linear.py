"""One-vs-all linear rankers (X-BERT, section 3.4): a squared-hinge classifier per label, trained inside its cluster."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.artifacts.errors import ArtifactError, InputError
from xbert.artifacts.kinds.dataset import Dataset
from xbert.artifacts.kinds.features import Features
from xbert.artifacts.kinds.label_index import LabelIndex
from xbert.artifacts.kinds.linear_matcher import OUT_OF_FOLD, LinearMatcher
from xbert.artifacts.kinds.linear_ranker import TFIDF, TFIDF_DENSE, LinearRanker
from xbert.artifacts.kinds.neural_matcher import LINEAR, NeuralMatcher
from xbert.artifacts.kinds.scores import Scores
from xbert.artifacts.kinds.weights import ChunkedWeights
from xbert.artifacts.sparse import Sparse
from xbert.stages.base import Companion, Config, Estimate, Method, Shape, Work, setting
from xbert.stages.kernels import levels, scoring
from xbert.stages.kernels.combine import blend
from xbert.stages.kernels.cost import RANKER_PASSES, Level
from xbert.stages.kernels.dense import Vectors, concatenate
from xbert.stages.kernels.levels import Solver
from xbert.stages.rank.powers import JUDGED, Powers, refuse_no_validation, settle

NEGATIVES = ("tfn", "man", "tfn+man")
HONEST = (OUT_OF_FOLD, LINEAR)  # no training document was seen by the classifier that scored it
_WIDTH = 384  # of a document's vector, where the encoder is not there to be asked
_LINEAR_BEAM = 20  # clusters of a document that a linear matcher is asked for beside a neural one


@dataclass(frozen=True)
class LinearConfig(Config):
    """Settings of the linear rankers."""

    solver: str = setting("dual", "our own dual coordinate descent, or LIBLINEAR itself", choices=("dual", "liblinear"))
    negatives: str = setting(
        "tfn+man",
        "negatives of a label: documents of its cluster (tfn), documents the matcher sends there (man), or both",
        choices=NEGATIVES,
    )
    proposals: int = setting(5, "clusters per document that count as sent there by the matcher (man)", low=1)
    features: str = setting(
        TFIDF,
        "what labels are learnt from: the documents' terms (X-BERT), or also their vectors by the fine-tuned encoder",
        choices=(TFIDF, TFIDF_DENSE),
    )
    dense_scale: float = setting(0.3, "length of those vectors; the terms of a document have length 1", low=0.0)
    matcher_weight: float | str = setting(
        1.0,
        "power of the matcher's score in the product with the ranker's (X-BERT: 1); 'auto' chooses it on the validation split",
        low=0.0,
    )
    linear_weight: float | str = setting(
        0.0,
        "power of the score of a linear matcher that is asked beside a neural one (X-BERT: 0, none is); or 'auto'",
        low=0.0,
    )
    cost_positive: float = setting(2.0, "cost of missing a positive document (Cp)", low=1e-6)
    cost_negative: float = setting(2.0, "cost of a false positive (Cn)", low=1e-6)
    tolerance: float = setting(0.3, "stop a classifier when its optimality gap is below this", low=1e-8)
    max_iterations: int = setting(100, "most passes over a classifier's documents", low=1)
    threshold: float = setting(0.05, "weights up to this size are dropped", low=0.0)
    post_processor: str = setting(
        "l3-hinge", "how a margin z becomes a score: 1/(1+exp(-z)), or exp(-max(0,1-z)^p)", choices=tuple(scoring.POWERS)
    )
    top: int = setting(50, "labels kept per document", low=1)
    seed: int = setting(0, "order in which documents are visited")


class Linear(Method[LinearConfig]):
    """Trains a ranker per label, and orders labels by equation (1): matcher score times ranker score."""

    stage, name, version = "rank", "linear", 3
    config = LinearConfig
    needs = ("data", "features", "index", "match")
    gives = LinearRanker

    @classmethod
    def check(cls, config: LinearConfig, others: Mapping[str, Config]) -> None:
        """Matcher-aware negatives need scores the matcher did not learn by heart, dense features an encoder."""
        refuse_learnt_scores(config.negatives, getattr(others["match"], "train_scores", OUT_OF_FOLD))
        refuse_missing_vectors(config.features, getattr(others["match"], "train_vectors", False))
        if config.linear_weight != 0 and not hasattr(others["match"], "encoder"):
            raise InputError(
                f"[rank] linear_weight = {config.linear_weight!r} asks a linear matcher beside a neural one, and [match] is "
                "linear itself: set linear_weight = 0"
            )

    @classmethod
    def check_data(cls, config: LinearConfig, dataset: Dataset) -> None:
        """Powers that are 'auto' are chosen on the validation split."""
        refuse_no_validation(_powers_wanted(config), "valid" in dataset.held_out)

    @classmethod
    def companions(cls, config: LinearConfig) -> dict[str, Companion]:
        """A linear matcher over the same clusters, if its scores count."""
        if config.linear_weight == 0:
            return {}
        return {LINEAR: Companion("match", "linear", {"beam": _LINEAR_BEAM, "train_scores": "none"})}

    @classmethod
    def estimate(cls, config: LinearConfig, shape: Shape, threads: int) -> Estimate:
        """One level: the labels in their clusters; then blocks of held-out documents."""
        clusters = shape.pairs / max(shape.n_docs, 1) + (0 if config.negatives == "tfn" else config.proposals)
        width = _WIDTH if config.features == TFIDF_DENSE else 0
        level = Level(
            shape.n_docs, shape.entries, shape.n_terms, shape.n_clusters, shape.n_labels, min(clusters, shape.n_clusters), width
        )
        packed, laid_out = level.packed(), level.laid_out()
        seconds = level.core_seconds(RANKER_PASSES) / threads
        ranked = min(shape.n_held_out, threads * scoring.BLOCK) * level.joined()
        memory, least = max(laid_out + threads * packed, ranked), max(laid_out + packed, ranked)
        return Estimate(seconds, memory, least, level.weights())

    def run(self, inputs: dict[str, Any], config: LinearConfig, work: Work) -> LinearRanker:
        """Train on train; rank the labels of the held-out documents."""
        dataset: Dataset = inputs["data"]
        features: Features = inputs["features"]
        index: LabelIndex = inputs["index"]
        matcher: LinearMatcher | NeuralMatcher = inputs["match"]
        vectors = vectors_of(matcher, config)
        dense = Vectors(vectors["train"], config.dense_scale) if vectors else None
        weights = fit(dataset, features, index, proposals(matcher, index, config), dense, config, work)
        prior = (dataset.label_counts() / dataset.train.n_docs).astype(np.float32)
        ranker = LinearRanker(weights, prior, {}, config.post_processor, config.top, config.features, config.dense_scale)
        clusters, linear = matcher.scores_of(index), inputs[LINEAR].scores_of(index) if LINEAR in inputs else {}

        def ranked(split: str, powers: Powers, top: int) -> Scores:
            weighed = replace(ranker, matcher_weight=powers[0], linear_weight=powers[1])
            return rank(features.X[split], clusters[split], weighed, top, work.threads, vectors.get(split), linear.get(split))

        held_out = dataset.splits["valid"].Y if "valid" in dataset.held_out else None
        powers = settle(_powers_wanted(config), held_out, lambda powers: ranked("valid", powers, JUDGED), work)
        scores = {split: ranked(split, powers, config.top) for split in dataset.held_out}
        return replace(ranker, matcher_weight=powers[0], linear_weight=powers[1], scores=scores)


def _powers_wanted(config: LinearConfig) -> dict[str, float | str]:
    return {"matcher_weight": config.matcher_weight, "linear_weight": config.linear_weight}


def vectors_of(matcher: LinearMatcher | NeuralMatcher, config: LinearConfig) -> dict[str, Array]:
    """The documents' vectors of every split, where they are asked for."""
    vectors: dict[str, Array] = getattr(matcher, "vectors", {})
    refuse_missing_vectors(config.features, "train" in vectors)
    return vectors if config.features == TFIDF_DENSE else {}


def proposals(matcher: LinearMatcher | NeuralMatcher, index: LabelIndex, config: LinearConfig) -> Sparse | None:
    """Documents x clusters the matcher sent them to, from scores it did not learn; None where they are not asked for."""
    refuse_learnt_scores(config.negatives, matcher.train_scores)
    if config.negatives == "tfn":
        return None
    best = Scores.of_top(*matcher.scores_of(index)["train"].top(config.proposals), index.n_clusters)
    return Sparse.of_scipy(best.S.to_scipy(), binary=True)


def refuse_learnt_scores(negatives: str, train_scores: str) -> None:
    """A matcher's scores of its own training documents look better than they are; a ranker must not learn from them."""
    if negatives != "tfn" and train_scores not in HONEST:
        raise InputError(
            f"[rank] negatives = {negatives!r} learns from the matcher's scores of the training documents, which are "
            f"{train_scores!r}: set train_scores = {OUT_OF_FOLD!r} in [match] ({LINEAR!r} where its method is 'neural'), "
            "or negatives = 'tfn'"
        )


def refuse_missing_vectors(features: str, there: bool) -> None:
    """Only an encoder whose head reads one vector a document has vectors worth learning from."""
    if features == TFIDF_DENSE and not there:
        raise InputError(
            f"[rank] features = {TFIDF_DENSE!r} needs the document vectors of a fine-tuned encoder: "
            f"set [match] method = 'neural' with head = 'cls' and train_vectors = true, or features = {TFIDF!r}"
        )


def fit(
    dataset: Dataset,
    features: Features,
    index: LabelIndex,
    proposed: Sparse | None,
    vectors: Vectors | None,
    config: LinearConfig,
    work: Work,
) -> ChunkedWeights:
    """The rankers of all labels, in chunks by cluster."""
    solver = Solver(
        config.solver, config.cost_positive, config.cost_negative, config.tolerance, config.max_iterations,
        config.threshold, config.seed,
    )  # fmt: skip
    level, X, Y = index.chain[0], features.X["train"], dataset.train.Y
    problem = levels.make_problem(X, Y, level.indices, level.n_cols, config.negatives, proposed, vectors)
    with work.progress("rankers", dataset.n_labels, "labels") as bar:
        pieces = levels.Named(work, "rankers")
        return levels.train(problem, solver, work.threads, pieces, bar.advance, work.memory, work.folder, "labels")


def rank(
    X: Sparse,
    clusters: Scores,
    ranker: LinearRanker,
    top: int,
    threads: int,
    vectors: Array | None = None,
    linear: Scores | None = None,
) -> Scores:
    """The best labels of each document; one of which nothing is known gets the labels' frequencies.

    They are in the order of equation (1), the product of all scores, and score its geometric mean: products of other powers
    lie on other scales, and an ensemble takes the mean of several.

    `vectors` are the documents' vectors, of a ranker that takes them, and `linear` the clusters by a linear matcher, of one
    that asks it too; another one does not look at them.
    """
    weights, prior, dense = ranker.weights, ranker.prior, _dense_part(X, ranker, vectors)
    power = ranker.matcher_weight
    if ranker.linear_weight > 0:
        if linear is None:
            raise InputError("the ranker asks a linear matcher too, and its clusters are not given")
        clusters, power = blend([clusters, linear], [power, ranker.linear_weight]), 1.0

    def block(start: int, stop: int) -> Scores:
        rows = X.slice(start, stop)
        if dense is not None:
            rows = concatenate(rows, dense[start:stop], ranker.dense_scale)
        now = scoring.Beam.of_scores(clusters.S.slice(start, stop), power)
        return scoring.step(rows, now, weights, ranker.post_processor, top, scoring.scratch(rows.n_cols)).to_scores(len(prior))

    scores = scoring.by_blocks(X.n_rows, threads, block, len(prior)).raised(
        1 / (1 + ranker.matcher_weight + ranker.linear_weight)
    )
    unknown = np.flatnonzero(X.row_lengths() == 0)
    if dense is not None and ranker.dense_scale > 0:
        unknown = unknown[~dense[unknown].any(axis=1)]
    return with_prior(scores, unknown, prior, top) if len(unknown) else scores


def _dense_part(X: Sparse, ranker: LinearRanker, vectors: Array | None) -> Array | None:
    """The vectors the ranker takes, if it does; a kernel reads columns without asking, so their number is checked here."""
    dense = vectors if ranker.takes_vectors else None
    if ranker.takes_vectors and dense is None:
        raise InputError("the ranker learnt from the documents' vectors too, and none are given")
    n_columns = X.n_cols + (0 if dense is None else dense.shape[1])
    if n_columns != ranker.weights.n_terms:
        raise ArtifactError(
            f"the documents have {n_columns} columns, the ranker {ranker.weights.n_terms}: they come from different runs"
        )
    if dense is not None and len(dense) != X.n_rows:
        raise ArtifactError(f"{len(dense)} vectors for {X.n_rows} documents: they come from other data")
    return dense


def with_prior(scores: Scores, rows: Array, prior: Array, top: int) -> Scores:
    """The same scores, but for those rows the most frequent labels with their share of the training documents."""
    best = np.argsort(-prior, kind="stable")[:top]
    targets, values = scores.top(max(top, 1))
    targets[rows], values[rows] = -1, 0
    targets[rows, : len(best)], values[rows, : len(best)] = best, prior[best]
    return Scores.of_top(targets, values, scores.n_targets)
