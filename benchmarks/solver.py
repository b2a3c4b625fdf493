"""How near the `dual` solver comes to LIBLINEAR's objective, on the label problems of a finished run.

python benchmarks/solver.py RUN [--labels 40] [--tolerance 0.01]

Each problem is a label's own: the documents of its cluster, the label's as positives. Both solvers get the same costs and
tolerance; printed is (ours - theirs) / theirs of the primal objective, which is 0 at best and negative where ours is lower.
"""

import argparse
from pathlib import Path

import numpy as np

from xbert.artifacts.kinds.dataset import Dataset
from xbert.artifacts.kinds.features import Features
from xbert.artifacts.kinds.label_index import LabelIndex
from xbert.artifacts.sparse import Sparse
from xbert.artifacts.store import open_artifact
from xbert.pipeline import pointer
from xbert.stages.kernels import dual, levels, packing, reference


def objective(X, sign, w, bias, cost):
    loss = np.maximum(0, 1 - sign * (X @ w.astype(float) + bias))
    return 0.5 * (w.astype(float) @ w + bias * bias) + cost * (loss**2).sum()


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("run", type=Path)
    options.add_argument("--labels", type=int, default=40)
    options.add_argument("--tolerance", type=float, default=0.01)
    options.add_argument("--cost", type=float, default=1.0)
    given = options.parse_args()
    found = pointer.read(given.run)
    model = next(iter(found.models.values()))
    data = open_artifact(given.run / found.data, Dataset)
    X = open_artifact(given.run / model["features"], Features).X["train"]
    level = open_artifact(given.run / model["index"], LabelIndex).chain[0]
    problem = levels.make_problem(X, data.train.Y, level.indices, level.n_cols, "tfn", None)
    rng = np.random.default_rng(0)
    usable = np.flatnonzero(problem.positive.row_lengths() > 1)
    gaps = []
    for place in rng.choice(usable, min(given.labels, len(usable)), replace=False):
        parent = int(np.searchsorted(problem.children_ptr, place, "right")) - 1
        rows = problem.rows.row(parent)
        columns, indptr, indices, values = packing.gather(X.indptr, X.indices, X.values(), rows, levels.scratch(X.n_cols))
        packed = Sparse(indptr, indices.astype(np.int32), values, len(columns))
        sign = np.where(np.isin(rows, problem.positive.row(place)), 1, -1).astype(np.float32)
        w, cost = np.zeros(len(columns), np.float32), given.cost
        rows_as_words = packing.pack(X.indptr, X.indices, X.values(), rows, levels.scratch(X.n_cols))
        bias, passes = dual.solve(*rows_as_words.arguments(), sign, cost, cost, given.tolerance, 10_000, 0, w)
        theirs, their_bias = reference.solve(packed.to_scipy(), sign, cost, cost, given.tolerance, 0)
        ours_at, theirs_at = (objective(packed.to_scipy(), sign, *each, cost) for each in ((w, bias), (theirs, their_bias)))
        gaps.append(100 * (ours_at - theirs_at) / theirs_at)
        label = data.labels.ids[int(problem.children[place])]
        print(f"{label:>12} {len(rows):7,} documents {int((sign > 0).sum()):6,} positive {passes:4} passes {gaps[-1]:+9.4f} %")
    print(f"\n{len(gaps)} problems: worst {max(gaps):+.4f} %, median {np.median(gaps):+.4f} %, best {min(gaps):+.4f} %")


if __name__ == "__main__":
    main()
