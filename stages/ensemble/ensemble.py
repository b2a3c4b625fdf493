"""The ensemble stage (X-BERT, sections 3.4 and 5.3.2): models of different embeddings and seeds, combined."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from xbert.artifacts.errors import InputError
from xbert.artifacts.kinds.dataset import Dataset
from xbert.artifacts.kinds.ensemble import Ensemble
from xbert.artifacts.kinds.scores import Scores
from xbert.artifacts.sparse import Sparse
from xbert.stages.base import Config, Method, Work, setting
from xbert.stages.ensemble.trials import Trials
from xbert.stages.kernels.combine import AVERAGE, WAYS, WEIGHTED, combine

_STEPS = (0.0, 0.5, 0.75, 1.25, 1.5, 2.0)
_ROUNDS = 3


@dataclass(frozen=True)
class EnsembleConfig(Config):
    """Settings of the ensemble."""

    combine: str = setting(
        AVERAGE,
        "the mean score; weighted with weights learnt on the validation split; mean place; or first labels in turn",
        choices=WAYS,
    )
    top: int = setting(50, "labels kept per document", low=1)


class Combine(Method[EnsembleConfig]):
    """Combines the label scores of all models; refuses models of other data."""

    stage, name, version = "ensemble", "combine", 2
    config = EnsembleConfig
    needs = ("data", "*/rank")
    gives = Ensemble

    @classmethod
    def check_data(cls, config: EnsembleConfig, dataset: Dataset) -> None:
        """Weights are learnt on the validation split."""
        if config.combine == WEIGHTED and "valid" not in dataset.held_out:
            raise InputError("ensemble.combine = 'weighted' learns on a validation split, and there is none: give data.valid")

    def run(self, inputs: dict[str, Any], config: EnsembleConfig, work: Work) -> Ensemble:
        """Learn the weights on valid if asked to, then combine every held-out split."""
        dataset: Dataset = inputs["data"]
        rankers = {key.removesuffix("/rank"): value for key, value in inputs.items() if key.endswith("/rank")}
        scores: dict[str, dict[str, Scores]] = {name: ranker.scores for name, ranker in rankers.items()}
        for split in dataset.held_out:
            check_same_data({name: each[split] for name, each in scores.items()}, dataset.splits[split].Y, split)
        weights = [1.0] * len(rankers)
        if config.combine == WEIGHTED:
            weights = learn_weights([each["valid"] for each in scores.values()], dataset.splits["valid"].Y)
            work.say("weights: " + ", ".join(f"{name} {weight:.2f}" for name, weight in zip(rankers, weights, strict=True)))
        places = max(ranker.top for ranker in rankers.values())
        combined = {
            split: combine([each[split] for each in scores.values()], config.combine, weights, config.top, places)
            for split in dataset.held_out
        }
        return Ensemble(list(rankers), config.combine, weights, config.top, places, combined)


def check_same_data(members: dict[str, Scores], Y: Sparse, split: str) -> None:
    """Refuse scores that are not of these documents and labels."""
    for name, scores in members.items():
        if scores.n_targets != Y.n_cols:
            raise InputError(
                f"scores of {name} have {scores.n_targets} labels, the dataset {Y.n_cols}: they come from other data"
            )
        if scores.n_docs != Y.n_rows:
            raise InputError(f"scores of {name} have {scores.n_docs} documents, {split} {Y.n_rows}: they come from other data")


def learn_weights(members: list[Scores], Y: Sparse) -> list[float]:
    """Weights of sum 1 that give the best nDCG@5: from equal ones, one at a time made larger or smaller while it helps."""
    trials = Trials.of(members, Y)
    weights = np.full(len(members), 1 / len(members))
    best = trials.ndcg(weights)
    for _ in range(_ROUNDS):
        before = best
        for i in range(len(members)):
            for step in _STEPS:
                trial = weights.copy()
                trial[i] *= step
                if trial.sum() == 0:
                    continue
                trial /= trial.sum()
                value = trials.ndcg(trial)
                if value > best:
                    best, weights = value, trial
        if best <= before:
            break
    return [float(weight) for weight in weights]
