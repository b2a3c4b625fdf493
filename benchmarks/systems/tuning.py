"""What both sides of fine_tuning.py share: the settings, the documents, how a head starts, and the curve that comes of it.

Runs in either environment, so it needs nothing but the standard library, numpy and scipy.
"""

import importlib.metadata
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from systems import protocol

MEAN, CLASSIFIER = "mean", "classifier"
POOLING = (MEAN, CLASSIFIER)
PACKAGES = ("torch", "transformers", "accelerate", "xbert")


@dataclass(frozen=True)
class Settings:
    """What is the same on both sides. The loss is the mean of the binary cross-entropy over all targets and documents."""

    n_targets: int
    batch: int = 32
    tokens: int = 128  # of a document, at most; a batch is padded to its longest document
    rate: float = 5e-5  # of encoder and head, falling linearly to 0 from the first step on
    dropout: float = 0.1  # hidden states and attention
    pooling: str = MEAN  # or that of AutoModelForSequenceClassification
    seed: int = 0
    threads: int = 2
    options: dict[str, Any] = field(default_factory=dict)  # what xbert's side alone reads


@dataclass(frozen=True)
class Curve:
    """A training, step by step."""

    losses: list[float]
    seconds: list[float]  # from the end of the step before; making the batch included
    documents: list[int]
    tokenize_s: float  # on no clock of the steps
    about: str  # precision and the like, in words

    def docs_per_s(self, skipped: int) -> float:
        """Speed after the first steps, which are slower."""
        return sum(self.documents[skipped:]) / sum(self.seconds[skipped:])

    def means(self, every: int) -> list[float]:
        """The mean loss of each so many steps; a rest is left out."""
        n = len(self.losses) // every
        return [float(each) for each in np.reshape(self.losses[: n * every], (n, every)).mean(axis=1)]


Side = Callable[[list[str], list[list[int]], Settings], Curve]  # texts in their order, each one's targets


def head_start(settings: Settings, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights (targets x width) and bias that both sides begin with, as transformers would: N(0, 0.02), and zero."""
    rng = np.random.default_rng(settings.seed)
    weights = 0.02 * rng.standard_normal((settings.n_targets, width), np.float32)
    return weights, np.zeros(settings.n_targets, np.float32)


def versions() -> dict[str, str]:
    """Of the packages that matter, where they are installed."""
    there = {each.metadata["Name"].lower(): each.version for each in importlib.metadata.distributions()}
    return {name: there[name] for name in PACKAGES if name in there}


def serve(side: Side) -> None:
    """A side's main: argv names the request and where the answer goes."""
    asked, answer = map(Path, sys.argv[1:3])
    request = json.loads(asked.read_text("utf-8"))
    documents = json.loads(Path(request["documents"]).read_text("utf-8"))
    before = protocol.rss_mb()
    curve = side(documents["texts"], documents["targets"], Settings(**request["settings"]))
    figures = {"rss_before_mb": before, "peak_mb": protocol.peak_mb(), "versions": versions()}
    answer.write_text(json.dumps({"curve": asdict(curve), **figures}), "utf-8")
