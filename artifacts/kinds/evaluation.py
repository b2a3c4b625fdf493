"""An evaluation: the metrics of every model and of the ensemble on every split, and a page to look at."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from xbert.artifacts.atomic import write_text
from xbert.artifacts.errors import ArtifactError
from xbert.artifacts.kinds.base import Artifact, read_json, write_json

ENSEMBLE, COMPARISON = "ensemble", "comparison"  # beside the models' names among the metrics; no model is called so


@dataclass(frozen=True, eq=False)
class Evaluation(Artifact):
    """metrics: model -> split -> metric -> percent (and tables by label frequency); report: a self-contained HTML page."""

    kind: ClassVar[str] = "evaluation"
    format: ClassVar[int] = 1

    metrics: dict[str, Any]
    report: str

    def save(self, folder: Path) -> None:
        """Write metrics.json and report.html."""
        write_json(folder / "metrics.json", self.metrics)
        write_text(folder / "report.html", self.report)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read both."""
        path = folder / "report.html"
        if not path.exists():
            raise ArtifactError(f"{path} is missing: the artifact is damaged; remove its folder and run again")
        return cls(read_json(folder / "metrics.json"), path.read_text("utf-8"))

    def summary(self) -> dict[str, Any]:
        """The models and splits that were measured."""
        models = {name: splits for name, splits in self.metrics.items() if name != COMPARISON}
        return {"models": list(models), "splits": sorted({split for splits in models.values() for split in splits})}
