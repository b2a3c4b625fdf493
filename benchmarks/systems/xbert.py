"""xbert itself: the stages of a recipe run in memory, so that no store, journal or checkpoint is on the clock."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import scipy.sparse

from systems import protocol
from systems.protocol import TOP, Request
from xbert.artifacts.arrays import Array, Strings
from xbert.artifacts.kinds.dataset import Dataset, Labels, Split
from xbert.artifacts.kinds.features import Features
from xbert.artifacts.kinds.linear_matcher import LinearMatcher
from xbert.artifacts.kinds.linear_ranker import LinearRanker
from xbert.artifacts.sparse import Sparse
from xbert.pipeline import config, template
from xbert.pipeline.config import Choice
from xbert.pipeline.memory import free
from xbert.pipeline.tagger import Model, Tagger
from xbert.stages.base import seeded
from xbert.stages.features.vectorizer import Vectorizer

LEARNT = ("index", "match", "rank")
WARM_UP_TEXTS = ["One small text, to compile with", "Und noch ein kürzerer Text", "one text more"] * 20


@dataclass(frozen=True)
class Memory:
    """A place to work that keeps nothing and says nothing."""

    folder: Path
    threads: int
    memory: int
    seed: int

    def rng(self, name: str) -> np.random.Generator:
        return seeded(self.seed, name)

    def progress(self, *_: object) -> "Memory":
        return self

    def advance(self, amount: int = 1) -> None: ...
    def say(self, sentence: str) -> None: ...
    def log(self, step: int, values: dict[str, float]) -> None: ...
    def recall(self, name: str) -> None: ...
    def keep(self, name: str, piece: dict[str, Array]) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None: ...


def recipe(request: Request) -> dict[str, Choice]:
    """Stage -> method and settings, as `xbert init` and `xbert run` would have them."""
    path = request.scratch / "experiment.toml"
    path.write_text(template.render(request.options["recipe"], {"train": "train.jsonl"}), "utf-8")
    overrides = [f"index.seed={request.seed}", f"rank.top={TOP}", *request.options["overrides"]]
    experiment = config.read(path, overrides)
    return experiment.shared | next(iter(experiment.models.values()))


def run(choice: Choice, inputs: dict[str, Any], request: Request) -> Any:
    """One stage."""
    work = Memory(request.scratch, request.threads, free(), getattr(choice.config, "seed", 0))
    return choice.method().run(inputs, choice.config, work)


def learn(stages: dict[str, Choice], data: Dataset, features: Features, request: Request) -> tuple[Model, dict[str, float]]:
    """Index, match, rank; the model without the splits' scores, and seconds of each stage."""
    made: dict[str, Any] = {"data": data, "features": features}
    seconds = {}
    for stage in LEARNT:
        seconds[f"{stage}_s"], made[stage] = protocol.clock(lambda stage=stage: run(stages[stage], made, request))
    return Model(features, replace(made["match"], scores={}), replace(made["rank"], scores={})), seconds


