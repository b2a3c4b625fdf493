"""One level of the label index: train a linear classifier for every child.

The matcher's levels and the ranker are the same problem: documents, children, and the parent cluster of each child. The
training is cut into shards, each a pure function of its arguments, run through joblib: threads here (the kernels hold no
GIL), processes or another engine wherever joblib's backend is set to one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import joblib
import numpy as np

from xbert.artifacts.arrays import Array
from xbert.artifacts.errors import ArtifactError
from xbert.artifacts.kinds.label_index import parents_of
from xbert.artifacts.kinds.weights import ChunkedWeights
from xbert.artifacts.sparse import Sparse
from xbert.stages.kernels import chunks, dual, packing, reference
from xbert.stages.kernels.cost import DENSE_BYTES, PACKED_BYTES
from xbert.stages.kernels.dense import Vectors, concatenate
from xbert.stages.kernels.scoring import scratch

_SHARD_COST = 4e9  # term reads of one pass over a shard's problems: a shard takes seconds, so a crash loses seconds
_PLENTY = 1 << 62  # bytes
_MIN_SHARDS = 16  # fewer would leave cores idle at the end
_DENSE_SPEED = 8  # values of a vector that are read as fast as one term


class Checkpoints(Protocol):
    """Where finished shards are kept until the level is whole."""

    def recall(self, name: str) -> dict[str, Array] | None:
        """A shard kept by an interrupted run, or None."""

    def keep(self, name: str, piece: dict[str, Array]) -> None:
        """Keep a finished shard."""


@dataclass(frozen=True)
class Named:
    """Checkpoints under names of their own, for stages that train several levels."""

    checkpoints: Checkpoints
    prefix: str

    def recall(self, name: str) -> dict[str, Array] | None:
        """A piece of this name."""
        return self.checkpoints.recall(f"{self.prefix}-{name}".replace(" ", "-"))

    def keep(self, name: str, piece: dict[str, Array]) -> None:
        """Keep a piece under this name."""
        self.checkpoints.keep(f"{self.prefix}-{name}".replace(" ", "-"), piece)


@dataclass(frozen=True)
class Solver:
    """How a classifier is fitted; the fields are the settings of the same names of a matcher or ranker."""

    name: str
    cost_positive: float
    cost_negative: float
    tolerance: float
    max_iterations: int
    threshold: float
    seed: int


@dataclass(frozen=True)
class Problem:
    """A level to be trained: which documents are seen by a parent's classifiers, and as what."""

    X: Sparse  # documents x terms
    children_ptr: Array  # parent -> place of its first child
    children: Array  # child numbers grouped by parent
    positive: Sparse  # places (children in grouped order) x documents
    rows: Sparse  # parents x documents: all that the parent's classifiers see
    negative: Sparse  # parents x documents: the part of `rows` that may be a negative
    vectors: Vectors | None = None  # of the documents: columns after those of X

    @property
    def width(self) -> int:
        """Number of dense columns."""
        return 0 if self.vectors is None else self.vectors.width

    @property
    def n_columns(self) -> int:
        """Number of columns, of terms and dense ones."""
        return self.X.n_cols + self.width


def group_children(parent: Array, n_parents: int) -> tuple[Array, Array]:
    """Children by parent: (children_ptr, children)."""
    children = np.argsort(parent, kind="stable").astype(np.int32)
    children_ptr = np.zeros(n_parents + 1, np.int64)
    np.cumsum(np.bincount(parent, minlength=n_parents), out=children_ptr[1:])
    return children_ptr, children


def make_problem(
    X: Sparse,
    Y: Sparse,
    parent: Array,
    n_parents: int,
    negatives: str,
    proposed: Sparse | None,
    vectors: Vectors | None = None,
) -> Problem:
    """Lay out a level: Y is documents x children, `proposed` documents x parents as an earlier matcher saw them.

    `negatives`: "tfn" (teacher forcing: documents of the parent's other children), "man" (matcher-aware: documents the
    matcher proposed the parent for), or "tfn+man".
    """
    if vectors is not None and len(vectors.rows) != X.n_rows:
        raise ArtifactError(f"{len(vectors.rows)} vectors for {X.n_rows} documents: they come from other data")
    children_ptr, children = group_children(parent, n_parents)
    positive = Y.transpose().take(children)
    taught = parents_of(Y, parent, n_parents)
    if negatives == "tfn":
        by_parent = taught.transpose()
        return Problem(X, children_ptr, children, positive, by_parent, by_parent, vectors)
    if proposed is None:
        raise ValueError(f"negatives {negatives!r} without the matcher's proposals")
    union = Sparse.of_scipy(taught.to_scipy() + proposed.to_scipy(), binary=True).transpose()
    negative = union if negatives == "tfn+man" else proposed.transpose()
    return Problem(X, children_ptr, children, positive, union, negative, vectors)


