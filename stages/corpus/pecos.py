"""The folder that X-Transformer and PECOS publish: texts, one a line, and the label matrix of each part.

The published texts hold empty ones, and documents without labels. Rows cannot be dropped without breaking the
comparison with published results, so they are kept and counted.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from xbert.artifacts.errors import InputError
from xbert.stages.corpus.documents import DIGEST, Documents, digest, strings_of
from xbert.stages.corpus.lines import TextFile
from xbert.stages.corpus.notes import Notes
from xbert.stages.corpus.npz import NpzRows

# PECOS writes X.trn.txt, X-Transformer train_raw_texts.txt, AttentionXML (whose texts both took over) train_texts.txt.
_TEXTS = {
    "train": ("X.trn.txt", "train_raw_texts.txt", "train_texts.txt"),
    "valid": ("X.val.txt", "valid_raw_texts.txt", "valid_texts.txt"),
    "test": ("X.tst.txt", "test_raw_texts.txt", "test_texts.txt"),
}
_MATRICES = {"train": "Y.trn.npz", "valid": "Y.val.npz", "test": "Y.tst.npz"}
_NAMES = ("output-items.txt", "label_map.txt")
_BLOCK_BYTES, _BLOCK_DOCS = 1 << 23, 1 << 13


def find_part(folder: Path, part: str) -> tuple[Path, Path] | None:
    """The text file and the label matrix of a part; None where the folder has neither; one alone is an error."""
    texts, matrix = _first(folder, _TEXTS[part]), _first(folder, (_MATRICES[part],), packed=False)
    if texts is None and matrix is None:
        return None
    if texts is None:
        raise InputError(f"{folder} has {_MATRICES[part]} but no texts ({' or '.join(_TEXTS[part])})")
    if matrix is None:
        raise InputError(f"{folder} has {texts.name} but no {_MATRICES[part]}")
    return texts, matrix


def find_names(folder: Path) -> Path | None:
    """The file with the labels' names, if the folder has one."""
    return _first(folder, _NAMES)


def _first(folder: Path, names: tuple[str, ...], packed: bool = True) -> Path | None:
    candidates = [folder / name for each in names for name in ((each, f"{each}.gz") if packed else (each,))]
    return next((path for path in candidates if path.is_file()), None)


def read_part(texts: TextFile, rows: NpzRows, notes: Notes) -> Iterator[Documents]:
    """The documents of a part: line i of the texts has row i of the matrix."""
    lines, done = texts.lines(), 0
    while block := _some_lines(lines):
        done += len(block)
        if len(block) > rows.left:
            done += sum(1 for _ in lines)
            break
        Y, repeated = rows.take(len(block))
        notes.repeated_labels += repeated
        digests = np.frombuffer(b"".join(map(digest, block)), DIGEST)
        yield Documents(Y, strings_of(block), None, digests, digests)
    if done != rows.n_rows:
        raise InputError(f"{texts.name} has {done} texts, its label matrix {rows.n_rows} rows: they do not belong together")


def _some_lines(lines: Iterator[tuple[int, str]]) -> list[bytes]:
    block: list[bytes] = []
    size = 0
    for _, line in islice(lines, _BLOCK_DOCS):
        block.append(line.encode("utf-8"))
        size += len(block[-1])
        if size >= _BLOCK_BYTES:
            break
    return block
