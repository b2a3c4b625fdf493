"""Counting terms: the terms of a batch in a table of its own, then batch by batch into the table of all."""

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.stages.kernels.jit import kernel
from xbert.stages.kernels.text import next_character, roomy, scan_buffers, scan_document

_PIECE = 8192  # terms looked up between two looks at the room left
_CODE = np.uint32(2)
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
_HIGH = np.uint64(0xFFFFFFFF00000000)


@kernel
def _wider_table(table: Array, needed: int) -> Array:
    """A table of (hash, mark) pairs that is at most half full with `needed` terms in it."""
    size = len(table) // 2
    while size < 2 * needed:
        size *= 2
    wider = np.zeros(2 * size, np.uint64)
    mask = np.uint64(size - 1)
    for at in range(0, len(table), 2):
        h = table[at]
        if h != 0:
            slot = h & mask
            while wider[2 * slot] != 0:
                slot = (slot + np.uint64(1)) & mask
            wider[2 * slot], wider[2 * slot + 1] = h, table[at + 1]
    return wider


@kernel
def _write_character(kind: np.uint32, blob: Array, m: int) -> int:
    """Append one character as UTF-8; the new end."""
    code = np.int64(kind >> _CODE)
    if code < 0x80:
        blob[m] = code
        return m + 1
    size = 2 if code < 0x800 else 3 if code < 0x10000 else 4
    for j in range(size - 1, 0, -1):
        blob[m + j] = 0x80 | (code & 0x3F)
        code >>= 6
    blob[m] = ((0xF00 >> size) & 0xFF) | code
    return m + size


@kernel
def _write_words(text: Array, classes: Array, starts: Array, ends: Array, first: int, size: int, blob: Array, m: int) -> int:
    """Append `size` words, lower-cased as they were hashed, with one space between them; the new end."""
    for t in range(first, first + size):
        if t > first:
            blob[m] = 32
            m += 1
        i, end = starts[t], ends[t]
        while i < end:
            kind, i = next_character(text, i, end, classes)
            m = _write_character(kind, blob, m)
    return m


