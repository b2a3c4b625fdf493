"""Cutting documents into batches, what Python has to lower-case, and the order of results."""

import threading
from itertools import pairwise

import numpy as np
import pytest

from xbert.artifacts.arrays import Strings
from xbert.stages.features.batches import batch_of_strings, batch_of_texts, cut, cut_texts, in_order


def test_cuts_cover_every_document_once():
    offsets = np.array([0, 3, 3, 10, 11, 12, 40, 41, 41])
    assert list(cut(offsets, 10)) == [(0, 3), (3, 5), (5, 6), (6, 8)]


def test_no_documents_no_cuts():
    assert list(cut(np.zeros(1, np.int64))) == []
    assert list(cut_texts([])) == []


def test_empty_documents_alone_make_a_batch():
    assert list(cut_texts(["", ""])) == [(0, 2)]


@pytest.mark.parametrize("texts", [["abc", "", "De"], ["aé", "x"], ["x", "ΟΔΟΣ", "É", "İ"]])
def test_a_table_and_a_list_make_batches_that_lower_alike(texts):
    one, two = batch_of_strings(Strings.of(["skipped", *texts]), 1, len(texts) + 1, True), batch_of_texts(texts, True)
    for batch in (one, two):
        raw, ends = batch.text.tobytes(), batch.offsets
        assert [raw[a:b].decode().lower() for a, b in pairwise(ends)] == [t.lower() for t in texts]
        assert "Σ".encode() not in raw and "İ".encode() not in raw
        assert batch.is_ascii == "".join(texts).isascii()
        assert not batch.text.flags.writeable and not batch.offsets.flags.writeable


def test_case_that_is_kept_is_not_touched():
    assert batch_of_strings(Strings.of(["ΟΔΟΣ"]), 0, 1, False).text.tobytes().decode() == "ΟΔΟΣ"
    assert batch_of_texts(["ΟΔΟΣ"], False).text.tobytes().decode() == "ΟΔΟΣ"


@pytest.mark.parametrize("threads", [1, 4])
def test_results_come_in_order(threads):
    assert list(in_order(lambda i: i * i, range(100), threads)) == [i * i for i in range(100)]


def test_only_a_few_items_are_taken_ahead():
    taken = []
    results = in_order(lambda i: i, (taken.append(i) or i for i in range(1000)), 2)
    next(results)
    assert len(taken) < 10
    results.close()


def test_an_error_in_a_thread_reaches_the_caller_and_ends_the_threads():
    def fail(i):
        raise ValueError(i)

    before = threading.active_count()
    with pytest.raises(ValueError, match="0"):
        list(in_order(fail, range(10), 3))
    assert threading.active_count() == before
