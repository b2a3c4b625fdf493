"""The accuracy of every system, by one piece of code: xbert's own metrics, which its tests compare with the field's."""

from pathlib import Path

import numpy as np
import scipy.sparse

from xbert.artifacts.kinds.scores import Scores
from xbert.artifacts.sparse import Sparse
from xbert.stages.metrics.places import place
from xbert.stages.metrics.ranking import Truth, inverse_propensities, overall, shares

A, B = 0.55, 1.5  # of the propensities (Jain et al., 2016), for all data sets but the Wikipedia and Amazon ones
KS = (1, 3, 5)
SHOWN = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@1", "PSP@3", "PSP@5")


def measure(data: Path, top: np.ndarray) -> dict[str, float]:
    """The metrics in percent of labels (documents x k, best first, -1 where there are fewer) for the test documents."""
    train, test = (scipy.sparse.load_npz(data / f"{split}.Y.npz") for split in ("train", "test"))
    if len(top) != test.shape[0]:
        raise ValueError(f"{len(top)} documents were predicted, there are {test.shape[0]}")
    Y = Sparse.of_scipy(test, binary=True)
    counts = np.bincount(train.indices, minlength=train.shape[1])
    truth = Truth.of(Y, inverse_propensities(counts, train.shape[0], A, B), KS)
    scores = Scores.of_top(top, np.ones(top.shape, np.float32), Y.n_cols)
    values = overall(shares(place(Y, scores, max(KS)), truth, KS), truth)
    return {name: values[name] for name in SHOWN}
