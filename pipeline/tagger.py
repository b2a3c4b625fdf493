"""Labels for new text: the finished model of a run, opened by mapping its files."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from xbert.artifacts.errors import InputError, StaleError
from xbert.artifacts.kinds.dataset import Dataset, Labels
from xbert.artifacts.kinds.ensemble import Ensemble
from xbert.artifacts.kinds.features import Features
from xbert.artifacts.kinds.label_index import LabelIndex
from xbert.artifacts.kinds.linear_matcher import LinearMatcher
from xbert.artifacts.kinds.linear_ranker import LinearRanker
from xbert.artifacts.kinds.neural_matcher import NeuralMatcher
from xbert.artifacts.kinds.scores import Scores
from xbert.artifacts.manifest import Manifest
from xbert.artifacts.sparse import Sparse
from xbert.artifacts.store import check_artifact, open_artifact
from xbert.pipeline import pointer
from xbert.stages.features.given import weigh_given
from xbert.stages.features.vectorizer import Vectorizer
from xbert.stages.kernels.combine import combine
from xbert.stages.match.linear import search
from xbert.stages.neural.names import ANSWERING, AUTO, DEVICES
from xbert.stages.rank.linear import rank

if TYPE_CHECKING:
    from xbert.stages.match.finding import Finder, Found

NO_KNOWN_WORD = "no known word: the most frequent labels, with their share of the training documents"


class Tag(NamedTuple):
    """A label for a document. The score orders labels; it is not a calibrated probability."""

    id: str
    text: str
    score: float


class Tags(list[Tag]):
    """The labels of one document, best first; `note` says what a reader should know of them, if anything."""

    note: str | None = None


class Model(NamedTuple):
    """One model's parts."""

    features: Features
    matcher: LinearMatcher | NeuralMatcher
    ranker: LinearRanker
    clustering: LabelIndex | None = None  # which of the clusterings that a neural matcher may know
    linear: LinearMatcher | None = None  # asked beside a neural one

    def scores(self, X: Sparse, threads: int, k: int | None = None, found: "Found | None" = None) -> Scores:
        """Labels for rows of features: the best k, or as many as the ranker keeps. Fewer are found sooner.

        `found` is what the network of a neural matcher says of the same documents.
        """
        one, top = self.ranker, min(k or self.ranker.top, self.ranker.top)
        if isinstance(self.matcher, LinearMatcher):
            return rank(X, _clusters(X, self.matcher, threads), one, top, threads)
        if found is None or self.clustering is None:
            raise InputError("this model reads text: use predict")
        clusters = found.clusters[self.matcher.head_of(self.clustering)]
        linear = _clusters(X, self.linear, threads) if self.linear is not None else None
        return rank(X, clusters, one, top, threads, found.vectors, linear)


