"""The store: a run folder of finished artifacts. "Done" means that the folder exists.

<run>/<stage>/<method>-<12 hex>/             a finished artifact, never overwritten
<run>/<stage>/.partial-<method>-<12 hex>/    one in the making; its pieces/ survive a crash
<run>/.locks/                                who is writing what
<run>/journal.jsonl                          when each was made, how long it took, how much memory
<run>/logs/                                  what long trainings told step by step (pipeline/log.py)
"""

import json
import os
import resource
import shutil
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.artifacts.atomic import make_folder, remove_folder, rename_folder, storage_errors, sync_file, sync_folder
from xbert.artifacts.errors import ArtifactError
from xbert.artifacts.fingerprint import Recipe
from xbert.artifacts.kinds.base import Artifact
from xbert.artifacts.lock import locked
from xbert.artifacts.manifest import NAME, Manifest
from xbert.artifacts.trust import note_verified, verify_once

A = TypeVar("A", bound=Artifact)
PIECES = "pieces"


class Pieces:
    """Finished pieces of an artifact in the making: one file each, there or not there, never half."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def recall(self, name: str) -> dict[str, Array] | None:
        """The piece kept under that name, or None."""
        try:
            with np.load(self._folder / f"{name}.npz", allow_pickle=False) as piece:
                return {key: piece[key] for key in piece.files}
        except FileNotFoundError:
            return None
        except (ValueError, OSError, zipfile.BadZipFile):  # bit rot: the piece is simply computed again
            return None

    def keep(self, name: str, piece: dict[str, Array]) -> None:
        """Write the piece durably."""
        self._folder.mkdir(parents=True, exist_ok=True)
        part, final = self._folder / f"{name}.part", self._folder / f"{name}.npz"
        with part.open("wb") as stream:
            np.savez(stream, allow_pickle=False, **piece)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(part, final)
        sync_folder(self._folder)

    def count(self) -> int:
        """How many pieces are kept."""
        return sum(1 for _ in self._folder.glob("*.npz")) if self._folder.exists() else 0


class Store:
    """Finds, loads and makes the artifacts of one run folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, recipe: Recipe) -> Path:
        """Where the recipe's artifact is, or would be."""
        return self.folder / recipe.stage / recipe.name

    def partial(self, recipe: Recipe) -> Path:
        """Where it is while being made."""
        return self.folder / recipe.stage / f".partial-{recipe.name}"

    def has(self, recipe: Recipe) -> bool:
        """Whether it is done."""
        return self.path(recipe).exists()

    def load(self, recipe: Recipe, kind: type[A]) -> A:
        """Open a finished artifact, after checking that it is what the recipe says."""
        return open_artifact(self.path(recipe), kind)

    def make(
        self, recipe: Recipe, kind: type[Artifact], compute: Callable[[Path, Pieces], Artifact], force: bool = False
    ) -> Path:
        """Run `compute` in a partial folder and seal its result; a finished artifact is only replaced with `force`."""
        final, partial = self.path(recipe), self.partial(recipe)
        with storage_errors(self.folder):
            make_folder(final.parent)
            with locked(self.folder / ".locks" / f"{recipe.stage}-{recipe.name}", f"{recipe.stage}/{recipe.name}"):
                if final.exists() and not force:
                    return final
                if not _is_sealed(partial, recipe):
                    _sweep(partial)
                    started = time.monotonic()
                    artifact = compute(partial, Pieces(partial / PIECES))
                    artifact.save(partial)
                    self._seal(partial, recipe, kind)
                    self._note(recipe, time.monotonic() - started)
                shutil.rmtree(partial / PIECES, ignore_errors=True)
                remove_folder(final)
                rename_folder(partial, final)
                note_verified(final, Manifest.read(final))
        return final

    def _seal(self, partial: Path, recipe: Recipe, kind: type[Artifact]) -> None:
        for path in partial.iterdir():
            if path.is_file():
                sync_file(path)  # most are, but other libraries write too: an encoder's tokenizer and weights
        sync_folder(partial)
        manifest = Manifest.of(partial, recipe, kind)
        manifest.write(partial)  # every byte is on the disk by now, so from here on the folder is whole

    def _note(self, recipe: Recipe, seconds: float) -> None:
        usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        line = {
            "artifact": f"{recipe.stage}/{recipe.name}",
            "seconds": round(seconds, 2),
            "peak_mb": round(usage),
            "finished": time.strftime("%Y-%m-%dT%H:%M:%S"),
        }
        with (self.folder / "journal.jsonl").open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")

    def journal(self) -> dict[str, dict[str, Any]]:
        """The last note of each artifact."""
        notes: dict[str, dict[str, Any]] = {}
        path = self.folder / "journal.jsonl"
        for line in path.read_bytes().decode("utf-8", "replace").splitlines() if path.exists() else []:
            try:
                note = json.loads(line)
                notes[note["artifact"]] = note
            except (ValueError, KeyError, TypeError):
                continue  # a line cut by a crash: the journal only informs
        return notes

    def artifacts(self, stage: str) -> list[Path]:
        """The finished artifacts of a stage, by name."""
        folder = self.folder / stage
        return sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith(".")) if folder.exists() else []

    def why_not(self, recipe: Recipe) -> str:
        """Why the recipe's artifact is not there, in words: what changed since the nearest one, or how far it got."""
        if self.partial(recipe).exists():
            pieces = Pieces(self.partial(recipe) / PIECES).count()
            return f"interrupted with {pieces} finished pieces, which the next run takes up" if pieces else "interrupted"
        nearest: list[str] | None = None
        for path in self.artifacts(recipe.stage):
            try:
                other = Manifest.read(path).recipe
            except ArtifactError:
                continue
            changes = differences(other, recipe)
            if nearest is None or len(changes) < len(nearest):
                nearest = changes
        return "never run" if nearest is None else "; ".join(nearest)


