"""Documents in batches of a few megabytes, as the kernels read them; batches done in order by several threads."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

import numpy as np

from xbert.artifacts.arrays import Array, Strings
from xbert.stages.features.analysis import frozen
from xbert.stages.features.characters import CONTEXTUAL

BATCH_BYTES = 4 << 20
_PAIRS = tuple(tuple(character.encode()) for character in CONTEXTUAL)
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Batch:
    """The UTF-8 of some documents, end to end, in which every character can be lower-cased by itself."""

    text: Array  # uint8, read-only
    offsets: Array  # int64, read-only; one more than documents
    is_ascii: bool


def cut(offsets: Array, size: int = BATCH_BYTES) -> Iterator[tuple[int, int]]:
    """Documents (start, stop) of about `size` bytes together; the cuts depend on the documents alone."""
    start, n_docs = 0, len(offsets) - 1
    while start < n_docs:
        stop = int(np.searchsorted(offsets, offsets[start] + size, "right")) - 1
        stop = min(max(stop, start + 1), n_docs)
        yield start, stop
        start = stop


def cut_texts(texts: Sequence[str], size: int = BATCH_BYTES) -> Iterator[tuple[int, int]]:
    """As `cut`, by characters."""
    return cut(np.fromiter(accumulate(map(len, texts), initial=0), np.int64, len(texts) + 1), size)


def batch_of_strings(strings: Strings, start: int, stop: int, lowercase: bool) -> Batch:
    """Documents start..stop of a table: its own bytes, unless a character has to be lower-cased with its neighbours."""
    offsets = strings.offsets[start : stop + 1]
    text, offsets = frozen(strings.blob[offsets[0] : offsets[-1]]), np.asarray(offsets - offsets[0])
    is_ascii = len(text) == 0 or bool(text.max() < 128)
    documents = [] if is_ascii or not lowercase else _contextual(text, offsets)
    if documents:
        raw = text.tobytes()
        parts = [raw[offsets[i] : offsets[i + 1]] for i in range(len(offsets) - 1)]
        for i in documents:
            parts[i] = parts[i].decode("utf-8").lower().encode("utf-8")
        text, offsets = np.frombuffer(b"".join(parts), np.uint8), _offsets(parts)
    return Batch(text, frozen(offsets), is_ascii)


def batch_of_texts(texts: Sequence[str], lowercase: bool) -> Batch:
    """A few documents; those that are not ASCII are encoded one by one."""
    joined = texts[0] if len(texts) == 1 else "".join(texts)
    if joined.isascii():
        offsets = np.fromiter(accumulate(map(len, texts), initial=0), np.int64, len(texts) + 1)
        offsets.flags.writeable = False
        return Batch(np.frombuffer(joined.encode(), np.uint8), offsets, True)
    if lowercase and any(character in joined for character in CONTEXTUAL):
        texts = [text.lower() for text in texts]
    # A lone surrogate, which JSON may carry, has no UTF-8: it is passed on, and is no word character.
    parts = [text.encode("utf-8", "surrogatepass") for text in texts]
    return Batch(np.frombuffer(b"".join(parts), np.uint8), frozen(_offsets(parts)), False)


def _contextual(text: Array, offsets: Array) -> list[int]:
    """The documents that have a character of two bytes which only Python can lower-case."""
    found = []
    for lead, trail in _PAIRS:
        at = np.flatnonzero(text[:-1] == lead)
        found.append(at[text[at + 1] == trail])
    return [int(i) for i in np.unique(np.searchsorted(offsets, np.concatenate(found), "right") - 1)]


def _offsets(parts: list[bytes]) -> Array:
    return np.fromiter(accumulate(map(len, parts), initial=0), np.int64, len(parts) + 1)


def in_order(function: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Iterator[Result]:
    """`map` with threads: results in the order of the items, only a few of them computed ahead."""
    if threads <= 1:
        yield from map(function, items)
        return
    pool = ThreadPoolExecutor(threads)
    try:
        waiting: deque[Future[Result]] = deque()
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > threads + 1:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