class Tagger:
    """Tags text with a finished run.

    >>> tagger = Tagger.load("runs/demo")                                        # doctest: +SKIP
    >>> tagger.predict(["a large animal that eats grass"], k=3)[0][0].text       # doctest: +SKIP
    'herbivore'
    """

    def __init__(
        self, labels: Labels, models: list[Model], ensemble: Ensemble | None, device: str = AUTO, precision: str = AUTO
    ) -> None:
        for name, value, known in (("device", device, DEVICES), ("precision", precision, ANSWERING)):
            if value not in known:
                raise InputError(f"{name} = {value!r}: must be one of {', '.join(map(repr, known))}")
        self.labels, self._models, self._ensemble = labels, models, ensemble
        self._device, self._precision = device, precision
        self._built: dict[int, Finder] = {}
        self._vectorizers = {
            id(model.features): Vectorizer(model.features) for model in models if model.features.vocabulary is not None
        }

    @classmethod
    def load(cls, run: str | Path, device: str = AUTO, precision: str = AUTO) -> Self:
        """Open a run folder, or the run of an experiment file; files are mapped, not read.

        Device and precision are those of a fine-tuned encoder: "auto" takes a GPU where there is one, and the precision that
        the encoder learnt in where the device has it.
        """
        path = Path(run)
        folder, found = (path, pointer.read(path)) if path.is_dir() else _of_experiment(path)
        opened: dict[str, Any] = {}

        def load(place: str, kind: Any) -> Any:
            if place not in opened:
                opened[place] = open_artifact(folder / place, kind)
            return opened[place]

        models = [
            Model(
                load(m["features"], Features),
                load(m["match"], matcher_kind(folder / m["match"])),
                load(m["rank"], LinearRanker),
                load(m["index"], LabelIndex),
                load(m["linear"], LinearMatcher) if "linear" in m else None,
            )
            for m in found.models.values()
        ]
        check_artifact(folder / found.data, Dataset)
        ensemble = load(found.ensemble, Ensemble) if found.ensemble else None
        return cls(Labels.load(folder / found.data), models, ensemble, device, precision)

    @property
    def takes_text(self) -> bool:
        """Whether documents are texts; a model of given features takes rows of features."""
        return len(self._vectorizers) > 0

    @property
    def n_terms(self) -> int:
        """Number of features a row has."""
        return self._models[0].features.n_terms

    def predict(self, texts: Iterable[str], k: int = 5, threads: int = 1) -> list[Tags]:
        """The k best labels of each text."""
        texts = [texts] if isinstance(texts, str) else list(texts)
        for text in texts:
            if not isinstance(text, str):
                raise InputError(f"a text must be a string, not {type(text).__name__}")
        if not self.takes_text:
            raise InputError("this model was trained on given features, not on text: use predict_rows")
        rows = {key: vectorizer.transform(texts, threads) for key, vectorizer in self._vectorizers.items()}
        found = {key: finder.find(texts, threads) for key, finder in self._finders().items()} if texts else {}
        return self._tags([rows[id(model.features)] for model in self._models], found, k, threads)

    def predict_rows(self, X: Sparse, k: int = 5, threads: int = 1) -> list[Tags]:
        """The k best labels of each row of features, for models of given features."""
        if X.n_cols != self.n_terms:
            raise InputError(f"the rows have {X.n_cols} features, the model {self.n_terms}: they come from other data")
        return self._tags([weigh_given(model.features, X) for model in self._models], {}, k, threads)

    def warm_up(self) -> None:
        """Build the networks of neural matchers now, not when the first text comes."""
        self._finders()

    def _finders(self) -> dict[int, "Finder"]:
        """The networks of neural matchers, each built once, when it is first needed: a linear model never loads torch."""
        neural = {id(model.matcher): model.matcher for model in self._models if isinstance(model.matcher, NeuralMatcher)}
        if neural and not self._built:
            from xbert.stages.match.finding import Finder

            self._built = {key: Finder(matcher, self._device, self._precision) for key, matcher in neural.items()}
        return self._built

    def _tags(self, rows: Sequence[Sparse], found: Mapping[int, "Found"], k: int, threads: int) -> list[Tags]:
        if k < 1:
            raise InputError(f"k = {k}: must be at least 1")
        k = min(k, len(self.labels))
        wanted = k if self._ensemble is None else None  # an ensemble may raise what one model has further down
        if rows[0].n_rows == 0:
            return []
        members = [
            model.scores(X, threads, wanted, found.get(id(model.matcher))) for model, X in zip(self._models, rows, strict=True)
        ]
        if self._ensemble is None:
            scores = members[0]
        else:
            how = self._ensemble
            scores = combine(members, how.combine, how.weights, k, how.places)
        guessed = not any(model.ranker.takes_vectors for model in self._models)  # an encoder makes a vector of any text
        wordless = np.logical_and.reduce([X.row_lengths() == 0 for X in rows]) & guessed
        best, values = scores.top(k)
        return [self._one(best[i], values[i], bool(wordless[i])) for i in range(len(best))]

    def _one(self, targets: Any, values: Any, wordless: bool) -> Tags:
        names = self.labels
        tags = Tags(
            Tag(names.ids[int(target)], names.texts[int(target)], float(value))
            for target, value in zip(targets, values, strict=True)
            if target >= 0
        )
        tags.note = NO_KNOWN_WORD if wordless else None
        return tags


def _clusters(X: Sparse, matcher: LinearMatcher, threads: int) -> Scores:
    return search(X, matcher.levels, matcher.post_processor, matcher.beam, threads)


def matcher_kind(folder: Path) -> type[LinearMatcher] | type[NeuralMatcher]:
    """What kind of matcher a folder holds."""
    return NeuralMatcher if folder.exists() and Manifest.read(folder).kind == NeuralMatcher.kind else LinearMatcher


def _of_experiment(path: Path) -> tuple[Path, pointer.Pointer]:
    """The run folder of an experiment file, refusing a model that no longer fits its settings."""
    from xbert.pipeline.config import read
    from xbert.pipeline.console import Console
    from xbert.pipeline.runner import Runner

    runner = Runner(read(path), Console(quiet=True))
    needed = {node.name: node for made in runner.graph.models.values() for node in made.values()}
    needed |= {"ensemble": runner.graph.ensemble} if runner.graph.ensemble else {}
    for name, node in needed.items():
        if not runner.store.has(node.recipe):
            raise StaleError(f"{name} is not up to date ({runner.store.why_not(node.recipe)}): run `xbert run {path}`")
    return runner.experiment.folder, pointer.of(runner.graph, runner.store)
