"""Which methods there are for each stage. Nothing heavy is imported until a method is asked for."""

import difflib
import importlib
from typing import Any

from xbert.artifacts.errors import InputError
from xbert.stages.base import Method

# stage -> method -> where it lives; the first one is the default.
METHODS: dict[str, dict[str, str]] = {
    "data": {"corpus": "xbert.stages.corpus.prepare:Prepare"},
    "features": {"tfidf": "xbert.stages.features.tfidf:Tfidf", "given": "xbert.stages.features.given:Given"},
    "index": {"kmeans": "xbert.stages.index.kmeans:KMeans"},
    "match": {"linear": "xbert.stages.match.linear:Linear", "neural": "xbert.stages.match.neural:Neural"},
    "rank": {"linear": "xbert.stages.rank.linear:Linear"},
    "ensemble": {"combine": "xbert.stages.ensemble.ensemble:Combine"},
    "evaluate": {"metrics": "xbert.stages.evaluate.evaluate:Evaluate"},
}
# What methods ask for beside the stages before theirs (`Method.companions`): never a choice of an experiment file.
HELPERS: dict[str, dict[str, str]] = {"index": {"label-vectors": "xbert.stages.index.label_vectors:ReadLabels"}}
STAGES = tuple(METHODS)
MODEL_STAGES = ("features", "index", "match", "rank")  # what a model may have of its own


def default_method(stage: str) -> str:
    """The method a stage uses unless told otherwise."""
    return next(iter(METHODS[stage]))


def find(stage: str, name: str) -> type[Method[Any]]:
    """The method of that name; an unknown one is an error that names the nearest."""
    known = METHODS[stage]
    if name not in known:
        raise InputError(f"[{stage}] method = {name!r} is not known{did_you_mean(name, known)}; there is {', '.join(known)}")
    return _load(known[name])


def companion(stage: str, name: str) -> type[Method[Any]]:
    """The method of that name that another one asks for: one that can be chosen, or one that is only asked for."""
    return _load({**METHODS[stage], **HELPERS.get(stage, {})}[name])


def _load(place: str) -> type[Method[Any]]:
    module, _, attribute = place.partition(":")
    found: type[Method[Any]] = getattr(importlib.import_module(module), attribute)
    return found


def did_you_mean(word: str, known: Any) -> str:
    """`; did you mean 'clusters'?`, or nothing if no known word is near."""
    near = difflib.get_close_matches(word, list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""
