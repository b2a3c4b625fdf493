"""Word vectors from a file: a word and its numbers a line, as GloVe and fastText write them."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.artifacts.errors import InputError


def read_word_vectors(path: Path, wanted: Mapping[str, int], width: int) -> dict[int, Array]:
    """The vectors (width,) of those of the wanted words that the file has, by the words' numbers.

    Files that tell case apart know some words only with capitals: "Paris" then stands for "paris". Of a word that is there
    twice, the first counts: these files begin with the frequent.
    """
    exact: dict[int, Array] = {}
    lowered: dict[int, Array] = {}
    try:
        with path.open(encoding="utf-8", errors="replace", newline="\n") as lines:
            for at, line in enumerate((line.rstrip(" \r\n") for line in lines), 1):
                if line.count(" ") != width and _passed_over(path, at, line, width):
                    continue
                word, *fields = line.split(" ")
                found, number = (exact, wanted.get(word)) if word in wanted else (lowered, wanted.get(word.lower()))
                if number is not None and number not in found:
                    found[number] = _parsed(path, at, fields)
    except OSError as error:
        raise InputError(f"word_vectors = {str(path)!r} cannot be read ({error.strerror})") from None
    return lowered | exact


def _passed_over(path: Path, at: int, line: str, width: int) -> bool:
    """Whether a line of another length is fastText's first ("count width"), empty, or of a word with spaces in it."""
    fields = line.split(" ")
    header = at == 1 and len(fields) == 2 and all(field.isdecimal() for field in fields)
    if not line or (header and int(fields[1]) == width):
        return True
    if len(fields) > width + 1 and not all(map(_is_number, fields[1:-width])):  # GloVe has ". . ." among its words
        return True
    found = int(fields[1]) if header else len(fields) - 1
    raise InputError(
        f"{path} line {at}: vectors of {found} numbers where word_width = {width}: set [match] word_width to what the file has"
    )


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _parsed(path: Path, at: int, fields: list[str]) -> Array:
    try:
        vector = np.array(fields, np.float32)
    except ValueError:
        wrong = next(field for field in fields if not _is_number(field))
        raise InputError(f"{path} line {at}: {wrong[:40]!r} is not a number: each line is a word and its numbers") from None
    if not np.isfinite(vector).all():
        raise InputError(f"{path} line {at}: a vector holds numbers that are not finite")
    return vector
