"""A hierarchical linear matcher, and the clusters it found for every split."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from xbert.artifacts.errors import ArtifactError
from xbert.artifacts.kinds.base import Artifact, read_json, write_json
from xbert.artifacts.kinds.label_index import LabelIndex
from xbert.artifacts.kinds.scores import Scores, load_scores, save_scores
from xbert.artifacts.kinds.weights import ChunkedWeights

OUT_OF_FOLD = "out-of-fold"
IN_SAMPLE = "in-sample"


@dataclass(frozen=True, eq=False)
class LinearMatcher(Artifact):
    """Weights per level, from the root down, and S: the best clusters of every document, with scores in [0,1]."""

    kind: ClassVar[str] = "linear_matcher"
    format: ClassVar[int] = 2
    family: ClassVar[str] = "linear"  # what reports call it

    levels: list[ChunkedWeights]
    scores: dict[str, Scores]  # split -> documents x clusters
    post_processor: str
    beam: int
    train_scores: str  # whether train's scores are out-of-fold, in-sample (not to be learnt from) or none

    def __post_init__(self) -> None:
        for above, below in zip(self.levels, self.levels[1:], strict=False):
            if above.n_children != below.n_parents:
                raise ArtifactError(f"{above.n_children} clusters above but {below.n_parents} below: damaged artifact")
        for split, scores in self.scores.items():
            if scores.n_targets != self.n_clusters:
                raise ArtifactError(f"{split} is scored for {scores.n_targets} clusters, not {self.n_clusters}")

    def scores_of(self, index: LabelIndex) -> dict[str, Scores]:
        """The clusters found in every split; it knows only the clustering it was made for."""
        if index.n_clusters != self.n_clusters:
            raise ArtifactError(f"the matcher knows {self.n_clusters} clusters, the index {index.n_clusters}: other data")
        return self.scores

    @property
    def n_clusters(self) -> int:
        """Number of clusters at the bottom."""
        return self.levels[-1].n_children

    @property
    def n_terms(self) -> int:
        """Number of terms a document is described by."""
        return self.levels[0].n_terms

    def save(self, folder: Path) -> None:
        """Write every level and every split's scores."""
        for depth, level in enumerate(self.levels):
            level.save(folder, f"level{depth}")
        header: dict[str, Any] = {"levels": len(self.levels), "n_terms": self.n_terms, "beam": self.beam}
        header |= {"post_processor": self.post_processor, "train_scores": self.train_scores}
        write_json(folder / "linear_matcher.json", {**header, "scores": save_scores(folder, self.scores)})

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Map every level and every split's scores."""
        header = read_json(folder / "linear_matcher.json")
        levels = [ChunkedWeights.load(folder, f"level{depth}", header["n_terms"]) for depth in range(header["levels"])]
        scores = load_scores(folder, header["scores"])
        return cls(levels, scores, header["post_processor"], header["beam"], header["train_scores"])

    def summary(self) -> dict[str, Any]:
        """Sizes."""
        parts = [level.summary() for level in self.levels]
        return {name: round(sum(part[name] for part in parts), 1) for name in parts[0]}
