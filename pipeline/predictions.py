"""A stream of documents in, a stream of JSON lines out."""

import io
import json
import re
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from xbert.artifacts.errors import InputError
from xbert.artifacts.sparse import Sparse
from xbert.pipeline.config import available_cores
from xbert.pipeline.tagger import Tagger, Tags
from xbert.stages.neural.names import AUTO

_PAIR = re.compile(r"[0-9]{1,18}:\+?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_LARGEST = 1e18  # its square, summed over a document, still fits a float32


def tag_stream(
    model: Path, source: Path, k: int, threads: int, batch: int, device: str = AUTO, precision: str = AUTO
) -> Iterator[str]:
    """A JSON line for each document of `source` ("-" is standard input), in order, as soon as its batch is tagged."""
    threads = threads or available_cores()
    tagger = Tagger.load(model, device, precision)
    tagger.warm_up()
    try:
        with nullcontext(sys.stdin.buffer) if str(source) == "-" else source.open("rb") as stream:
            if stream.isatty():
                batch = 1  # somebody is typing: answer every line
            documents = _documents(stream, str(source))
            while block := list(islice(documents, batch)):
                yield from _tag(tagger, block, k, threads, str(source))
    except OSError as error:
        raise InputError(f"cannot read {source}: {error.strerror or error}") from None


def _documents(stream: BinaryIO | io.BufferedIOBase, name: str) -> Iterator[dict[str, Any]]:
    """Lines of text, or JSON objects if the first line is one; empty lines of text are documents too."""
    as_json: bool | None = None
    for number, raw in enumerate(stream, 1):
        try:
            line = raw.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise InputError(f"{name} line {number}: not UTF-8 ({error.reason}); convert the file first") from None
        if as_json is None:
            line = line.removeprefix("\ufeff")
            as_json = line.lstrip().startswith("{")
        if not as_json:
            yield {"text": line, "line": number}
        elif line.strip():
            yield _json_document(line, name, number)


def _json_document(line: str, name: str, number: int) -> dict[str, Any]:
    try:
        document = json.loads(line, parse_constant=_refuse_constant)
        json.dumps(document, ensure_ascii=False).encode("utf-8")  # half a surrogate pair could not be printed again
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} line {number}: not valid JSON ({error})") from None
    text = document.get("text") if isinstance(document, dict) else None
    if not isinstance(text, str):
        raise InputError(f"{name} line {number}: 'text' is missing or not a string")
    return {"text": text, "line": number, **({"id": document["id"]} if "id" in document else {})}


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not a JSON value")


def _tag(tagger: Tagger, block: list[dict[str, Any]], k: int, threads: int, name: str) -> Iterator[str]:
    if tagger.takes_text:
        found = tagger.predict([document["text"] for document in block], k, threads)
    else:
        found = tagger.predict_rows(_rows(block, tagger.n_terms, name), k, threads)
    for document, tags in zip(block, found, strict=True):
        yield json.dumps(_answer(document, tags), ensure_ascii=False)


def _answer(document: dict[str, Any], tags: Tags) -> dict[str, Any]:
    labels = [{"id": tag.id, "text": tag.text, "score": round(tag.score, 6)} for tag in tags]
    identity = {"id": document["id"]} if "id" in document else {}
    return {**identity, "labels": labels, **({"note": tags.note} if tags.note else {})}


def _rows(block: list[dict[str, Any]], n_terms: int, name: str) -> Sparse:
    """For models of given features, a document is `feature:value feature:value`."""
    indptr, indices, data = [0], [], []
    for document in block:
        where = f"{name} line {document['line']}"
        cells = document["text"].split()
        if not all(_PAIR.fullmatch(cell) for cell in cells):
            raise InputError(f"{where}: not of the form feature:value feature:value, with values of at least 0")
        pairs = sorted((int(f), float(v)) for f, v in (cell.split(":") for cell in cells))
        if any(f >= n_terms or v > _LARGEST for f, v in pairs):
            raise InputError(f"{where}: features are 0..{n_terms - 1}, and their values at most {_LARGEST:g}")
        if len({f for f, _ in pairs}) < len(pairs):
            raise InputError(f"{where}: a feature is there twice")
        indices += [f for f, _ in pairs]
        data += [v for _, v in pairs]
        indptr.append(len(indices))
    return Sparse(np.array(indptr, np.int64), np.array(indices, np.int32), np.array(data, np.float32), n_terms)
