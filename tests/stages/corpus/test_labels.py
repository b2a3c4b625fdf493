import pytest

from xbert.artifacts.errors import InputError
from xbert.stages.corpus.labels import find_cycle

DOCS = [{"text": "a", "labels": ["x"]}, {"text": "b", "labels": ["z", "y"]}]


@pytest.fixture
def train(write):
    return write("train.jsonl", DOCS)


def test_without_a_label_file_ids_are_the_sorted_union_of_all_splits(write, prepare, label_names, train):
    test = write("test.jsonl", [{"text": "c", "labels": ["w", "x"]}])
    dataset = prepare(train=train, test=test)
    assert list(dataset.labels.ids) == ["w", "x", "y", "z"]
    assert label_names(dataset) == [["x"], ["y", "z"]]
    assert label_names(dataset, "test") == [["w", "x"]]
    assert not dataset.labels.have_text


def test_a_label_file_gives_order_texts_names_and_parents(write, prepare, label_names, train):
    labels = write(
        "labels.jsonl",
        [
            {"id": "z", "text": "zed", "alt": ["last", "zed", "two\nlines"], "parents": ["x", "section/games"]},
            {"id": "y", "text": "why", "all_names": "why ypsilon"},
            {"id": "x"},
        ],
    )
    dataset = prepare(train=train, labels=labels)
    assert list(dataset.labels.ids) == ["z", "y", "x"]
    assert list(dataset.labels.texts) == ["zed", "why", ""]
    assert list(dataset.labels.alternatives) == ["last\ntwo lines", "why ypsilon", ""]
    assert [dataset.labels.parents.row(i).tolist() for i in range(3)] == [[2], [], []]
    assert label_names(dataset) == [["x"], ["z", "y"]]


def test_parents_that_are_no_labels_are_counted(write, prepare, train):
    rows = [{"id": name, "text": name, "parents": ["section/games"]} for name in "xyz"]
    dataset = prepare(train=train, labels=write("labels.jsonl", rows))
    assert dataset.facts["unknown_parents"] == 3
    assert any("3 links to parents" in sentence for sentence in dataset.facts["warnings"])


@pytest.mark.parametrize("content", ["x\tex\ny\twhy\nz\tzed\n", "<x>\tex\t1.2\n<y>\twhy\n<z>\tzed\n"])
def test_a_tsv_of_labels(write, prepare, train, content):
    dataset = prepare(train=train, labels=write("labels.tsv", content))
    assert list(dataset.labels.ids) == ["x", "y", "z"]
    assert list(dataset.labels.texts) == ["ex", "why", "zed"]


def test_a_used_label_that_the_file_lacks_is_named_with_its_line(write, prepare, train):
    labels = write("labels.jsonl", [{"id": "x", "text": "ex"}])
    with pytest.raises(InputError) as caught:
        prepare(train=train, labels=labels)
    assert str(caught.value).startswith("train.jsonl line 2: label 'z' is not in labels.jsonl (2 labels are missing in all)")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"id": "x"}\n{"id": "y"}\n{"id": "x"}\n', "labels line 3: label 'x' stands already on line 1"),
        ('{"id": "x"}\n{"text": "y"}\n', "labels line 2: 'id' is missing"),
        ('{"id": 3}\n', "labels line 1: 'id' must be a string"),
        ('{"id": "x", "parents": [3]}\n', "labels line 1: 'parents' must be a list of strings"),
        ('{"id": "x", "text": "\\ud800"}\n', "labels line 1: .* surrogate"),
        ('{"id": "x"\n', "labels line 1: broken JSON"),
        ("x\tex\nwhy\n", "labels line 2: no TAB"),
        ("x y z\n", "labels line 1: neither a JSON object nor"),
        ("", "labels holds no labels"),
    ],
)
def test_a_bad_label_file_is_named(write, prepare, train, content, message):
    with pytest.raises(InputError, match=message):
        prepare(train=train, labels=write("labels", content))


def test_a_circle_of_parents_is_named(write, prepare, train):
    links = {"x": ["y"], "y": ["z"], "z": ["y"]}
    labels = write("labels.jsonl", [{"id": label, "parents": parents} for label, parents in links.items()])
    with pytest.raises(InputError, match=r"labels.jsonl line 2: parents go in a circle: 'y' -> 'z' -> 'y'"):
        prepare(train=train, labels=labels)


def test_two_ways_to_one_parent_are_no_circle():
    assert find_cycle([[1, 2], [3], [3], []]) == []


def test_a_label_that_is_its_own_parent_is_a_circle():
    assert find_cycle([[], [1]]) == [1]


def test_a_chain_longer_than_the_stack_is_followed():
    assert find_cycle([[i + 1] for i in range(5000)] + [[]]) == []
