"""One-vs-all linear rankers, and the labels they found for the held-out splits."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from xbert.artifacts.arrays import Array, load_array, save_array
from xbert.artifacts.errors import ArtifactError
from xbert.artifacts.kinds.base import Artifact, read_json, write_json
from xbert.artifacts.kinds.scores import Scores, load_scores, save_scores
from xbert.artifacts.kinds.weights import ChunkedWeights

TFIDF, TFIDF_DENSE = "tfidf", "tfidf+dense"
_NEWER = ("features", "dense_scale", "matcher_weight", "linear_weight")  # what older formats lack


@dataclass(frozen=True, eq=False)
class LinearRanker(Artifact):
    """A weight vector per label, in chunks by cluster; the prior of each label; S': the best labels of every document."""

    kind: ClassVar[str] = "linear_ranker"
    format: ClassVar[int] = 4  # 2 had no `features`, `dense_scale` and `matcher_weight`, 3 no `linear_weight`

    weights: ChunkedWeights
    prior: Array  # float32: share of the training documents that have the label
    scores: dict[str, Scores]  # split -> documents x labels
    post_processor: str
    top: int  # labels kept per document
    features: str = TFIDF  # what a document is described by: its terms, or also the vector a matcher has of it
    dense_scale: float = 1.0  # the length those vectors are given
    matcher_weight: float = 1.0  # the power of the matcher's score in the product of both
    linear_weight: float = 0.0  # the power of a linear matcher's score, where both are asked

    def __post_init__(self) -> None:
        if len(self.prior) != self.weights.n_children:
            raise ArtifactError(f"{len(self.prior)} priors but {self.weights.n_children} rankers: the artifact is damaged")
        for split, scores in self.scores.items():
            if scores.n_targets != self.n_labels:
                raise ArtifactError(f"{split} is scored for {scores.n_targets} labels, not {self.n_labels}")

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self.weights.n_children

    @property
    def takes_vectors(self) -> bool:
        """Whether documents are also described by the vectors a matcher has of them."""
        return self.features == TFIDF_DENSE

    def save(self, folder: Path) -> None:
        """Write weights, priors and scores."""
        self.weights.save(folder, "labels")
        save_array(folder / "prior.npy", self.prior)
        header = {"n_terms": self.weights.n_terms, "post_processor": self.post_processor, "top": self.top}
        header |= {name: getattr(self, name) for name in _NEWER}
        write_json(folder / "linear_ranker.json", {**header, "scores": save_scores(folder, self.scores)})

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Map weights, priors and scores; of an older format too, which is what its defaults say."""
        header = read_json(folder / "linear_ranker.json")
        weights = ChunkedWeights.load(folder, "labels", header["n_terms"])
        scores = load_scores(folder, header["scores"])
        prior = load_array(folder / "prior.npy", np.float32)
        newer = {name: header[name] for name in _NEWER if name in header}
        return cls(weights, prior, scores, header["post_processor"], header["top"], **newer)

    def summary(self) -> dict[str, Any]:
        """Sizes."""
        return self.weights.summary()
