import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xbert.artifacts.arrays import Strings
from xbert.stages.corpus.checks import describe, words_per_document


@pytest.fixture
def facts(write, prepare):
    train = [
        {"text": "one two three", "labels": ["a", "b"]},
        {"text": "one two three", "labels": ["a"]},
        {"text": "four", "labels": ["a"]},
        {"text": "five six", "labels": ["c", "a"]},
    ]
    test = [{"text": "four", "labels": ["a", "new"]}, {"text": "seven", "labels": ["new", "newer"]}]
    return prepare(train=write("train.jsonl", train), test=write("test.jsonl", test)).facts


def test_sizes(facts):
    assert facts["format"] == "jsonl"
    assert facts["documents"] == {"train": 4, "test": 2}
    assert (facts["labels"], facts["labels_in_training"]) == (5, 3)
    assert facts["words"] == {"median": 2.5}


def test_labels_per_document_and_documents_per_label(facts):
    assert facts["labels_per_document"] == {"mean": 1.5, "median": 1.5, "max": 2}
    assert facts["documents_per_label"] == {"mean": 2.0, "median": 1.0, "max": 4}


def test_the_tail(facts):
    tail = facts["tail"]
    assert (tail["share_0"], tail["share_1"], tail["share_1_to_5"], tail["share_1_to_20"]) == (0.4, 0.4, 0.6, 0.6)
    assert tail["top_1_percent"] == pytest.approx(4 / 6, abs=1e-6)
    slope = np.polyfit(np.log([1, 2, 3]), np.log([4, 1, 1]), 1)[0]
    assert tail["zipf_exponent"] == pytest.approx(-slope, abs=1e-6)


def test_duplicates_and_leakage(facts):
    assert facts["duplicate_documents"] == 1
    assert facts["held_out"]["test"] == {
        "unseen_labels": 2,
        "unseen_assignments": 0.75,
        "leaked_documents": 1,
        "leaked_share": 0.5,
    }


def test_warnings_are_sentences_a_person_can_read(facts):
    text = "\n".join(facts["warnings"])
    assert "there is no valid split" in text
    assert "1 test documents (50.0%) also stand in train" in text
    assert "2 labels of test (75.0% of its assignments) never occur in train" in text


def test_facts_are_plain_json(facts):
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts


def test_the_description_is_aligned_and_said(facts, work):
    lines = describe(facts)
    assert work.said == lines
    columns = {line.index(value) for line, value in zip(lines, ["train 4", "5, of", "mean 1.5", "mean 2.0"], strict=False)}
    assert len(columns) == 1


def test_a_single_label_has_no_zipf_exponent(write, prepare):
    facts = prepare(train=write("train.jsonl", [{"text": "a", "labels": ["x"]}])).facts
    assert facts["tail"]["zipf_exponent"] is None
    assert describe(facts)


@given(st.lists(st.text(alphabet="ab \n\té", max_size=12), max_size=20))
def test_words_are_counted_as_python_splits(texts):
    assert words_per_document(Strings.of(texts)).tolist() == [len(text.split()) for text in texts]
