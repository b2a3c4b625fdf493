"""The kernels by themselves: bytes that are no text, room that runs out, hashes that must differ."""

from itertools import pairwise

import numpy as np
import pytest

from xbert.artifacts.arrays import Strings
from xbert.stages.features.analysis import frozen
from xbert.stages.features.characters import character_classes
from xbert.stages.kernels.text_count import count_terms, fill_slots
from xbert.stages.kernels.text_rows import _LOWEST, transform_rows


def counted(blobs, rule=(1, 2, 0, 0)):
    raw = b"".join(blobs)
    offsets = np.cumsum([0] + [len(blob) for blob in blobs])
    lengths, terms, counts, keys, documents, blob, term_offsets = count_terms(
        frozen(np.frombuffer(raw, np.uint8)),
        frozen(offsets),
        character_classes(True, False),
        frozen(np.array(rule, np.int64)),
    )
    texts = [blob[a:b].tobytes() for a, b in pairwise(term_offsets)]
    return lengths.tolist(), terms.tolist(), counts.tolist(), keys, documents.tolist(), texts


def test_counts_by_document_in_order_of_appearance():
    lengths, terms, counts, _, documents, texts = counted([b"bb aa bb", b"", b"aa cc"])
    assert (lengths, terms, counts) == ([2, 0, 2], [0, 1, 1, 2], [2, 1, 1, 1])
    assert (documents, texts) == ([1, 2, 1], [b"bb", b"aa", b"cc"])


@pytest.mark.parametrize("broken", [b"ab\xc3", b"ab\xe2\x82", b"ab\xf0\x9f", b"ab \xff\xfe\xfd", b"ab \x80\x80"])
def test_bytes_that_are_not_utf8_are_no_words(broken):
    assert counted([broken])[5] == [b"ab"]


def test_a_document_never_reads_into_the_next():
    assert counted([b"ab\xe2", b"\x82\xaccd"])[5][0] == b"ab"


def test_more_terms_than_the_first_tables_hold():
    words = [f"w{i}".encode() for i in range(50_000)]
    lengths, terms, _, keys, _, texts = counted([b" ".join(words)])
    assert texts == words
    assert (lengths, terms) == ([50_000], list(range(50_000)))
    assert len(np.unique(keys)) == 50_000


def test_hashes_of_short_strings_and_their_joins_differ():
    letters = [bytes([a, b]) for a in range(97, 123) for b in range(97, 123)]
    _, _, _, keys, _, texts = counted([b" ".join(letters)], rule=(3, 2, 1, 4))
    assert len(np.unique(keys)) == len(keys)
    assert len(texts) == len(keys)
    assert 0 not in keys


def test_a_pair_depends_on_its_order():
    keys, texts = counted([b"aa bb aa"], rule=(2, 1, 0, 0))[3::2]
    assert texts == [b"aa", b"bb", b"aa bb", b"bb aa"]
    assert len(set(keys.tolist())) == 4


def test_colliding_slots_are_walked():
    keys = np.array([8, 16, 24, 7], np.uint64)
    slots, numbers = np.zeros(8, np.uint64), np.full(8, -1, np.int32)
    fill_slots(keys, slots, numbers)
    assert slots.tolist() == [8, 16, 24, 0, 0, 0, 0, 7]
    assert numbers.tolist() == [0, 1, 2, -1, -1, -1, -1, 3]


def test_every_bit_has_its_place():
    assert sorted(_LOWEST.tolist()) == list(range(64))


def test_mapped_and_built_arrays_share_one_compiled_kernel(tmp_path):
    count_terms_before = count_terms.signatures
    Strings.of(["ab cd"]).save(tmp_path, "texts")
    table = Strings.load(tmp_path, "texts")
    rule = frozen(np.array([1, 2, 0, 0], np.int64))
    for strings in (table, Strings.of(["ab cd"])):
        count_terms(frozen(strings.blob), frozen(strings.offsets), character_classes(True, True), rule)
    assert len(count_terms.signatures) == 1
    assert count_terms_before in ([], count_terms.signatures)
    assert len(transform_rows.signatures) <= 1