def save(model: Model, folder: Path) -> float:
    """Write the weights, and the vocabulary if there is one; MB of the weights: no peer's model holds a vocabulary."""
    for name, part in (("match", model.matcher), ("rank", model.ranker)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        part.save(folder / name)
    size = protocol.size_mb(folder)
    if model.features.vocabulary is not None:
        (folder / "features").mkdir(exist_ok=True)
        replace(model.features, X={"train": model.features.X["train"].slice(0, 0)}).save(folder / "features")
    return size


def given_features(X: Sparse) -> Features:
    """Rows that came from elsewhere."""
    return Features({"train": X}, None, {"method": "given", "normalize": False, "idf": False})


def dataset(names: Iterable[str], Y: Sparse, content: Strings | Sparse) -> Dataset:
    """Training documents by themselves: held-out splits would be scored on the clock."""
    split = Split(Y, content, None) if isinstance(content, Strings) else Split(Y, None, content)
    return Dataset(labels(names), {"train": split}, {})


def labels(names: Iterable[str]) -> Labels:
    """Labels that have a name and nothing else."""
    ids = Strings.of(names)
    none = Strings.of([""] * len(ids))
    return Labels(ids, none, none, Sparse.of_rows([[]] * len(ids), len(ids)))


def label_names(data: Path) -> list[str]:
    """The labels, by number."""
    names: list[str] = json.loads((data / "labels.json").read_text("utf-8"))
    return names


def truth(data: Path, split: str) -> Sparse:
    """Documents x labels."""
    return Sparse.of_scipy(protocol.labels(data, split), binary=True)


class Xbert(protocol.System):
    packages = ("xbert", "numba", "numpy", "scipy")

    def warm_up(self, request: Request) -> None:
        """Numba compiles a kernel on its first use ever and reads it from its cache from then on."""
        stages, rng = recipe(request), np.random.default_rng(0)
        X = Sparse.of_scipy(scipy.sparse.random_array((300, 80), density=0.1, dtype=np.float32, rng=rng).tocsr())
        Y = Sparse.of_rows([[i % 40, 40 + i % 7] for i in range(300)], 47)
        if request.step in ("train", "train_text", "predict", "latency"):
            data = dataset(map(str, range(47)), Y, X)
            learn(stages, data, given_features(X), request)[0].scores(X, request.threads)
        if request.step in ("features", "train_text", "latency"):
            features = self._features(stages, [str(i) for i in range(60)], WARM_UP_TEXTS, request)
            for texts in (WARM_UP_TEXTS, WARM_UP_TEXTS[:1], ["é"]):
                Vectorizer(features).transform(texts, request.threads)

    def _features(self, stages: dict[str, Choice], names: list[str], texts: list[str], request: Request) -> Features:
        unlabelled = Sparse.of_rows([[]] * len(texts), len(names))
        made: Features = run(stages["features"], {"data": dataset(names, unlabelled, Strings.of(texts))}, request)
        return made

    def features(self, request: Request) -> dict[str, Any]:
        """The table of strings is made on the clock: the others are given a list of strings too."""
        stages = recipe(request)

        def fit(texts: list[str]) -> tuple[Any, int]:
            made = self._features(stages, ["none", "such"], texts, request)
            return Vectorizer(made), made.n_terms

        return protocol.features_figures(request, fit, lambda made, texts: made.transform(texts, request.threads))

    def train(self, request: Request) -> dict[str, Any]:
        X, Y = Sparse.of_scipy(protocol.rows(request.data, "train")), truth(request.data, "train")
        data = dataset(label_names(request.data), Y, X)
        before = protocol.rss_mb()
        model, parts = learn(recipe(request), data, given_features(X), request)
        peak = protocol.peak_mb()
        size = save(model, request.model)
        return {"train_s": sum(parts.values()), "parts_s": parts, "rss_before_mb": before, "peak_mb": peak, "model_mb": size}

    def train_text(self, request: Request) -> dict[str, Any]:
        """From text with features of its own: for the latency from text, and for recipes with other features."""
        stages, names = recipe(request), label_names(request.data)
        texts, Y = protocol.read_texts(request.data, "train"), truth(request.data, "train")
        features_s, features = protocol.clock(lambda: self._features(stages, names, texts, request))
        before = protocol.rss_mb()
        model, parts = learn(stages, dataset(names, Y, Strings.of(texts)), features, request)
        peak = protocol.peak_mb()
        size = save(model, request.model)
        if request.top is not None:
            X = Vectorizer(features).transform(protocol.read_texts(request.data, "test"), request.threads)
            np.save(request.top, self.top(model.scores(X, request.threads)))
        return {
            "features_s": features_s, "train_s": sum(parts.values()), "parts_s": parts, "rss_before_mb": before,
            "peak_mb": peak, "model_mb": size, "n_terms": features.n_terms,
        }  # fmt: skip

    def load(self, request: Request) -> None:
        matcher, ranker = LinearMatcher.load(request.model / "match"), LinearRanker.load(request.model / "rank")
        nothing = Sparse(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), matcher.n_terms)
        self.model = Model(given_features(nothing), matcher, ranker)

    def rows(self, X: Any) -> Sparse:
        return Sparse.of_scipy(X)

    def batch(self, X: Any, threads: int) -> Any:
        return self.model.scores(X, threads)

    def top(self, found: Any) -> np.ndarray:
        return np.asarray(found.top(TOP)[0])

    def load_text(self, request: Request) -> None:
        self.load(request)
        model = self.model._replace(features=Features.load(request.model / "features"))
        self.tagger = Tagger(labels(label_names(request.data)), [model], None)

    def one_text(self, text: str) -> Any:
        return self.tagger.predict([text], k=TOP)


if __name__ == "__main__":
    protocol.serve(Xbert)
