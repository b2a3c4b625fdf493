"""What a long training tells as it goes, number by number. It only informs: it is no part of an artifact.

<run>/logs/<stage>-<artifact>.jsonl          a line a step: {"step": 17, "train loss": 3.2, "rate": 1e-05}
<run>/logs/tensorboard/<stage>-<artifact>/   the same for `tensorboard --logdir <run>/logs/tensorboard`, where it is installed
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self, TextIO

FOLDER, TENSORBOARD = "logs", "tensorboard"
_FLUSH_SECONDS = 10


class Log:
    """The log of one artifact in the making. A run that goes on from a checkpoint goes on in it, too."""

    def __init__(self, folder: Path | None, name: str = "") -> None:
        """Nothing is written without a folder, or before the first number."""
        self._folder, self._name = folder, name
        self._stream: TextIO | None = None
        self._events: Events | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._stream is not None:
            self._stream.close()
        if self._events is not None:
            self._events.close()

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """The numbers of a step."""
        if self._folder is None:
            return
        if self._stream is None:
            self._stream = _reopen(self._folder / f"{self._name}.jsonl", step, values)
            self._events = Events.opened(self._folder / TENSORBOARD / self._name, step)
        self._stream.write(json.dumps({"step": step, **values}) + "\n")
        self._stream.flush()
        if self._events is not None:
            self._events.add(step, values)


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a log; one cut by a crash is left out."""
    for line in path.read_bytes().decode("utf-8", "replace").splitlines() if path.exists() else []:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and isinstance(entry.get("step"), int):
            yield entry


def _reopen(path: Path, step: int, values: Mapping[str, float]) -> TextIO:
    """The file, without what is about to be told again: all of it where the training begins anew."""
    told = [each for each in read(path) if each["step"] < step or (each["step"] == step and not each.keys() & values.keys())]
    path.parent.mkdir(parents=True, exist_ok=True)
    stream = path.open("w", encoding="utf-8")
    stream.writelines(json.dumps(each) + "\n" for each in told)
    return stream


class Events:
    """TensorBoard's event file."""

    def __init__(self, writer: Any, event: Callable[..., Any]) -> None:
        self._writer, self._event = writer, event

    @classmethod
    def opened(cls, folder: Path, step: int) -> "Events | None":
        """In that folder, or None where TensorBoard is not installed; what was told from that step on no longer counts."""
        try:
            from tensorboard.compat.proto.event_pb2 import Event, SessionLog
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError:
            return None
        writer = EventFileWriter(str(folder), flush_secs=_FLUSH_SECONDS)
        writer.add_event(Event(wall_time=time.time(), step=step, session_log=SessionLog(status=SessionLog.START)))
        return cls(writer, Event)

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """The numbers of a step."""
        scalars = {"value": [{"tag": name, "simple_value": value} for name, value in values.items()]}
        self._writer.add_event(self._event(wall_time=time.time(), step=step, summary=scalars))

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()