def open_artifact(folder: Path, kind: type[A]) -> A:
    """Open a finished artifact by its folder, after checking that it is whole, of that kind and of a known format."""
    if not folder.exists():
        raise ArtifactError(f"{folder} is missing: run the experiment first")
    check_artifact(folder, kind)
    return kind.load(folder)


def check_artifact(folder: Path, kind: type[Artifact]) -> None:
    """Refuse a folder that is not a whole artifact of that kind, or whose bytes are not those that were written."""
    manifest = Manifest.read(folder)
    manifest.check(folder, kind)
    verify_once(folder, manifest)


def differences(before: Recipe, now: Recipe) -> list[str]:
    """What changed from one recipe to the other, a sentence each; the settings of different methods are not compared."""
    if before.method != now.method:
        return [f"method: {before.method} -> {now.method}"]
    changes = []
    if before.version != now.version:
        changes.append(f"{now.method} works differently in this version of xbert: {before.version} -> {now.version}")
    for key in sorted(before.config.keys() | now.config.keys()):
        old, new = before.config.get(key, "not set"), now.config.get(key, "not set")
        if old != new:
            changes.append(f"config.{key}: {old} -> {new}")
    for key in sorted(before.inputs.keys() | now.inputs.keys()):
        if before.inputs.get(key) != now.inputs.get(key):
            how = "is new" if key not in before.inputs else "is gone" if key not in now.inputs else "changed"
            changes.append(f"its {key} {how}")
    return changes


def _is_sealed(partial: Path, recipe: Recipe) -> bool:
    """Whether the partial folder is whole and only its rename is missing."""
    try:
        return (partial / NAME).exists() and Manifest.read(partial).recipe == recipe
    except ArtifactError:
        return False


def _sweep(partial: Path) -> None:
    """An empty partial folder, but for the pieces an interrupted run kept."""
    partial.mkdir(parents=True, exist_ok=True)
    for path in partial.iterdir():
        if path.name != PIECES:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
