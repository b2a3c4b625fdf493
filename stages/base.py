"""What a stage method is, and what it may ask of the place it runs in.

A method computes; it never decides where results live, whether to run, or how to be atomic.
"""

import hashlib
import math
import types
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar, get_args, get_type_hints, runtime_checkable

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.artifacts.errors import InputError
from xbert.artifacts.kinds.base import Artifact
from xbert.artifacts.kinds.dataset import Dataset

T = TypeVar("T")
AUTO = "auto"
_LARGEST = 2**31 - 1  # what every kernel's integers can hold


def setting(
    default: Any,
    help: str,
    *,
    choices: Iterable[Any] = (),
    low: float | None = None,
    high: float | None = None,
    path: bool = False,
    folder: bool = False,
    how: bool = False,
) -> Any:
    """A field of a Config: its default, what it means, and which values it takes.

    A `path` is the user's file: relative to the experiment file, and known to a recipe by its content, not its name. So is a
    `folder`, where there is one of that name; else it is a name of something published. What only says `how` to compute is
    no part of a recipe: it may be changed in the middle of a run, and its result, but for rounding, stays the same.
    """
    rule = {
        "help": help, "choices": tuple(choices), "low": low, "high": high, "path": path, "folder": folder, "how": how
    }  # fmt: skip
    return field(default=default, metadata=rule)


@dataclass(frozen=True)
class Config:
    """A method's settings: frozen, checked, and the only home of their defaults."""

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for each in fields(self):
            object.__setattr__(self, each.name, _checked(each.name, getattr(self, each.name), hints[each.name], each.metadata))


def _checked(name: str, value: Any, hint: Any, rule: Mapping[str, Any]) -> Any:
    """The value, a whole number made a float where one is wanted; or one sentence on what is wrong with it."""
    kinds = get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if rule.get("choices"):
        if value not in rule["choices"]:
            raise InputError(f"{name} = {value!r}: must be one of {', '.join(map(repr, rule['choices']))}")
        return value
    if value == AUTO and str in kinds:
        return value
    numeric = [kind for kind in kinds if kind in (int, float)]
    if numeric:
        if (
            isinstance(value, bool)
            or not isinstance(value, (int, float))
            or (float not in numeric and isinstance(value, float))
        ):
            raise InputError(
                f"{name} = {value!r}: must be {'a number' if float in numeric else 'a whole number'}{_or_auto(kinds)}"
            )
        if (isinstance(value, int) and abs(value) > _LARGEST) or (isinstance(value, float) and math.isinf(value)):
            raise InputError(f"{name} is too large: a number must lie within +-{_LARGEST:,}")
        low, high = rule.get("low"), rule.get("high")
        if math.isnan(value) or (low is not None and value < low) or (high is not None and value > high):
            between = f"at least {low}" if high is None else f"at most {high}" if low is None else f"between {low} and {high}"
            raise InputError(f"{name} = {value!r}: must be {between}{_or_auto(kinds)}")
        return float(value) if int not in numeric else value
    if not isinstance(value, kinds[0] if isinstance(kinds[0], type) else object):
        raise InputError(f"{name} = {value!r}: must be {'true or false' if kinds[0] is bool else 'text'}")
    return value


def _or_auto(kinds: tuple[Any, ...]) -> str:
    return f", or {AUTO!r}" if str in kinds else ""


@dataclass(frozen=True)
class Shape:
    """What is known of the data when a plan is made."""

    n_docs: int  # of the training split
    n_held_out: int
    n_labels: int
    pairs: int  # labels of all training documents
    text_bytes: int  # of all splits
    entries: int  # terms of all training documents, counted or guessed
    n_terms: int
    n_clusters: int  # at the bottom of the index; 0 where it is not known yet


