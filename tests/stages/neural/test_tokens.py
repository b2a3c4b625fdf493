"""What is read of a document, and in which company."""

import numpy as np
import pytest

from xbert.stages.neural.tokens import HEAD_TAIL, LONG, TRUNCATE, WINDOWS, Reading, similar


class Letters:
    """A token a letter; with something before and after, or nothing."""

    padding = 0

    def __init__(self, prefix=(), suffix=()):
        self.prefix, self.suffix = list(prefix), list(suffix)

    def tokenize(self, texts):
        return [np.frombuffer(text.encode(), np.uint8).astype(np.int32) for text in texts]


def spelt(reading, texts, tokenizer):
    """The pieces of each document as strings."""
    pieces = reading.pieces(texts, tokenizer)
    read = [bytes(pieces.tokens(i).astype(np.uint8)).decode() for i in range(len(pieces.indptr) - 1)]
    return [read[start:stop] for start, stop in zip(pieces.first[:-1], pieces.first[1:], strict=True)]


ENDS = Letters(b"<", b">")


def test_truncating_keeps_the_beginning():
    assert spelt(Reading(TRUNCATE, 6), ["abcdefgh", "abcd", "ab", ""], ENDS) == [["<abcd>"], ["<abcd>"], ["<ab>"], ["<>"]]


@pytest.mark.parametrize(("most", "expected"), [(6, "<abij>"), (7, "<abcij>"), (12, "<abcdefghij>"), (3, "<a>")])
def test_head_and_tail_keep_both_ends(most, expected):
    assert spelt(Reading(HEAD_TAIL, most), ["abcdefghij"], ENDS) == [[expected]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("abcdef", ["<abcdef>"]),
        ("abcdefg", ["<abcdef>", "<efg>"]),
        ("abcdefghij", ["<abcdef>", "<efghij>"]),
        ("abcdefghijk", ["<abcdef>", "<efghij>", "<ijk>"]),
        ("abcdefghijklmnopqrstuv", ["<abcdef>", "<efghij>", "<ijklmn>"]),
        ("", ["<>"]),
    ],
)
def test_windows_overlap_and_are_at_most_so_many(text, expected):
    assert spelt(Reading(WINDOWS, 8, windows=3, overlap=2), [text], ENDS) == [expected]


@pytest.mark.parametrize("seed", range(20))
def test_windows_against_a_plain_search(seed):
    rng = np.random.default_rng(seed)
    length, room, overlap, most = rng.integers([1, 1, 0, 1], [60, 12, 20, 9])
    tokens = np.arange(length)
    cut = Reading(WINDOWS, 99, int(most), int(overlap)).cut(tokens, int(room))
    expected, start, shared = [], 0, min(overlap, room // 2)
    while len(expected) < most:
        expected.append(tokens[start : start + room].tolist())
        if start + room >= length:
            break
        start += room - shared
    assert [piece.tolist() for piece in cut] == expected


def test_short_windows_get_on_however_large_the_overlap():
    pieces = Reading(WINDOWS, 6, windows=4, overlap=16).pieces(["abcdefghijkl"], ENDS)
    assert spelt(Reading(WINDOWS, 6, windows=4, overlap=16), ["abcdefghijkl"], ENDS) == [
        ["<abcd>", "<cdef>", "<efgh>", "<ghij>"]
    ]
    assert pieces.n_docs == 1


@pytest.mark.parametrize("long", LONG)
def test_there_is_always_something_to_read(long):
    pieces = Reading(long, 4).pieces(["", "ab", ""], Letters())
    assert pieces.lengths().tolist() == [1, 2, 1]
    assert pieces.tokens(0).tolist() == [Letters.padding]


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_how_many_are_cut_at_once_changes_nothing(batch):
    texts = ["abc", "", "abcdefghij", "x"]
    reading = Reading(WINDOWS, 5, windows=3, overlap=1)
    one, other = reading.pieces(texts, ENDS), reading.pieces(iter(texts), ENDS, batch)
    for name in ("indptr", "ids", "first"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_documents_can_be_taken_out():
    texts = ["abcdefghij", "xy", "klmnopq"]
    reading = Reading(WINDOWS, 5, windows=9, overlap=1)
    pieces, taken = reading.pieces(texts, ENDS), reading.pieces(texts[::-2], ENDS)
    found = pieces.take(np.array([2, 0]))
    for name in ("indptr", "ids", "first"):
        np.testing.assert_array_equal(getattr(found, name), getattr(taken, name))
    assert found.lengths().tolist() == [5, 5]
    assert pieces.take(np.array([], np.int64)).n_docs == 0


def test_no_documents_are_no_pieces():
    pieces = Reading(TRUNCATE, 5).pieces([], ENDS)
    assert pieces.n_docs == 0
    assert len(pieces.lengths()) == 0


@pytest.mark.parametrize("n_docs", [1, 7, 64, 1000])
@pytest.mark.parametrize("size", [1, 3, 8])
def test_batches_hold_every_document_once(n_docs, size):
    lengths = np.random.default_rng(1).integers(1, 100, n_docs)
    batches = similar(lengths, size, np.random.default_rng(0), among=4)
    assert sorted(np.concatenate(batches).tolist()) == list(range(n_docs))
    assert max(map(len, batches)) <= size
    assert len(batches) >= -(-n_docs // size)


def test_batches_are_the_same_for_the_same_random_numbers_and_others_for_others():
    lengths = np.random.default_rng(1).integers(1, 100, 200)
    first, again, other = (similar(lengths, 8, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert [batch.tolist() for batch in first] == [batch.tolist() for batch in again]
    assert [batch.tolist() for batch in first] != [batch.tolist() for batch in other]


def test_documents_of_a_batch_are_of_similar_length():
    lengths = np.random.default_rng(1).integers(1, 1000, 4096)
    spread = [np.ptp(lengths[batch]) for batch in similar(lengths, 16, np.random.default_rng(0))]
    assert np.mean(spread) < 30


class Worded(Letters):
    """A token a word: its length; and a record of how much text it was given."""

    def tokenize(self, texts):
        self.given = sum(map(len, texts))
        return [np.array([len(word) for word in text.split()], np.int32) for text in texts]


@pytest.mark.parametrize("seed", range(3))
def test_of_a_long_text_no_more_is_cut_than_is_read_and_the_tokens_are_the_same(seed):
    rng = np.random.default_rng(seed)
    texts = [" ".join("x" * n for n in rng.integers(1, 60, 400)) for _ in range(20)] + ["y" * 5000, " " * 3000 + "z", ""]
    tokenizer = Worded()
    pieces = Reading(TRUNCATE, 12).pieces(texts, tokenizer)
    whole = [np.array([len(word) for word in text.split()][:12], np.int32) for text in texts]
    assert [pieces.tokens(i).tolist() for i in range(len(texts) - 1)] == [each.tolist() for each in whole[:-1]]
    assert tokenizer.given < sum(map(len, texts))
