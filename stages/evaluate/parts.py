"""What the evaluate stage is given, sorted and checked: the models, their matchers and indices, and the ensemble."""

from dataclasses import dataclass
from typing import Any, Protocol, Self

from xbert.artifacts.arrays import Array
from xbert.artifacts.errors import ArtifactError, InputError
from xbert.artifacts.kinds.dataset import Dataset
from xbert.artifacts.kinds.ensemble import Ensemble
from xbert.artifacts.kinds.evaluation import COMPARISON, ENSEMBLE
from xbert.artifacts.kinds.label_index import LabelIndex
from xbert.artifacts.kinds.scores import Scores
from xbert.stages.evaluate.comparison import Combination, Group, groups


class Scored(Protocol):
    """What rankers and ensembles give: scores by split."""

    @property
    def scores(self) -> dict[str, Scores]:
        """The best labels of each document of each split."""


@dataclass(frozen=True, eq=False)
class Model:
    """What is known of a single model besides its labels."""

    index: LabelIndex
    clusters: dict[str, Scores]  # the best clusters of each document of each split
    combination: Combination


@dataclass(frozen=True, eq=False)
class Parts:
    """What is measured on every split."""

    rankers: dict[str, Scored]  # the single models, then the ensemble
    models: dict[str, Model]
    ensemble: Ensemble | None
    groups: list[Group]
    counts: Array  # (n_labels,) training documents

    @classmethod
    def of(cls, inputs: dict[str, Any]) -> Self:
        """Find them among the inputs of the stage."""
        data: Dataset = inputs["data"]
        rankers = rankers_of(inputs)
        models = {name: _model(name, inputs, len(data.labels)) for name in rankers if name != ENSEMBLE}
        combinations = {name: model.combination for name, model in models.items()}
        together = groups(combinations) if ENSEMBLE in inputs else []
        return cls(rankers, models, inputs.get(ENSEMBLE), together, data.label_counts())


def rankers_of(inputs: dict[str, Any]) -> dict[str, Scored]:
    """The models whose labels are measured, by name; the ensemble comes last."""
    names = [key.removesuffix("/rank") for key in inputs if key.endswith("/rank")]
    for taken, meaning in ((ENSEMBLE, "all models together"), (COMPARISON, "how the models compare")):
        if taken in names:
            raise InputError(f"a model is called {taken!r}, which is the name of {meaning}: give it another name")
    rankers: dict[str, Scored] = {name: inputs[f"{name}/rank"] for name in names}
    if ENSEMBLE in inputs:
        rankers[ENSEMBLE] = inputs[ENSEMBLE]
    return rankers


def _model(name: str, inputs: dict[str, Any], n_labels: int) -> Model:
    index, match = inputs[f"{name}/index"], inputs[f"{name}/match"]
    if index.n_labels != n_labels:
        raise ArtifactError(f"{name}/index has {index.n_labels} labels, the dataset {n_labels}: they come from other data")
    return Model(index, match.scores_of(index), Combination.of(index, match))


def checked(by_split: dict[str, Scores], what: str, split: str, n_docs: int, n_targets: int, targets: str) -> Scores:
    """The scores of a split, if they belong to this dataset."""
    if split not in by_split:
        raise ArtifactError(f"{what} has no scores for the {split} split: they come from other data")
    scores = by_split[split]
    if scores.n_docs != n_docs:
        raise ArtifactError(f"{what} scores {scores.n_docs} documents of {split}, the dataset has {n_docs}: other data")
    if scores.n_targets != n_targets:
        raise ArtifactError(f"{what} knows {scores.n_targets} {targets}, {n_targets} are expected: they come from other data")
    return scores