@dataclass(frozen=True)
class Estimate:
    """What a stage will take, told before it runs; rough by nature.

    Memory is what must be held at once: mapped files, which can be dropped at any time, do not count.
    """

    seconds: float
    memory: float  # bytes, beside the interpreter's own
    least: float  # bytes it can do with, more slowly
    disk: float  # bytes
    advice: str = "fewer terms with features.word_ngrams or features.max_terms"  # what makes the stage need less memory


class Progress(Protocol):
    """Tells a person how far a long step is."""

    def advance(self, amount: int = 1) -> None:
        """So much more is done."""


class Work(Protocol):
    """The place a method runs in."""

    @property
    def folder(self) -> Path:
        """Where the artifact is being made; files written here under their final names are kept."""

    @property
    def threads(self) -> int:
        """Cores to use."""

    @property
    def memory(self) -> int:
        """Bytes a stage may hold at once, beside mapped files."""

    def rng(self, name: str) -> np.random.Generator:
        """A source of random numbers of its own for every name, the same in every run of the same recipe."""

    def progress(self, what: str, total: int, unit: str) -> "ProgressContext":
        """A progress bar, as a context."""

    def say(self, sentence: str) -> None:
        """One line for the person at the terminal."""

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Numbers worth a curve, for whoever watches: a training's loss, a validation. They are no part of the artifact."""

    def recall(self, name: str) -> dict[str, Array] | None:
        """A piece of work that an interrupted run of the same recipe had finished and kept, or None."""

    def keep(self, name: str, piece: dict[str, Array]) -> None:
        """Keep a finished piece of work, durably, until the artifact is whole: an interrupted run goes on from it."""


class ProgressContext(Protocol):
    """A progress bar while it is open."""

    def __enter__(self) -> Progress: ...
    def __exit__(self, *error: object) -> None: ...


C = TypeVar("C", bound=Config)


@dataclass(frozen=True)
class Companion:
    """A further artifact a method asks for: made by that method of the model's own stages, and shared as any other is."""

    stage: str
    method: str
    settings: dict[str, Any]


class Method(ABC, Generic[C]):
    """One way of doing a stage. `version` is raised by hand whenever the same settings would give another result."""

    stage: ClassVar[str]
    name: ClassVar[str]
    version: ClassVar[int]
    config: ClassVar[type[Config]]
    needs: ClassVar[tuple[str, ...]]  # the stages whose artifacts `run` is given
    gives: ClassVar[type[Artifact]]

    @classmethod
    def check(cls, config: C, others: Mapping[str, Config]) -> None:
        """Refuse settings that do not go with those of the model's other stages, before anything runs."""

    @classmethod
    def check_data(cls, config: C, dataset: Dataset) -> None:
        """Refuse data that these settings cannot do with, as soon as it is prepared: not when hours of training are done."""

    @classmethod
    def reads(cls, config: C) -> dict[str, Path]:
        """The user's files this method reads under these settings, by a name of their own."""
        return {}

    @classmethod
    def companions(cls, config: C) -> dict[str, Companion]:
        """What `run` is given under these settings beside `needs`, by the names it is given under."""
        return {}

    @classmethod
    def estimate(cls, config: C, shape: Shape, threads: int) -> Estimate | None:
        """What running it will take, or None where nothing is known."""
        return None

    @abstractmethod
    def run(self, inputs: dict[str, Any], config: C, work: Work) -> Artifact:
        """Compute the artifact."""


@runtime_checkable
class Divisible(Protocol):
    """A method that several processes can run together: the first calls `run`, the others `follow`."""

    def follow(self, inputs: dict[str, Any], config: Any, work: Work) -> None:
        """Take part in `run` of the first process, and keep nothing."""


def seeded(seed: int, name: str) -> np.random.Generator:
    """A generator that depends on the seed and the name alone."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "little"))


def batches(n: int, size: int) -> Iterator[tuple[int, int]]:
    """0..n cut into (start, stop) of at most `size`."""
    return ((start, min(start + size, n)) for start in range(0, n, size))
