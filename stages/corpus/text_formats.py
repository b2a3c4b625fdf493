"""Formats with one document a line: JSON lines, Annif's TSV, fastText.

A document without text or without labels is an error in all of them, in every split: a person made these files, and can
mend or drop the line. A blank line is no document.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from xbert.artifacts.errors import InputError
from xbert.artifacts.sparse import Sparse
from xbert.stages.corpus.documents import DIGEST, Documents, digest, strings_of
from xbert.stages.corpus.lines import TextFile
from xbert.stages.corpus.vocabulary import Vocabulary

TEXT_FORMATS = ("jsonl", "annif", "fasttext")
_BLOCK_BYTES, _BLOCK_DOCS = 1 << 23, 1 << 15


@dataclass(frozen=True)
class Keys:
    """Where a format keeps what: keys of JSON lines, the prefix of fastText's labels."""

    text: str = "text"  # several, divided by commas, are joined by a newline
    labels: str = "labels"
    group: str = ""
    prefix: str = "__label__"


class Record(NamedTuple):
    """One document as its line tells it."""

    line: int
    text: str
    labels: list[str]
    group: str | None = None


def read_records(file: TextFile, format: str, keys: Keys) -> Iterator[Record]:
    """The documents of a file in one of the text formats."""
    if format == "jsonl":
        return _read_jsonl(file, keys)
    return _read_annif(file) if format == "annif" else _read_fasttext(file, keys.prefix)


def gather(records: Iterable[Record], file: TextFile, vocabulary: Vocabulary) -> Iterator[Documents]:
    """Records as blocks of documents."""
    texts: list[bytes] = []
    rows: list[list[int]] = []
    units: list[bytes] = []
    size = 0
    for record in records:
        texts.append(file.encoded(record.line, record.text))
        rows.append(vocabulary.numbers(record.labels, file, record.line))
        if record.group is not None:
            units.append(digest(file.encoded(record.line, record.group)))
        size += len(texts[-1])
        if size >= _BLOCK_BYTES or len(texts) >= _BLOCK_DOCS:
            yield _block(texts, rows, units, len(vocabulary))
            texts, rows, units, size = [], [], [], 0
    if texts:
        yield _block(texts, rows, units, len(vocabulary))


def _block(texts: list[bytes], rows: list[list[int]], units: list[bytes], n_labels: int) -> Documents:
    digests = np.frombuffer(b"".join(map(digest, texts)), DIGEST)
    return Documents(
        Sparse.of_rows(rows, n_labels),
        strings_of(texts),
        None,
        digests,
        np.frombuffer(b"".join(units), DIGEST) if units else digests,
    )


def read_object(file: TextFile, number: int, line: str) -> dict[str, Any]:
    """The JSON object on a line."""
    try:
        content = json.loads(line)
    except json.JSONDecodeError as error:
        raise file.error(number, f"broken JSON ({error.msg.removesuffix(' at')} at column {error.colno})") from None
    except (ValueError, RecursionError) as error:
        raise file.error(number, f"JSON that cannot be read ({error})") from None
    if not isinstance(content, dict):
        raise file.error(number, 'not a JSON object; every line must be one, like {"text": ..., "labels": [...]}')
    return content


def _read_jsonl(file: TextFile, keys: Keys) -> Iterator[Record]:
    text_keys = [key.strip() for key in keys.text.split(",")]
    for number, line in file.lines():
        if not line or line.isspace():
            continue
        content = read_object(file, number, line)
        text = "\n".join([_string(file, number, content, key) for key in text_keys])
        if not text or text.isspace():
            raise file.error(number, f"{keys.text!r} is empty")
        labels = _labels(file, number, content, keys.labels)
        yield Record(number, text, labels, _group(file, number, content, keys.group) if keys.group else None)


def _string(file: TextFile, number: int, content: dict[str, Any], key: str) -> str:
    value = content.get(key)
    if value is None:
        raise file.error(number, f"{key!r} is missing")
    if not isinstance(value, str):
        raise file.error(number, f"{key!r} must be a string, not {_shown(value)}")
    return value


def _labels(file: TextFile, number: int, content: dict[str, Any], key: str) -> list[str]:
    labels = content.get(key)
    if labels is None:
        raise file.error(number, f"{key!r} is missing")
    if not isinstance(labels, list):
        raise file.error(number, f"{key!r} must be a list of strings, not {_shown(labels)}")
    if not labels:
        raise file.error(number, f"{key!r} is empty")
    for label in labels:
        if not isinstance(label, str):
            raise file.error(number, f"{key!r} holds {_shown(label)}; labels must be strings")
        if not label or label.isspace():
            raise file.error(number, f"{key!r} holds an empty string")
    return labels


def _group(file: TextFile, number: int, content: dict[str, Any], key: str) -> str:
    value = content.get(key)
    if value is None:
        raise file.error(number, f"{key!r} is missing, the key that data.group names")
    if not isinstance(value, str | int):
        raise file.error(number, f"{key!r} must be a string or a whole number, not {_shown(value)}")
    return str(value)


def _shown(value: Any) -> str:
    shown = json.dumps(value)
    return shown if len(shown) <= 40 else f"{shown[:37]}..."


def _read_annif(file: TextFile) -> Iterator[Record]:
    """`text TAB <uri> <uri>`, as in Annif's short text corpora; the angle brackets may be left out."""
    for number, line in file.lines():
        if not line or line.isspace():
            continue
        text, tab, subjects = line.partition("\t")
        if not tab:
            raise file.error(number, "no TAB between text and labels")
        if not text or text.isspace():
            raise file.error(number, "the text is empty")
        labels = [without_brackets(uri) for uri in subjects.split()]
        if not labels:
            raise file.error(number, "the labels are missing")
        if not all(labels):
            raise file.error(number, "a label is empty")
        yield Record(number, text.strip(), labels)


def without_brackets(uri: str) -> str:
    """The URI in `<uri>`, or what is given."""
    return uri[1:-1] if uri.startswith("<") and uri.endswith(">") else uri


def _read_fasttext(file: TextFile, prefix: str) -> Iterator[Record]:
    """`__label__a __label__b text`. As in fastText, a label may also stand between or after the words."""
    if not prefix:
        raise InputError("data.label_prefix is empty: fastText labels cannot be told from words")
    for number, line in file.lines():
        if not line or line.isspace():
            continue
        labels, rest = [], line.strip()
        while rest.startswith(prefix):
            first, *after = rest.split(maxsplit=1)
            labels.append(first.removeprefix(prefix))
            rest = after[0] if after else ""
        if prefix in rest:
            words = rest.split()
            labels += [word.removeprefix(prefix) for word in words if word.startswith(prefix)]
            rest = " ".join(word for word in words if not word.startswith(prefix))
        if not labels:
            raise file.error(number, f"no label (a word that starts with {prefix})")
        if not all(labels):
            raise file.error(number, f"a label has no name after {prefix}")
        if not rest:
            raise file.error(number, "the text is empty")
        yield Record(number, rest, labels)