@kernel
def count_terms(
    text: Array, offsets: Array, classes: Array, rule: Array
) -> tuple[Array, Array, Array, Array, Array, Array, Array]:
    """The rows of a batch in term numbers of its own, in order of first appearance, and what these terms are.

    Gives per document its number of terms; per entry the term and its count; per term its hash and the number of
    documents that have it; the terms' text and its offsets.
    """
    n_docs = len(offsets) - 1
    hashes, starts, ends, letters, gram_at, gram_size = scan_buffers(offsets, rule)
    # A slot is (hash, term << 32 | entry + 1): entries grow from document to document, so that the entry also tells
    # whether the term has been seen in this one.
    table = np.zeros(4 * _PIECE, np.uint64)
    lengths = np.empty(n_docs, np.int32)
    terms, counts = np.empty(_PIECE, np.int32), np.empty(_PIECE, np.int32)
    keys, origins = np.empty(_PIECE, np.uint64), np.empty(_PIECE, np.int64)
    blob, term_offsets = np.empty(16 * _PIECE, np.uint8), np.zeros(_PIECE + 1, np.int64)
    nnz, n_terms, n_bytes = 0, 0, 0
    for doc in range(n_docs):
        n_words, n_joined, n = scan_document(
            text, offsets[doc], offsets[doc + 1], classes, rule, hashes, starts, ends, letters, gram_at, gram_size
        )
        terms, counts = roomy(terms, nnz, nnz + n), roomy(counts, nnz, nnz + n)
        begins, row, known = nnz, np.uint64(nnz), n_terms
        for begin in range(0, n, _PIECE):
            stop = min(begin + _PIECE, n)
            most = n_terms + stop - begin
            if 4 * most > len(table):
                table = _wider_table(table, most)
            keys, origins = roomy(keys, n_terms, most), roomy(origins, n_terms, most)
            mask = np.uint64(len(table) // 2 - 1)
            for k in range(begin, stop):
                h = hashes[k]
                slot = h & mask
                found = table[2 * slot]
                while found != h and found != 0:  # noqa: PLR1714 - a tuple is slower in a kernel
                    slot = (slot + np.uint64(1)) & mask
                    found = table[2 * slot]
                if found == 0:
                    table[2 * slot], mark = h, np.uint64(n_terms) << _HALF
                    keys[n_terms], origins[n_terms] = h, k
                    n_terms += 1
                else:
                    mark = table[2 * slot + 1]
                entry = mark & _LOW
                if entry > row:
                    counts[entry - np.uint64(1)] += 1
                else:
                    terms[nnz], counts[nnz] = mark >> _HALF, 1
                    nnz += 1
                    table[2 * slot + 1] = (mark & _HIGH) | np.uint64(nnz)
        lengths[doc] = nnz - begins
        term_offsets = roomy(term_offsets, known + 1, n_terms + 1)
        for term in range(known, n_terms):
            k = origins[term]
            if k < n_joined:
                size, first = 1, k
                while first >= n_words - size + 1:
                    first -= n_words - size + 1
                    size += 1
                blob = roomy(blob, n_bytes, n_bytes + 2 * (ends[first + size - 1] - starts[first]) + size)
                n_bytes = _write_words(text, classes, starts, ends, first, size, blob, n_bytes)
            else:
                at, size = gram_at[k - n_joined], gram_size[k - n_joined]
                blob = roomy(blob, n_bytes, n_bytes + 4 * size)
                for j in range(at, at + size):
                    n_bytes = _write_character(letters[j], blob, n_bytes)
            term_offsets[term + 1] = n_bytes
    documents = np.zeros(n_terms, np.int32)
    for place in range(nnz):
        documents[terms[place]] += 1
    return (
        lengths,
        terms[:nnz].copy(),
        counts[:nnz].copy(),
        keys[:n_terms].copy(),
        documents,
        blob[:n_bytes].copy(),
        term_offsets[: n_terms + 1].copy(),
    )


@kernel
def fill_slots(keys: Array, slots: Array, numbers: Array) -> None:
    """Enter the keys into an empty table in their order: slots are 0 and numbers -1 before."""
    mask = np.uint64(len(slots) - 1)
    for number in range(len(keys)):
        slot = keys[number] & mask
        while slots[slot] != 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot], numbers[slot] = keys[number], number


@kernel
def merge_terms(
    keys: Array,
    documents: Array,
    blob: Array,
    offsets: Array,
    slots: Array,
    numbers: Array,
    all_keys: Array,
    all_documents: Array,
    all_blob: Array,
    all_offsets: Array,
    n_known: int,
) -> tuple[Array, int]:
    """Enter a batch's terms into the table of all, which has room; their numbers there, and how many it now has."""
    mask = np.uint64(len(slots) - 1)
    found = np.empty(len(keys), np.int32)
    for term in range(len(keys)):
        h = keys[term]
        slot = h & mask
        while slots[slot] != h and slots[slot] != 0:
            slot = (slot + np.uint64(1)) & mask
        if slots[slot] == 0:
            slots[slot], numbers[slot] = h, n_known
            all_keys[n_known], all_documents[n_known] = h, 0
            m = all_offsets[n_known]
            for i in range(offsets[term], offsets[term + 1]):
                all_blob[m] = blob[i]
                m += 1
            n_known += 1
            all_offsets[n_known] = m
        found[term] = numbers[slot]
        all_documents[found[term]] += documents[term]
    return found, n_known


@kernel
def gather_terms(blob: Array, offsets: Array, order: Array) -> tuple[Array, Array]:
    """The text of these terms, one after the other, and its offsets."""
    ends = np.zeros(len(order) + 1, np.int64)
    for i in range(len(order)):
        ends[i + 1] = ends[i] + offsets[order[i] + 1] - offsets[order[i]]
    chosen = np.empty(ends[-1], np.uint8)
    for i in range(len(order)):
        shift = offsets[order[i]] - ends[i]
        for m in range(ends[i], ends[i + 1]):
            chosen[m] = blob[m + shift]
    return chosen, ends
