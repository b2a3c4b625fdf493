"""What an ensemble would be worth with other weights: its members' first labels laid out once, weighed and ordered anew."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.artifacts.kinds.scores import Scores
from xbert.artifacts.sparse import Sparse

_JUDGED = 5  # labels of a document that count
_LOOKED_AT = 20  # first labels of a member; those behind them hardly come among the judged ones


@dataclass(frozen=True)
class Trials:
    """Every document's candidates, in the order of their labels, with each member's score; 0 where it does not list one."""

    values: Array  # (n_docs, most candidates, members) float32
    gains: Array  # (n_docs, most candidates) float32: 1 / (best possible DCG) where the candidate is right, else 0

    @classmethod
    def of(cls, members: Sequence[Scores], Y: Sparse) -> "Trials":
        """Lay them out."""
        n_docs, n_labels = Y.n_rows, Y.n_cols
        found = [member.top(_LOOKED_AT) for member in members]
        rows = [np.repeat(np.arange(n_docs, dtype=np.int64), ids.shape[1]) for ids, _ in found]
        keys = [row * n_labels + ids.ravel() for row, (ids, _) in zip(rows, found, strict=True)]
        listed = [ids.ravel() >= 0 for ids, _ in found]
        unique = np.unique(np.concatenate([key[there] for key, there in zip(keys, listed, strict=True)]))
        owner = unique // n_labels
        place = np.arange(len(unique)) - np.searchsorted(owner, np.arange(n_docs))[owner]
        values = np.zeros((n_docs, max(int(place.max(initial=0)) + 1, _JUDGED), len(members)), np.float32)
        for number, (key, there, (_, scores)) in enumerate(zip(keys, listed, found, strict=True)):
            at = np.searchsorted(unique, key[there])
            values[owner[at], place[at], number] = scores.ravel()[there]
        gains = np.zeros(values.shape[:2], np.float32)
        true = np.repeat(np.arange(n_docs, dtype=np.int64), Y.row_lengths()) * n_labels + Y.indices
        ideal = np.cumsum(_discounts())[np.clip(Y.row_lengths(), 1, _JUDGED) - 1]
        gains[owner, place] = np.isin(unique, true) / ideal[owner]
        return cls(values, gains)

    def ndcg(self, weights: Array) -> float:
        """nDCG@5 of the weighted mean, in percent."""
        if not len(self.values):
            return 0.0
        order = np.argsort(-(self.values @ weights.astype(np.float32)), axis=1, kind="stable")[:, :_JUDGED]
        return 100 * float((np.take_along_axis(self.gains, order, axis=1) @ _discounts()).mean())


def _discounts() -> Array:
    return 1 / np.log2(np.arange(_JUDGED) + 2)
