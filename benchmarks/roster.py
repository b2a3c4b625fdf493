"""The systems that are compared: where each lives, how it is set, and what is measured of it."""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DEFAULT_HOME = Path(os.environ.get("PEERS_HOME") or "~/.cache/xbert-peers").expanduser()
OURS = "xbert"
WITH_DEFAULT = "xbert-default"
FALLBACK = "linear"
FAST = (OURS, "pecos")  # systems whose rounds are short


@dataclass(frozen=True)
class Step:
    """One process of a round."""

    name: str  # a method of the worker
    threads: int = 2
    variant: str = ""
    model: str = "rows"  # which of the system's models it makes or reads
    top: bool = False  # whether it leaves the labels it found

    @property
    def key(self) -> str:
        """Its name among the figures, such as features-1 or predict/HASH_CHUNKED."""
        return (
            self.name + (f"-{self.threads}" if self.name == "features" else "") + (f"/{self.variant}" if self.variant else "")
        )


@dataclass(frozen=True)
class Entrant:
    """A system with its settings."""

    key: str
    title: str
    worker: str  # module of `systems`
    home: str  # environment; "" is this one
    settings: str  # in words, for the report
    options: dict[str, Any] = field(default_factory=dict)
    feature_threads: tuple[int, ...] = ()
    variants: tuple[str, ...] = ("",)  # ways to predict: the best one of each figure counts
    own_text: bool = False  # has a vectorizer of its own, and with it another model
    predicts: bool = True

    def python(self, peers: Path) -> Path:
        """The interpreter of its environment."""
        return peers / self.home / "venv/bin/python" if self.home else Path(sys.executable)

    def setup(self) -> list[Step]:
        """Done once, before the rounds."""
        return [Step("train_text", model="text")] if self.own_text else []

    def accuracy(self) -> list[Step]:
        """All that a further seed needs."""
        return [Step("train"), Step("predict", variant=self.variants[0], top=True)]

    def round(self) -> Iterator[Step]:
        """Done in every round."""
        if self.key == WITH_DEFAULT:
            yield Step("train_text", model="text", top=True)
            return
        yield from (Step("features", threads) for threads in self.feature_threads)
        yield Step("train")
        if self.predicts:
            yield from (Step("predict", variant=variant, top=True) for variant in self.variants)
            model = "text" if self.own_text else "rows"
            yield from (Step("latency", variant=variant, model=model) for variant in self.variants)


def entrants(recipe: str, with_default: bool, sklearn_labels: int) -> list[Entrant]:
    """All of them, xbert first."""
    words_only = {"recipe": recipe, "overrides": ["features.word_ngrams=1", "features.char_ngrams=0"]}
    found = [
        Entrant(OURS, "xbert", "xbert", "", f"recipe `{recipe}`, words only", words_only, (1, 2), own_text=True),
        Entrant(
            "pecos", "PECOS XR-Linear", "pecos", "pecos", "its defaults: 16 children, leaves of 100, TFN, threshold 0.1",
            {}, (1, 2), ("BINARY_SEARCH_CHUNKED", "HASH_CHUNKED"), own_text=True,
        ),
        Entrant(
            "omikuji-parabel", "omikuji, Parabel-like", "omikuji", "omikuji", "its defaults, 3 trees; C interface",
            {"settings": {}}, variants=("sparse", "dense"),
        ),
        Entrant(
            "omikuji-bonsai", "omikuji, Bonsai-like", "omikuji", "omikuji",
            "3 trees, cluster_k 100, cluster_balanced False, max_depth 3; C interface",
            {"settings": {"cluster_k": 100, "cluster_balanced": False, "max_depth": 3}}, variants=("sparse", "dense"),
        ),
        Entrant(
            "napkinxc", "napkinXC PLT", "napkinxc", "napkinxc", "loss squaredHinge, liblinear_c 1",
            {"settings": {"loss": "squaredHinge", "liblinear_c": 1}},
        ),
        Entrant(
            "sklearn", "scikit-learn", "sklearn", "sklearn",
            f"TfidfVectorizer; one-vs-rest LinearSVC with its defaults on at most {sklearn_labels} labels",
            {"labels": sklearn_labels}, (1,), predicts=False,
        ),
    ]  # fmt: skip
    if with_default:
        default = {"recipe": FALLBACK, "overrides": []}
        about = f"recipe `{FALLBACK}` from text, with its own features; its training time leaves them out"
        found.insert(1, Entrant(WITH_DEFAULT, "xbert, default recipe", "xbert", "", about, default))
    return found


def installed(everyone: list[Entrant], peers: Path) -> tuple[list[Entrant], list[str]]:
    """Those whose environment is there, and the titles of the others."""
    there = [each for each in everyone if each.python(peers).exists()]
    return there, [each.title for each in everyone if each not in there]


def lenders(peers: Path) -> list[str]:
    """Packages of scikit-learn's environment: some peers need its vectorizer, and may not have it."""
    return [str(path) for path in sorted((peers / "sklearn/venv/lib").glob("python3.*/site-packages"))]
