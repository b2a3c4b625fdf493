"""How good a matcher is: the ranker sees only the labels of the clusters it proposes, so its recall bounds theirs."""

from typing import Any

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.artifacts.kinds.label_index import LabelIndex, parents_of
from xbert.artifacts.kinds.scores import Scores
from xbert.artifacts.sparse import Sparse
from xbert.stages.metrics.places import place, rows_of
from xbert.stages.metrics.ranking import percent


def measure(Y: Sparse, index: LabelIndex, scores: Scores) -> dict[str, Any]:
    """Recall of labels by number of clusters, and P@1, 3, 5 over clusters: "matching stage" of X-BERT, table 2.

    `recall` at b is the share of true assignments (document, label) whose cluster is among the document's first b.
    """
    level = index.chain[0]
    clusters = parents_of(Y, level.indices, level.n_cols)
    placed = place(clusters, scores, longest(scores))
    places = placed.places[_entry_of(Y, clusters, level.indices)]
    recall = {str(b): percent((places < b).sum(), Y.nnz) or 0.0 for b in steps(longest(scores))}
    precision = {f"P@{k}": percent((placed.places < k).sum(), k * Y.n_rows) or 0.0 for k in (1, 3, 5)}
    return {"recall": recall, **precision, "clusters": index.n_clusters}


def longest(scores: Scores) -> int:
    """The most targets stored for a document."""
    return int(scores.S.row_lengths().max(initial=0))


def steps(last: int) -> list[int]:
    """1, 2, 5, 10, 20, 50 ... up to `last`, and `last` itself: that one is what the ranker gets to see."""
    found, power = [], 1
    while power <= last:
        found += [b for b in (power, 2 * power, 5 * power) if b < last]
        power *= 10
    return [*found, last] if last else []


def _entry_of(Y: Sparse, clusters: Sparse, parent: Array) -> Array:
    """For every entry of Y, the entry of `clusters` that stands for its document and its label's cluster."""
    known = rows_of(clusters) * clusters.n_cols + clusters.indices  # ascending, as parents_of makes them
    return np.searchsorted(known, rows_of(Y) * clusters.n_cols + parent[Y.indices])
