"""The hierarchical linear matcher (X-BERT, table 2, rows "linear"): from the root down, the best few clusters of each level."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.artifacts.kinds.dataset import Dataset
from xbert.artifacts.kinds.features import Features
from xbert.artifacts.kinds.label_index import LabelIndex
from xbert.artifacts.kinds.linear_matcher import IN_SAMPLE, OUT_OF_FOLD, LinearMatcher
from xbert.artifacts.kinds.scores import Scores
from xbert.artifacts.kinds.weights import ChunkedWeights
from xbert.artifacts.sparse import Sparse
from xbert.stages.base import Config, Estimate, Method, Shape, Work, setting
from xbert.stages.kernels import levels, scoring
from xbert.stages.kernels.cost import MATCHER_PASSES, Level
from xbert.stages.kernels.levels import Solver

_BRANCHING = 64  # as the index has it unless told otherwise


@dataclass(frozen=True)
class LinearConfig(Config):
    """Settings of the linear matcher."""

    solver: str = setting("dual", "our own dual coordinate descent, or LIBLINEAR itself", choices=("dual", "liblinear"))
    cost_positive: float = setting(1.0, "cost of missing a positive document (Cp)", low=1e-6)
    cost_negative: float = setting(1.0, "cost of a false positive (Cn)", low=1e-6)
    tolerance: float = setting(0.3, "stop a classifier when its optimality gap is below this", low=1e-8)
    max_iterations: int = setting(100, "most passes over a classifier's documents", low=1)
    threshold: float = setting(0.05, "weights up to this size are dropped", low=0.0)
    post_processor: str = setting(
        "l3-hinge", "how a margin z becomes a score: 1/(1+exp(-z)), or exp(-max(0,1-z)^p)", choices=tuple(scoring.POWERS)
    )
    beam: int = setting(10, "clusters kept per document on every level", low=1)
    train_scores: str = setting(
        OUT_OF_FOLD,
        "scores of the training documents: out-of-fold is what a ranker may learn from (rank.negatives with 'man')",
        choices=("none", IN_SAMPLE, OUT_OF_FOLD),
    )
    folds: int = setting(3, "folds of the out-of-fold scores", low=2, high=50)
    seed: int = setting(0, "order in which documents are visited, and the folds")


class Linear(Method[LinearConfig]):
    """Linear one-vs-all classifiers over the chain of clusters, searched with a beam."""

    stage, name, version = "match", "linear", 2
    config = LinearConfig
    needs = ("data", "features", "index")
    gives = LinearMatcher

    @classmethod
    def estimate(cls, config: LinearConfig, shape: Shape, threads: int) -> Estimate:
        """The levels from the root down, each about as much finer than the one above; and again for every fold."""
        widths = [1, *level_widths(shape.n_clusters)]
        levels = [
            Level(shape.n_docs, shape.entries, shape.n_terms, above, below, min(shape.pairs / max(shape.n_docs, 1), above))
            for above, below in pairwise(widths)
        ]
        rounds = config.folds if config.train_scores == OUT_OF_FOLD else 1  # a fold sees the other folds' documents
        seconds = sum(level.core_seconds(MATCHER_PASSES) for level in levels) * rounds / threads
        packed, laid_out = max(level.packed() for level in levels), max(level.laid_out() for level in levels)
        return Estimate(seconds, laid_out + threads * packed, laid_out + packed, sum(level.weights() for level in levels))

    def run(self, inputs: dict[str, Any], config: LinearConfig, work: Work) -> LinearMatcher:
        """Train every level on train, score the other splits; train itself as the settings say."""
        dataset: Dataset = inputs["data"]
        features: Features = inputs["features"]
        index: LabelIndex = inputs["index"]
        targets = index.clusters_of(dataset.train.Y)
        X = features.X["train"]
        weights = fit(X, targets, index, config, work)
        scores = {}
        if config.train_scores == IN_SAMPLE:
            scores["train"] = search(X, weights, config.post_processor, config.beam, work.threads)
        elif config.train_scores == OUT_OF_FOLD:
            scores["train"] = out_of_fold(X, targets, index, config, work)
        for split in dataset.held_out:
            scores[split] = search(features.X[split], weights, config.post_processor, config.beam, work.threads)
        return LinearMatcher(weights, scores, config.post_processor, config.beam, config.train_scores)


def level_widths(n_clusters: int) -> list[int]:
    """About how many clusters the levels have, from the root down, where the index is not there to be asked."""
    count = max(1, math.ceil(math.log(max(n_clusters, 2)) / math.log(_BRANCHING) - 1e-9))
    return [max(2, round(n_clusters ** (i / count))) for i in range(1, count + 1)]


def fit(
    X: Sparse, targets: list[Sparse], index: LabelIndex, config: LinearConfig, work: Work, fold: str = ""
) -> list[ChunkedWeights]:
    """The weights of every level, from the root down. `targets` are documents x clusters, from the bottom up."""
    solver = Solver(
        config.solver, config.cost_positive, config.cost_negative, config.tolerance, config.max_iterations,
        config.threshold, config.seed,
    )  # fmt: skip
    parents = [(level.indices, level.n_cols) for level in index.chain[1:]]
    parents.append((np.zeros(index.chain[-1].n_cols, np.int32), 1))
    folder = None if fold else work.folder  # a fold's matcher is gone when its documents are scored
    weights = []
    with work.progress(f"matcher{fold}", sum(target.n_cols for target in targets), "classifiers") as bar:
        for depth, (Y, (parent, n_parents)) in enumerate(zip(reversed(targets), reversed(parents), strict=True)):
            problem = levels.make_problem(X, Y, parent, n_parents, "tfn", None)
            pieces = levels.Named(work, f"matcher{fold}-level{depth}")
            weights.append(
                levels.train(problem, solver, work.threads, pieces, bar.advance, work.memory, folder, f"level{depth}")
            )
    return weights


def search(X: Sparse, weights: list[ChunkedWeights], post_processor: str, beam: int, threads: int) -> Scores:
    """Beam search: the best clusters of each document, with the product of the scores along their path."""

    def block(start: int, stop: int) -> Scores:
        rows, lookup = X.slice(start, stop), scoring.scratch(X.n_cols)
        now = scoring.Beam.at_the_root(stop - start)
        for level in weights:
            now = scoring.step(rows, now, level, post_processor, beam, lookup)
        return now.to_scores(weights[-1].n_children)

    return scoring.by_blocks(X.n_rows, threads, block, weights[-1].n_children)


def out_of_fold(X: Sparse, targets: list[Sparse], index: LabelIndex, config: LinearConfig, work: Work, of: str = "") -> Scores:
    """Honest scores of the training documents: each from a matcher that did not see it.

    `of` tells apart what is kept for an interrupted run, where one stage does this for several clusterings.
    """
    fold_of = work.rng("folds").permutation(np.arange(X.n_rows) % config.folds)
    found: list[tuple[Array, Scores]] = []
    for fold in range(config.folds):
        seen, held = np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)
        weights = fit(X.take(seen), [Y.take(seen) for Y in targets], index, config, work, f"{of} fold {fold + 1}")
        found.append((held, search(X.take(held), weights, config.post_processor, config.beam, work.threads)))
    order = np.argsort(np.concatenate([held for held, _ in found]), kind="stable")
    stacked = scoring.stack([scores for _, scores in found], index.n_clusters)
    return Scores(stacked.S.take(order))
