"""The place a method runs in: a partial folder of this machine, or a process that only helps another one."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.pipeline.console import Bar, Console
from xbert.pipeline.log import Log
from xbert.stages.base import seeded


class Keeper(Protocol):
    """Where finished pieces are kept: the store's `Pieces`, or nowhere."""

    def recall(self, name: str) -> dict[str, Array] | None:
        """The piece kept under that name, or None."""

    def keep(self, name: str, piece: dict[str, Array]) -> None:
        """Keep the piece."""


class NoPieces:
    """Keeps nothing: a process that helps leaves that to the first one."""

    def recall(self, name: str) -> None:
        """There is none."""

    def keep(self, name: str, piece: dict[str, Array]) -> None:
        """Nothing is kept."""


@dataclass(frozen=True)
class LocalWork:
    """The place a method runs in on this machine."""

    folder: Path
    threads: int
    memory: int
    seed: int
    pieces: Keeper
    console: Console
    numbers: Log

    @classmethod
    def of_helper(cls, folder: Path, threads: int, memory: int, seed: int) -> "LocalWork":
        """That of a process that helps: it keeps nothing, says nothing and logs nothing."""
        return cls(folder, threads, memory, seed, NoPieces(), Console(quiet=True), Log(None))

    def rng(self, name: str) -> np.random.Generator:
        """Random numbers that depend on the method's seed and the name alone."""
        return seeded(self.seed, name)

    def progress(self, what: str, total: int, unit: str) -> Bar:
        """A progress bar."""
        return self.console.progress(what, total, unit)

    def say(self, sentence: str) -> None:
        """One line, indented under its stage."""
        self.console.say(f"  {sentence}")

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Numbers for a curve."""
        self.numbers.add(step, values)

    def recall(self, name: str) -> dict[str, Array] | None:
        """A piece kept by an interrupted run."""
        return self.pieces.recall(name)

    def keep(self, name: str, piece: dict[str, Array]) -> None:
        """Keep a piece."""
        self.pieces.keep(name, piece)
