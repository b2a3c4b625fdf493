"""One-vs-all linear rankers (X-BERT, section 3.4): a squared-hinge classifier per label, trained inside its cluster."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.artifacts.errors import InputError
from xbert.artifacts.kinds.dataset import Dataset
from xbert.artifacts.kinds.features import Features
from xbert.artifacts.kinds.label_index import LabelIndex
from xbert.artifacts.kinds.linear_matcher import OUT_OF_FOLD, LinearMatcher
from xbert.artifacts.kinds.linear_ranker import LinearRanker
from xbert.artifacts.kinds.scores import Scores
from xbert.artifacts.kinds.weights import ChunkedWeights
from xbert.artifacts.sparse import Sparse
from xbert.stages.base import Config, Estimate, Method, Shape, Work, setting
from xbert.stages.kernels import levels, scoring
from xbert.stages.kernels.cost import RANKER_PASSES, Level
from xbert.stages.kernels.levels import Solver

NEGATIVES = ("tfn", "man", "tfn+man")


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
    """Trains a ranker per label, and scores labels by equation (1): matcher score times ranker score."""

    stage, name, version = "rank", "linear", 2
    config = LinearConfig
    needs = ("data", "features", "index", "match")
    gives = LinearRanker

    @classmethod
    def check(cls, config: LinearConfig, others: Mapping[str, Config]) -> None:
        """Matcher-aware negatives need scores the matcher did not learn by heart."""
        refuse_learnt_scores(config.negatives, getattr(others["match"], "train_scores", OUT_OF_FOLD))

    @classmethod
    def estimate(cls, config: LinearConfig, shape: Shape, threads: int) -> Estimate:
        """One level: the labels in their clusters."""
        clusters = shape.pairs / max(shape.n_docs, 1) + (0 if config.negatives == "tfn" else config.proposals)
        level = Level(
            shape.n_docs, shape.entries, shape.n_terms, shape.n_clusters, shape.n_labels, min(clusters, shape.n_clusters)
        )
        packed, laid_out = level.packed(), level.laid_out()
        seconds = level.core_seconds(RANKER_PASSES) / threads
        return Estimate(seconds, laid_out + threads * packed, laid_out + packed, level.weights())

    def run(self, inputs: dict[str, Any], config: LinearConfig, work: Work) -> LinearRanker:
        """Train on train; rank the labels of the held-out documents."""
        dataset: Dataset = inputs["data"]
        features: Features = inputs["features"]
        index: LabelIndex = inputs["index"]
        matcher: LinearMatcher = inputs["match"]
        weights = fit(dataset, features, index, proposals(matcher, config), config, work)
        prior = (dataset.label_counts() / dataset.train.n_docs).astype(np.float32)
        scores = {}
        for split in dataset.held_out:
            clusters = matcher.scores[split]
            scores[split] = rank(features.X[split], clusters, weights, prior, config.post_processor, config.top, work.threads)
        return LinearRanker(weights, prior, scores, config.post_processor, config.top)


def proposals(matcher: LinearMatcher, config: LinearConfig) -> Sparse | None:
    """Documents x clusters the matcher sent them to, from scores it did not learn; None where they are not asked for."""
    refuse_learnt_scores(config.negatives, matcher.train_scores)
    if config.negatives == "tfn":
        return None
    best = Scores.of_top(*matcher.scores["train"].top(config.proposals), matcher.n_clusters)
    return Sparse.of_scipy(best.S.to_scipy(), binary=True)


def refuse_learnt_scores(negatives: str, train_scores: str) -> None:
    """A matcher's scores of its own training documents look better than they are; a ranker must not learn from them."""
    if negatives != "tfn" and train_scores != OUT_OF_FOLD:
        raise InputError(
            f"[rank] negatives = {negatives!r} learns from the matcher's scores of the training documents, which are "
            f"{train_scores!r}: set train_scores = {OUT_OF_FOLD!r} in [match]"
        )


def fit(
    dataset: Dataset, features: Features, index: LabelIndex, proposed: Sparse | None, config: LinearConfig, work: Work
) -> ChunkedWeights:
    """The rankers of all labels, in chunks by cluster."""
    solver = Solver(
        config.solver, config.cost_positive, config.cost_negative, config.tolerance, config.max_iterations,
        config.threshold, config.seed,
    )  # fmt: skip
    level = index.chain[0]
    problem = levels.make_problem(features.X["train"], dataset.train.Y, level.indices, level.n_cols, config.negatives, proposed)
    with work.progress("rankers", dataset.n_labels, "labels") as bar:
        pieces = levels.Named(work, "rankers")
        return levels.train(problem, solver, work.threads, pieces, bar.advance, work.memory, work.folder, "labels")


def rank(
    X: Sparse, clusters: Scores, weights: ChunkedWeights, prior: Array, post_processor: str, top: int, threads: int
) -> Scores:
    """The best labels of each document; one without any known term gets the labels' frequencies."""

    def block(start: int, stop: int) -> Scores:
        rows = X.slice(start, stop)
        now = scoring.Beam.of_scores(clusters.S.slice(start, stop))
        return scoring.step(rows, now, weights, post_processor, top, scoring.scratch(X.n_cols)).to_scores(len(prior))

    scores = scoring.by_blocks(X.n_rows, threads, block, len(prior))
    wordless = np.flatnonzero(X.row_lengths() == 0)
    return with_prior(scores, wordless, prior, top) if len(wordless) else scores


def with_prior(scores: Scores, rows: Array, prior: Array, top: int) -> Scores:
    """The same scores, but for those rows the most frequent labels with their share of the training documents."""
    best = np.argsort(-prior, kind="stable")[:top]
    targets, values = scores.top(max(top, 1))
    targets[rows], values[rows] = -1, 0
    targets[rows, : len(best)], values[rows, : len(best)] = best, prior[best]
    return Scores.of_top(targets, values, scores.n_targets)
