"""Splits that are made, not given: by hashes, so that the order of a file does not matter and no text is in two."""

import hashlib
from pathlib import Path

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.artifacts.errors import InputError
from xbert.artifacts.sparse import Sparse
from xbert.stages.corpus.documents import Documents, DocumentsWriter, SparseWriter

TRAIN = 0


def assign(units: Array, sizes: dict[str, int], seed: int) -> Array:
    """The split of every document: 0 for train, 1 for the first of `sizes`, 2 for the second ...

    Units (groups, or equal texts) are drawn in the order of their hashes and stay whole. One that would make a split
    larger than asked is passed over, so a split has exactly its size unless large units stand in the way. The first of
    `sizes` draws first: its documents do not depend on the others' sizes.
    """
    unique, inverse, counts = np.unique(units, return_inverse=True, return_counts=True)
    drawn = np.zeros(len(unique), np.int8)
    order = _drawing_order(unique, seed)
    for number, (name, size) in enumerate(sizes.items(), start=1):
        order = order[drawn[order] == TRAIN]
        chosen = _first_fit(order, counts, size)
        if len(order) - len(chosen) < 1 or not len(chosen):
            raise InputError(
                f"data.train has too few documents or groups to hold some out as {name}; "
                f"give data.{name}, or set data.{name}_fraction = 0"
            )
        drawn[chosen] = number
    return drawn[inverse]


def _drawing_order(units: Array, seed: int) -> Array:
    key = str(seed).encode()[:64]
    raw = units.astype("<u8").tobytes()
    hashes = [hashlib.blake2b(raw[i : i + 8], digest_size=8, key=key).digest() for i in range(0, len(raw), 8)]
    return np.argsort(np.frombuffer(b"".join(hashes), "<u8"), kind="stable")


def _first_fit(order: Array, counts: Array, size: int) -> Array:
    chosen, room = [], size
    for unit, count in zip(order.tolist(), counts[order].tolist(), strict=True):
        if count <= room:
            chosen.append(unit)
            room -= count
            if room == 0:
                break
    if not chosen and len(order):
        chosen = [int(order[np.argmin(counts[order])])]  # every unit is larger than the split: the smallest
    return np.array(chosen, np.int64)


def deal_out(
    table: Documents, names: list[str], split_of: Array, final: Array | None, n_labels: int, folder: Path
) -> dict[str, Documents]:
    """Copy a table's documents into the splits' files, in file order, giving labels their final numbers."""
    writers = [DocumentsWriter(name, folder, folder) for name in names]
    for start, stop in table.blocks():
        block = table.slice(start, stop)
        for number, writer in enumerate(writers):
            part = block.take(np.flatnonzero(split_of[start:stop] == number))
            Y = renumbered(part.Y, final, n_labels)
            writer.append(Documents(Y, part.texts, part.X, part.digests, part.units))
    return {name: writer.close() for name, writer in zip(names, writers, strict=True)}


def settle(table: Documents, name: str, final: Array | None, n_labels: int, folder: Path) -> Documents:
    """Give a table's labels their final numbers; its texts or features are in place already."""
    writer = SparseWriter(folder, f"{name}.Y", binary=True)
    for start, stop in table.blocks():
        writer.append(renumbered(table.Y.slice(start, stop), final, n_labels))
    return Documents(writer.close(n_labels), table.texts, table.X, table.digests, table.units)


def renumbered(Y: Sparse, final: Array | None, n_labels: int) -> Sparse:
    """The same rows with final label numbers, sorted again."""
    if final is None:
        return Sparse(Y.indptr, Y.indices, None, n_labels)
    cells = np.repeat(np.arange(Y.n_rows), Y.row_lengths()) * n_labels + final[Y.indices]
    cells.sort()
    return Sparse(Y.indptr, (cells % n_labels).astype(np.int32), None, n_labels)
