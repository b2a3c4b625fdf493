"""The user's text files, line by line: plain or gzip, with or without a byte order mark, UTF-8 or an error."""

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from xbert.artifacts.errors import InputError
from xbert.stages.base import Progress

_LONGEST_LINE = 1 << 28  # a longer "line" is a file without lines, and would fill the memory
_BLOCK = 1 << 24
_GZIP = b"\x1f\x8b"
_LINES_PER_STEP = 256


class TextFile:
    """A file that is read front to back; `progress` is told the bytes of the file, not of its unpacked content."""

    def __init__(self, path: Path, progress: Progress | None = None) -> None:
        self.path, self._progress, self._told = path, progress, 0

    @property
    def name(self) -> str:
        """What messages call the file."""
        return self.path.name

    def error(self, line: int, what: str) -> InputError:
        """The error to raise for a line: `train.jsonl line 17: 'labels' is missing`."""
        return InputError(f"{self.name} line {line}: {what}")

    def encoded(self, line: int, string: str) -> bytes:
        """A string of that line as UTF-8. A JSON escape may name half of a surrogate pair, which is no character."""
        try:
            return string.encode("utf-8")
        except UnicodeEncodeError:
            raise self.error(line, "a \\u escape stands for half of a surrogate pair, which is no character") from None

    def lines(self) -> Iterator[tuple[int, str]]:
        """Every line and its number from 1. Only a newline ends a line: a text may hold U+2028 or U+0085."""
        with self._opened() as (raw, stream):
            number = 0
            while line := stream.readline(_LONGEST_LINE):
                number += 1
                if number % _LINES_PER_STEP == 0:
                    self._tell(raw.tell())
                yield number, self._decoded(line, number)
            self._tell(raw.tell())

    def blocks(self) -> Iterator[bytes]:
        """The content in blocks of some megabytes that hold whole lines, each line with its newline."""
        with self._opened() as (raw, stream):
            rest = b""
            while block := stream.read(_BLOCK):
                self._tell(raw.tell())
                cut = block.rfind(b"\n") + 1
                if cut:
                    yield rest + block[:cut]
                    rest = block[cut:]
                else:
                    rest += block
                if len(rest) > _LONGEST_LINE:
                    raise InputError(f"{self.name}: a line has more than {_LONGEST_LINE} bytes; is it the right file?")
            if rest:
                yield rest + b"\n"

    def first_line(self) -> str:
        """The first line that is not blank; "" where there is none."""
        return next((line for _, line in self.lines() if line.strip()), "")

    def _decoded(self, line: bytes, number: int) -> str:
        if len(line) >= _LONGEST_LINE:
            raise self.error(number, f"more than {_LONGEST_LINE} bytes in one line; is it the right file?")
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        try:
            return line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            byte = f"byte 0x{line[error.start]:02x} at position {error.start + 1}"
            raise self.error(number, f"{byte} is not UTF-8; convert the file to UTF-8 (iconv)") from None

    def _tell(self, position: int) -> None:
        if self._progress is not None:
            self._progress.advance(position - self._told)
        self._told = position

    @contextmanager
    def _opened(self) -> Iterator[tuple[BinaryIO, BinaryIO]]:
        # The body only reads, so that an OSError here is never one of writing a result.
        try:
            with io.BufferedReader(io.FileIO(self.path), 1 << 20) as raw:
                if raw.peek(2)[:2] != _GZIP:
                    yield raw, raw
                    return
                with gzip.GzipFile(fileobj=raw) as unpacked:
                    yield raw, io.BufferedReader(unpacked, 1 << 20)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(f"{self.path} is a damaged gzip file ({error}); fetch or pack it again") from None
        except OSError as error:
            raise InputError(f"cannot read {self.path}: {error.strerror or error}") from None
