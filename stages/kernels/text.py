"""From the bytes of a document to the 64-bit hashes of its terms.

Text is UTF-8. `classes` tells of every code point what it is after lower-casing: `code << 2 | space << 1 | word`; it
may hold the 128 ASCII ones alone where the text is ASCII. Beyond its end a character is itself, no word and no space.
A word is a run of word characters, as in the expression `\\w+`.

A term is known by its hash alone: two of n terms share one with a probability of about n^2 / 2^65, one in a million for
six million terms. Words and runs of characters start from seeds of their own, so "ab" the word is not "ab" the run.
"""

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.stages.kernels.jit import kernel

WORD, SPACE = np.uint32(1), np.uint32(2)
RULES = 4  # word_ngrams, min_length, char_min, char_ngrams: the int64 array called `rule`
_CODE = np.uint32(2)
_ONE = np.uint64(1)
_WORD_SEED = np.uint64(0x243F6A8885A308D3)
_CHAR_SEED = np.uint64(0x13198A2E03707344)
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_JOIN = np.uint64(0xD6E8FEB86659FD93)
_UP, _DOWN, _HALF, _TAIL = np.uint64(5), np.uint64(59), np.uint64(32), np.uint64(29)


@kernel
def _step(h: np.uint64, kind: np.uint32) -> np.uint64:
    """One more character: a bijection of the state for every character, turned so that high bits reach the low ones."""
    return (((h << _UP) | (h >> _DOWN)) ^ np.uint64(kind >> _CODE)) * _FACTOR


@kernel
def _finish(h: np.uint64) -> np.uint64:
    """Spread the state over all bits; 0 is kept for an empty slot."""
    h = (h ^ (h >> _HALF)) * _JOIN
    h = h ^ (h >> _TAIL)
    return h if h != 0 else _ONE


@kernel
def next_character(text: Array, i: int, end: int, classes: Array) -> tuple[np.uint32, int]:
    """The class of the character at `i`, and where the next one starts; bytes that are not UTF-8 are no word."""
    lead = np.int64(text[i])
    if lead < 128:
        return classes[lead], i + 1
    size = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    if i + size > end:
        return np.uint32(0), end
    code = lead & (0x7F >> size)
    for j in range(1, size):
        code = (code << 6) | (np.int64(text[i + j]) & 0x3F)
    if code >= len(classes):
        return np.uint32(code) << _CODE, i + size
    return classes[code], i + size


@kernel
def _scan_words(
    text: Array, start: int, end: int, classes: Array, shortest: int, hashes: Array, starts: Array, ends: Array
) -> int:
    """The hash and the place of every word of at least `shortest` characters; how many there are."""
    n, i, length, first = 0, start, 0, start
    h = _WORD_SEED
    while i < end:
        at = i
        byte = text[i]
        if byte < 128:
            kind = classes[byte]
            i += 1
        else:
            kind, i = next_character(text, i, end, classes)
        if kind & WORD:
            if length == 0:
                first = at
                h = _WORD_SEED
            h = _step(h, kind)
            length += 1
        elif length:
            if length >= shortest:
                hashes[n], starts[n], ends[n] = _finish(h), first, at
                n += 1
            length = 0
    if length and length >= shortest:
        hashes[n], starts[n], ends[n] = _finish(h), first, end
        n += 1
    return n


@kernel
def _join_words(hashes: Array, n_words: int, longest: int) -> int:
    """Append the hashes of all pairs, then of all triples: each from the one a word shorter and the next word."""
    n, shorter = n_words, 0
    for size in range(2, longest + 1):
        begin = n
        for t in range(n_words - size + 1):
            hashes[n] = _finish(hashes[shorter + t] * _FACTOR + hashes[t + size - 1])
            n += 1
        shorter = begin
    return n


@kernel
def _scan_characters(
    text: Array,
    start: int,
    end: int,
    classes: Array,
    shortest: int,
    longest: int,
    hashes: Array,
    n: int,
    letters: Array,
    gram_at: Array,
    gram_size: Array,
) -> int:
    """Append the hashes of the runs of characters of each word between spaces, with one space on either side.

    As scikit-learn's char_wb: a word shorter than the shortest run is one run.
    """
    i, m, g = start, 0, 0
    space = np.uint32(32) << _CODE
    while i < end:
        kind, i = next_character(text, i, end, classes)
        if kind & SPACE:
            continue
        first = m
        letters[m] = space
        m += 1
        while not kind & SPACE:
            letters[m] = kind
            m += 1
            if i == end:
                break
            kind, i = next_character(text, i, end, classes)
        letters[m] = space
        m += 1
        least = min(shortest, m - first)
        for at in range(first, m - least + 1):
            h = _CHAR_SEED
            for j in range(at, min(at + longest, m)):
                h = _step(h, letters[j])
                if j - at + 1 >= least:
                    hashes[n], gram_at[g], gram_size[g] = _finish(h), at, j - at + 1
                    n += 1
                    g += 1
    return n


@kernel
def roomy(array: Array, used: int, needed: int) -> Array:
    """The array, or a larger copy of what is used of it."""
    if needed <= len(array):
        return array
    wider = np.empty(max(2 * len(array), needed), array.dtype)
    for i in range(used):  # a loop, since the compiler takes seconds over an assignment between slices
        wider[i] = array[i]
    return wider


@kernel
def scan_buffers(offsets: Array, rule: Array) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Room for the terms of the longest document: hashes, starts, ends, letters, gram_at, gram_size."""
    longest = 0
    for doc in range(len(offsets) - 1):
        longest = max(longest, offsets[doc + 1] - offsets[doc])
    n_words = longest // (max(rule[1], 1) + 1) + 1 if rule[0] > 0 else 0
    n_letters = 2 * longest + 2 if rule[3] > 0 else 0
    n_grams = n_letters * (rule[3] - rule[2] + 1) if rule[3] > 0 else 0
    return (
        np.empty(n_words * rule[0] + n_grams, np.uint64),
        np.empty(n_words, np.int64),
        np.empty(n_words, np.int64),
        np.empty(n_letters, np.uint32),
        np.empty(n_grams, np.int64),
        np.empty(n_grams, np.int64),
    )


@kernel
def scan_document(
    text: Array,
    start: int,
    end: int,
    classes: Array,
    rule: Array,
    hashes: Array,
    starts: Array,
    ends: Array,
    letters: Array,
    gram_at: Array,
    gram_size: Array,
) -> tuple[int, int, int]:
    """Fill the buffers: words first, then pairs, triples, and runs of characters.

    Gives the number of words, of terms made of words, and of all terms.
    """
    n_words, n_joined = 0, 0
    if rule[0] > 0:
        n_words = _scan_words(text, start, end, classes, rule[1], hashes, starts, ends)
        n_joined = _join_words(hashes, n_words, rule[0])
    n = n_joined
    if rule[3] > 0:
        n = _scan_characters(text, start, end, classes, rule[2], rule[3], hashes, n, letters, gram_at, gram_size)
    return n_words, n_joined, n
