"""An ensemble: how several models' scores become one, and the scores it gives."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from xbert.artifacts.errors import ArtifactError
from xbert.artifacts.kinds.base import Artifact, read_json, write_json
from xbert.artifacts.kinds.scores import Scores, load_scores, save_scores


@dataclass(frozen=True, eq=False)
class Ensemble(Artifact):
    """The members' names in order, the way they are combined, and a weight each."""

    kind: ClassVar[str] = "ensemble"
    format: ClassVar[int] = 1

    members: list[str]
    combine: str
    weights: list[float]
    top: int
    places: int  # labels a member lists at most: what a place is measured against
    scores: dict[str, Scores]

    def __post_init__(self) -> None:
        if len(self.members) != len(self.weights):
            raise ArtifactError(f"{len(self.members)} members but {len(self.weights)} weights: the artifact is damaged")

    def save(self, folder: Path) -> None:
        """Write the weights and every split's scores."""
        header: dict[str, Any] = {"members": self.members, "combine": self.combine, "weights": self.weights, "top": self.top}
        header |= {"places": self.places}
        write_json(folder / "ensemble.json", {**header, "scores": save_scores(folder, self.scores)})

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read the weights, map the scores."""
        header = read_json(folder / "ensemble.json")
        scores = load_scores(folder, header.pop("scores"))
        return cls(**header, scores=scores)

    def summary(self) -> dict[str, Any]:
        """Members and weights."""
        return {member: round(weight, 3) for member, weight in zip(self.members, self.weights, strict=True)}
