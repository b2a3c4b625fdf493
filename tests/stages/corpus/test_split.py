import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xbert.artifacts.errors import InputError
from xbert.stages.corpus.split import assign


def documents(count, **more):
    return [{"text": f"text {i}", "labels": [f"l{i % 3}"], **{key: f(i) for key, f in more.items()}} for i in range(count)]


def test_one_file_is_cut_into_three_of_exact_size(write, prepare):
    dataset = prepare(train=write("train.jsonl", documents(200)), valid_fraction=0.1, test_fraction=0.2)
    assert dataset.summary() == {"train": 140, "valid": 20, "test": 40, "labels": 3}


def test_documents_keep_their_labels_and_file_order(write, prepare, label_names):
    rows = documents(60)
    dataset = prepare(train=write("train.jsonl", rows), valid_fraction=0.2, test_fraction=0.2)
    texts = []
    for name, split in dataset.splits.items():
        numbers = [int(text.split()[1]) for text in split.texts]
        assert numbers == sorted(numbers)
        assert label_names(dataset, name) == [rows[number]["labels"] for number in numbers]
        texts += split.texts
    assert sorted(texts) == sorted(row["text"] for row in rows)


def test_the_order_of_the_file_does_not_matter(write, prepare):
    rows = documents(50)
    first = set(prepare(train=write("a.jsonl", rows), test_fraction=0.2).splits["test"].texts)
    second = set(prepare(train=write("b.jsonl", rows[::-1]), test_fraction=0.2).splits["test"].texts)
    assert first == second


def test_test_stays_the_same_whatever_valid_is(write, prepare):
    train = write("train.jsonl", documents(50))
    first = list(prepare(train=train, test_fraction=0.2, valid_fraction=0.0).splits["test"].texts)
    assert list(prepare(train=train, test_fraction=0.2, valid_fraction=0.3).splits["test"].texts) == first


def test_another_seed_draws_other_documents(write, prepare):
    train = write("train.jsonl", documents(50))
    first = list(prepare(train=train, test_fraction=0.2).splits["test"].texts)
    assert list(prepare(train=train, test_fraction=0.2, seed=1).splits["test"].texts) != first


def test_equal_texts_stay_together(write, prepare):
    dataset = prepare(train=write("train.jsonl", documents(30) * 3), test_fraction=0.3)
    assert dataset.splits["test"].n_docs == 27
    assert not set(dataset.splits["test"].texts) & set(dataset.train.texts)


def test_a_group_stays_together(write, prepare):
    train = write("train.jsonl", documents(60, author=lambda i: i % 12))
    dataset = prepare(train=train, test_fraction=0.25, group="author")
    authors = [{int(text.split()[1]) % 12 for text in split.texts} for split in dataset.splits.values()]
    assert dataset.splits["test"].n_docs == 15
    assert not authors[0] & authors[1]


def test_a_document_without_its_group_is_named(write, prepare):
    with pytest.raises(InputError, match=r"train.jsonl line 1: 'author' is missing"):
        prepare(train=write("train.jsonl", documents(3)), test_fraction=0.3, group="author")


def test_documents_held_out_by_the_user_need_no_group(write, prepare):
    train = write("train.jsonl", documents(9, author=str))
    test = write("test.jsonl", documents(3))
    assert prepare(train=train, test=test, valid_fraction=0.3, group="author").splits["valid"].n_docs == 3


def test_group_needs_json_lines(write, prepare):
    with pytest.raises(InputError, match=r"data.group = 'author': only JSON lines"):
        prepare(train=write("train.tsv", "a\tx\nb\tx\n"), test_fraction=0.5, group="author")


def test_with_a_valid_file_no_test_is_cut_from_train(write, prepare):
    train, valid = write("train.jsonl", documents(20)), write("valid.jsonl", documents(3))
    assert prepare(train=train, valid=valid, test_fraction=0.5).summary() == {"train": 20, "valid": 3, "labels": 3}


def test_features_are_split_like_texts(write, prepare):
    lines = [f"{i % 4} {i % 8}:{i + 1}" for i in range(40)]
    dataset = prepare(train=write("train.txt", "40 8 4\n" + "\n".join(lines)), test_fraction=0.25)
    test = dataset.splits["test"]
    assert (dataset.train.n_docs, test.n_docs) == (30, 10)
    for label, term, value in zip(test.Y.indices, test.X.indices, test.X.values(), strict=True):
        assert (label, term) == ((value - 1) % 4, (value - 1) % 8)


def test_one_document_is_too_few(write, prepare):
    with pytest.raises(InputError, match=r"too few documents or groups to hold some out as test"):
        prepare(train=write("train.jsonl", documents(1)), test_fraction=0.1)


def test_fractions_that_leave_nothing_are_an_error(prepare):
    with pytest.raises(InputError, match=r"nothing is left to train on"):
        prepare(train="x", valid_fraction=0.5, test_fraction=0.5)


@given(st.lists(st.integers(0, 20), min_size=4, max_size=80), st.integers(1, 30), st.integers(0, 5))
def test_units_are_never_cut_and_train_is_never_empty(numbers, size, seed):
    units = np.array(numbers, np.uint64)
    try:
        split_of = assign(units, {"test": size}, seed)
    except InputError:
        return
    counts = np.bincount(units.astype(int))
    assert 0 < (split_of == 1).sum() < len(units)
    assert (split_of == 1).sum() <= max(size, counts[counts > 0].min())
    assert not set(units[split_of == 0]) & set(units[split_of == 1])
