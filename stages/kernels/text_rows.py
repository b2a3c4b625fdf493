"""From counts to rows of TF-IDF: weighted, of unit length, in the order of the terms.

A row is gathered in a scratch of three arrays, all zero between rows: `tf` counts by term; `bits` has one bit a term
and `tops` one bit a word of `bits`. Walking the bits gives the terms in order without sorting.
"""

import math

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.stages.kernels.jit import kernel
from xbert.stages.kernels.text import roomy, scan_buffers, scan_document

N_LOGS = 256  # counts whose weight is looked up
_ONE, _SIX, _TWELVE, _LOW_SIX, _SHIFT = np.uint64(1), np.uint64(6), np.uint64(12), np.uint64(63), np.uint64(58)
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_LOWEST = np.zeros(64, np.int64)  # position of a lone bit, by the top six bits of its product with the constant
for _position in range(64):
    _LOWEST[((int(_DE_BRUIJN) << _position) & 0xFFFFFFFFFFFFFFFF) >> 58] = _position


@kernel
def _add(number: int, count: int, tf: Array, bits: Array, tops: Array) -> None:
    """Count a term of the row at hand. Without a branch and without signs: three times as fast as with them."""
    at = np.uint64(number)
    tf[at] += count
    bits[at >> _SIX] |= _ONE << (at & _LOW_SIX)
    tops[at >> _TWELVE] |= _ONE << ((at >> _SIX) & _LOW_SIX)


@kernel
def _emit(idf: Array, logs: Array, tf: Array, bits: Array, tops: Array, indices: Array, data: Array, n: int) -> int:
    """Write the row at hand from entry n on, and clear the scratch; the new end.

    Without `logs` a count is its own weight. Sums are in double precision and in term order: the same in any kernel.
    """
    first, squares = n, 0.0
    for top in range(len(tops)):
        words = tops[top]
        tops[top] = 0
        while words:
            lone = words & (~words + _ONE)
            words ^= lone
            word = (top << 6) | _LOWEST[(lone * _DE_BRUIJN) >> _SHIFT]
            rest = bits[word]
            bits[word] = 0
            while rest:
                lone = rest & (~rest + _ONE)
                rest ^= lone
                number = (word << 6) | _LOWEST[(lone * _DE_BRUIJN) >> _SHIFT]
                count = tf[number]
                tf[number] = 0
                if len(logs) == 0:
                    weight = float(count)
                elif count < len(logs):
                    weight = logs[count]
                else:
                    weight = 1.0 + math.log(count)
                value = weight * idf[number]
                squares += value * value
                indices[n], data[n] = number, value
                n += 1
    scale = 1.0 / math.sqrt(squares) if squares > 0 else 1.0
    for entry in range(first, n):
        data[entry] = data[entry] * scale
    return n


@kernel
def weigh_rows(
    lengths: Array,
    terms: Array,
    counts: Array,
    numbers: Array,
    idf: Array,
    logs: Array,
    tf: Array,
    bits: Array,
    tops: Array,
) -> tuple[Array, Array, Array]:
    """Rows of counts in a batch's own terms -> rows of TF-IDF; `numbers` has each term's number, -1 if dropped."""
    indptr = np.zeros(len(lengths) + 1, np.int64)
    indices, data = np.empty(len(terms), np.int32), np.empty(len(terms), np.float32)
    n, entry = 0, 0
    for doc in range(len(lengths)):
        for _ in range(lengths[doc]):
            number = numbers[terms[entry]]
            if number >= 0:
                _add(number, counts[entry], tf, bits, tops)
            entry += 1
        n = _emit(idf, logs, tf, bits, tops, indices, data, n)
        indptr[doc + 1] = n
    return indptr, indices, data


@kernel
def transform_rows(
    text: Array,
    offsets: Array,
    classes: Array,
    rule: Array,
    slots: Array,
    numbers: Array,
    idf: Array,
    logs: Array,
    tf: Array,
    bits: Array,
    tops: Array,
) -> tuple[Array, Array, Array]:
    """Documents -> rows of TF-IDF over the terms of a vocabulary; indices and data may be longer than the rows."""
    n_docs = len(offsets) - 1
    hashes, starts, ends, letters, gram_at, gram_size = scan_buffers(offsets, rule)
    mask = np.uint64(len(slots) - 1)
    indptr = np.zeros(n_docs + 1, np.int64)
    room = len(hashes) if n_docs == 1 else (offsets[n_docs] - offsets[0]) // 8 + len(hashes)
    indices, data = np.empty(room, np.int32), np.empty(room, np.float32)
    n = 0
    for doc in range(n_docs):
        _, _, n_found = scan_document(
            text, offsets[doc], offsets[doc + 1], classes, rule, hashes, starts, ends, letters, gram_at, gram_size
        )
        for k in range(n_found):
            h = hashes[k]
            slot = h & mask
            found = slots[slot]
            while found != h and found != 0:  # noqa: PLR1714 - a tuple is slower in a kernel
                slot = (slot + _ONE) & mask
                found = slots[slot]
            if found == h:
                _add(numbers[slot], 1, tf, bits, tops)
        indices, data = roomy(indices, n, n + n_found), roomy(data, n, n + n_found)
        n = _emit(idf, logs, tf, bits, tops, indices, data, n)
        indptr[doc + 1] = n
    return indptr, indices, data