def train(
    problem: Problem,
    solver: Solver,
    threads: int,
    checkpoints: Checkpoints,
    advance: Callable[[int], None],
    memory: int = _PLENTY,
    folder: Path | None = None,
    name: str = "",
) -> ChunkedWeights:
    """Fit every classifier of a level; `advance` is told how many more are fitted.

    As many clusters are trained at a time as there are threads and `memory` holds.
    Where a folder is given, the weights are written there as they come, under the names an artifact has for them.
    """
    shards = list(cut(problem))
    missing = [number for number in range(len(shards)) if checkpoints.recall(_shard(number)) is None]
    # liblinear draws from one random state per process, so it needs processes of its own to be repeatable.
    engine = {"prefer": "threads"} if solver.name == "dual" else {"prefer": "processes"}
    at_once = min(threads, max(len(missing), 1), max(1, memory // largest_cluster(problem)))
    pool = joblib.Parallel(at_once, return_as="generator", **engine)
    results = pool(joblib.delayed(fit_shard)(problem, shards[number], solver) for number in missing)
    writer = chunks.ChunkWriter(problem.children_ptr, problem.children, problem.n_columns, folder, name)
    fitted_now = set(missing)
    for number, shard in enumerate(shards):
        part = next(results) if number in fitted_now else checkpoints.recall(_shard(number))
        if part is None:
            raise ArtifactError(f"a finished piece of {name or 'a level'} has gone while it was needed: run again")
        if number in fitted_now:
            checkpoints.keep(_shard(number), part)
        writer.append(part["lengths"], part["columns"], part["values"], part["bias"])
        advance(sum(stop - start for _, start, stop in shard))
    return writer.close()


def largest_cluster(problem: Problem) -> int:
    """Bytes that the documents of the largest cluster take while its classifiers are trained."""
    dense = problem.rows.row_lengths() * problem.width * DENSE_BYTES
    return max(1, int((entries_of(problem) * PACKED_BYTES + dense).max(initial=0)))


def entries_of(problem: Problem) -> Array:
    """Terms of the documents each cluster's classifiers see, int64."""
    seen = np.r_[0, np.cumsum(problem.X.row_lengths()[problem.rows.indices])]
    return np.diff(seen[problem.rows.indptr])


def _shard(number: int) -> str:
    return f"shard-{number:05d}"


def cut(problem: Problem) -> Iterator[list[tuple[int, int, int]]]:
    """The level as shards of (parent, first place, last place), in order of place and of like cost.

    The cut depends on the data alone, never on the machine, so that an interrupted run finds its shards again.
    """
    parents = range(len(problem.children_ptr) - 1)
    cost = entries_of(problem).astype(np.float64) + problem.rows.row_lengths() * (problem.width / _DENSE_SPEED) + 1
    widths = np.diff(problem.children_ptr)
    limit = max(min(_SHARD_COST, float((cost * widths).sum()) / _MIN_SHARDS), 1.0)
    shard: list[tuple[int, int, int]] = []
    load = 0.0
    for parent in parents:
        start, stop = int(problem.children_ptr[parent]), int(problem.children_ptr[parent + 1])
        while start < stop:
            fits = max(1, int((limit - load) / cost[parent]))
            end = min(stop, start + fits)
            shard.append((parent, start, end))
            load += float(cost[parent]) * (end - start)
            start = end
            if load >= limit:
                yield shard
                shard, load = [], 0.0
    if shard:
        yield shard


def fit_shard(problem: Problem, shard: list[tuple[int, int, int]], solver: Solver) -> dict[str, Array]:
    """Fit the shard's classifiers: for each its number of weights, their terms and values, and its bias."""
    lookup = scratch(problem.n_columns)
    parts: dict[str, list[Array]] = {"lengths": [], "columns": [], "values": [], "bias": []}
    for parent, start, stop in shard:
        rows = problem.rows.row(parent)
        positive = problem.positive.slice(start, stop)
        other = np.where(np.isin(rows, problem.negative.row(parent), assume_unique=True), -1, 0).astype(np.float32)
        seeds = solver.seed * 1_000_003 + np.arange(start, stop)  # of the place, so that no cut changes a classifier
        children: tuple[Any, ...] = positive.indptr, np.searchsorted(rows, positive.indices), other
        costs = solver.cost_positive, solver.cost_negative
        how: tuple[Any, ...] = (*costs, solver.tolerance, solver.max_iterations, solver.threshold, seeds)
        if solver.name == "dual":
            columns, fitted = _fit_dual(problem, rows, lookup, children, how)
        else:
            columns, fitted = _fit_liblinear(problem, rows, lookup, children, how)
        child_ptr, local, values, bias = fitted
        for name, part in zip(parts, (np.diff(child_ptr), columns[local], values, bias), strict=True):
            parts[name].append(part)
    return {name: np.concatenate(each) for name, each in parts.items()}


def _fit_dual(
    problem: Problem, rows: Array, lookup: Array, children: tuple[Any, ...], how: tuple[Any, ...]
) -> tuple[Array, tuple[Array, ...]]:
    """Our own solver: the columns of a cluster, and what `dual.solve_children` says of them."""
    X = problem.X
    packed = packing.pack(X.indptr, X.indices, X.values(), rows, lookup, problem.vectors)
    arguments: tuple[Any, ...] = (*packed.arguments(), len(packed.columns), *children, *how)
    columns = np.r_[packed.columns, np.arange(X.n_cols, problem.n_columns, dtype=np.int32)]
    return columns, dual.solve_children(*arguments)


def _fit_liblinear(
    problem: Problem, rows: Array, lookup: Array, children: tuple[Any, ...], how: tuple[Any, ...]
) -> tuple[Array, tuple[Array, ...]]:
    """LIBLINEAR, which knows sparse rows only; the same."""
    X = problem.X
    if problem.vectors is not None:
        X = concatenate(X.take(rows), problem.vectors.rows[rows], problem.vectors.scale)
        rows = np.arange(len(rows), dtype=np.int32)
    columns, indptr, indices, data = packing.gather(X.indptr, X.indices, X.values(), rows, lookup)
    n_sparse = int(np.searchsorted(columns, problem.X.n_cols))
    return columns, reference.solve_children(indptr, indices, data, len(columns), n_sparse, *children, *how)
