"""Intervals by the bootstrap: the documents of a split are drawn anew, with replacement, many times.

Every model sees the same draws, so that the difference of two models has an interval of its own, as in a paired test.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.stages.base import batches
from xbert.stages.metrics.ranking import Truth, lower

_CELLS = 16_000_000  # of the table draws x documents that is held at a time, 4 bytes each
_BLOCK = 4096  # documents multiplied at a time


@dataclass(frozen=True, eq=False)
class Draws:
    """The metrics of every model on every draw, in percent."""

    values: dict[tuple[str, str], Array]  # (model, metric) -> (n_draws,)
    confidence: float

    @classmethod
    def of(
        cls,
        found: dict[str, dict[str, Array]],
        truth: Truth,
        n_draws: int,
        confidence: float,
        rng: np.random.Generator,
    ) -> Self:
        """Draw; `found` holds the shares of each model's documents, as `metrics.shares` gives them."""
        columns: dict[tuple[str, str], Array] = {}
        for model, metrics in found.items():
            for metric, upper in metrics.items():
                columns[model, metric] = upper
                below = lower(metric, truth)
                if below is not None:
                    columns["", metric] = below  # the same for all models
        sums = dict(zip(columns, drawn_sums(list(columns.values()), n_draws, rng).T, strict=True))
        whole = np.full(n_draws, float(truth.n_docs))
        values = {key: _ratio(sums[key], sums.get(("", key[1]), whole)) for key in columns if key[0]}
        return cls(values, confidence)

    def interval(self, model: str, metric: str, over: str | None = None) -> list[float]:
        """Bounds that hold the middle `confidence` percent of the draws; or of the gain over another model."""
        values = self.values[model, metric]
        if over is not None:
            values = values - self.values[over, metric]
        outside = (100 - self.confidence) / 2
        return [round(float(bound), 2) for bound in np.percentile(values, [outside, 100 - outside])]


def _ratio(upper: Array, below: Array) -> Array:
    return 100 * upper / np.where(below > 0, below, 1)


def drawn_sums(columns: list[Array], n_draws: int, rng: np.random.Generator) -> Array:
    """Sum of each column over each draw of as many rows as there are, (n_draws, n_columns)."""
    # Single precision within a block, double between blocks: half the memory, and far finer than the decimals shown.
    matrix = np.column_stack([column.astype(np.float32) for column in columns])
    n_docs = len(matrix)
    at_once = min(n_draws, max(1, _CELLS // n_docs))
    times = np.empty((at_once, n_docs), np.float32)  # how often each draw takes each document
    sums = np.zeros((n_draws, matrix.shape[1]))
    for start, stop in batches(n_draws, at_once):
        for row in times[: stop - start]:
            row[:] = np.bincount(rng.integers(0, n_docs, n_docs), minlength=n_docs)
        for first, last in batches(n_docs, _BLOCK):
            sums[start:stop] += times[: stop - start, first:last] @ matrix[first:last]
    return sums
