"""What a person sees while it runs: sentences and progress on stderr, nothing on stdout."""

import sys
import time
from typing import TextIO

_REFRESH = 0.1  # seconds between two states of a bar on a terminal
_PLAIN = 10.0  # seconds between two lines where there is no terminal


class Console:
    """Prints to stderr; quiet on request."""

    def __init__(self, quiet: bool = False, stream: TextIO | None = None) -> None:
        self.quiet, self.stream = quiet, stream or sys.stderr

    def say(self, sentence: str) -> None:
        """One line."""
        if not self.quiet:
            print(sentence, file=self.stream, flush=True)

    def progress(self, what: str, total: int, unit: str) -> "Bar":
        """A bar, as a context."""
        return Bar(self, what, total, unit)


class Bar:
    """Progress with rate and time left: redrawn on a terminal, a line now and then elsewhere."""

    def __init__(self, console: Console, what: str, total: int, unit: str) -> None:
        self._console, self._what, self._total, self._unit = console, what, max(total, 1), unit
        self._done, self._started, self._shown = 0, time.monotonic(), time.monotonic()
        self._terminal = console.stream.isatty()

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *error: object) -> None:
        if self._console.quiet:
            return
        if self._terminal:
            print("\r\x1b[K", end="", file=self._console.stream, flush=True)
        if error[0] is None:
            seconds = time.monotonic() - self._started
            self._console.say(f"  {self._what}: {self._done:,} {self._unit} in {duration(seconds)}")

    def advance(self, amount: int = 1) -> None:
        """So much more is done."""
        self._done += amount
        now = time.monotonic()
        if self._console.quiet or now - self._shown < (_REFRESH if self._terminal else _PLAIN):
            return
        self._shown = now
        rate = self._done / max(now - self._started, 1e-9)
        left = duration((self._total - self._done) / rate) if rate > 0 else "?"
        line = f"  {self._what}: {self._done:,} of {self._total:,} {self._unit}, {rate:,.0f}/s, {left} left"
        if self._terminal:
            filled = int(24 * min(self._done / self._total, 1))
            print(f"\r\x1b[K[{'#' * filled}{' ' * (24 - filled)}]{line}", end="", file=self._console.stream, flush=True)
        else:
            self._console.say(line)


def duration(seconds: float) -> str:
    """A span of time for a person: 0.4 s, 12 s, 3 min 5 s, 2 h 10 min."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def size(n_bytes: float) -> str:
    """A size for a person: 12 kB, 3.4 MB."""
    for unit in ("B", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "B" or n_bytes >= 100 else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} GB"
