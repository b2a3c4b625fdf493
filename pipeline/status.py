"""How an experiment stands: what is done, what is not and why, how long it took, how large it is."""

from dataclasses import asdict, dataclass
from typing import Any

from xbert.artifacts.errors import ArtifactError
from xbert.artifacts.manifest import Manifest
from xbert.pipeline.console import duration, size
from xbert.pipeline.graph import Node
from xbert.pipeline.runner import Runner

DONE, STALE, MISSING, INTERRUPTED, DAMAGED = "done", "stale", "missing", "interrupted", "damaged"


@dataclass(frozen=True)
class Row:
    """One artifact of the experiment."""

    name: str
    state: str
    reason: str
    seconds: float | None
    bytes: int | None
    folder: str


def rows(runner: Runner, verify: bool = False) -> list[Row]:
    """The state of every artifact; with `verify`, every byte is read and compared with its checksum."""
    journal = runner.store.journal()
    return [_row(runner, node, journal, verify) for node in runner.graph.nodes]


def _row(runner: Runner, node: Node, journal: dict[str, dict[str, Any]], verify: bool) -> Row:
    folder = runner.store.path(node.recipe)
    place = f"{node.recipe.stage}/{node.recipe.name}"
    if node.stage == "evaluate" and not runner.has_held_out():
        return Row(node.name, DONE, "nothing to measure on: no valid or test split", None, None, place)
    if not folder.exists():
        reason = runner.store.why_not(node.recipe)
        state = INTERRUPTED if reason.startswith(INTERRUPTED) else MISSING if reason == "never run" else STALE
        return Row(node.name, state, reason, None, None, place)
    seconds = journal.get(place, {}).get("seconds")
    n_bytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    try:
        manifest = Manifest.read(folder)
        manifest.check(folder, node.choice.method.gives)
        if verify:
            manifest.verify(folder)
    except ArtifactError as error:
        return Row(node.name, DAMAGED, str(error), seconds, n_bytes, place)
    return Row(node.name, DONE, "checksums match" if verify else "", seconds, n_bytes, place)


def lines(all_rows: list[Row]) -> list[str]:
    """An aligned table for the terminal."""
    cells = [("artifact", "state", "time", "size", "why")]
    for row in all_rows:
        took = "" if row.seconds is None else duration(row.seconds)
        cells.append((row.name, row.state, took, "" if row.bytes is None else size(row.bytes), row.reason))
    widths = [max(len(line[i]) for line in cells) for i in range(4)]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(line, [*widths, 0], strict=True)).rstrip() for line in cells]


def as_json(all_rows: list[Row]) -> dict[str, Any]:
    """The same for machines."""
    return {"up_to_date": all(row.state == DONE for row in all_rows), "artifacts": [asdict(row) for row in all_rows]}
