import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xbert.artifacts.errors import InputError
from xbert.stages.corpus.lines import TextFile
from xbert.stages.corpus.notes import Notes
from xbert.stages.corpus.xmc import SparseTextFile

SMALL = "3 8 4\n3,1 7:2 0:0.5\n 4:1e-2\n2\n"


def test_features_and_labels_are_read(write, prepare):
    dataset = prepare(train=write("train.txt", SMALL))
    assert dataset.train.texts is None
    assert dataset.train.X.to_scipy().toarray().tolist() == [
        [0.5, 0, 0, 0, 0, 0, 0, 2],
        [0, 0, 0, 0, pytest.approx(0.01), 0, 0, 0],
        [0] * 8,
    ]
    assert [dataset.train.Y.row(i).tolist() for i in range(3)] == [[1, 3], [], [2]]
    assert list(dataset.labels.ids) == ["0", "1", "2", "3"]


def test_gzip_windows_ends_and_trailing_blank_lines(write, prepare):
    content = SMALL.replace("\n", " \r\n").encode() + b"\n \n"
    dataset = prepare(train=write("train.txt.gz", gzip.compress(content)))
    assert dataset.train.X.nnz == 3


def test_no_newline_at_the_end_is_fine(write, prepare):
    assert prepare(train=write("train.txt", SMALL.rstrip())).train.n_docs == 3


def test_repeated_labels_are_counted(write, prepare):
    dataset = prepare(train=write("train.txt", "1 1 4\n3,1,3,1 0:1\n"))
    assert dataset.train.Y.indices.tolist() == [1, 3]
    assert dataset.facts["repeated_labels"] == 2


def test_documents_without_labels_or_features_are_counted(write, prepare):
    facts = prepare(train=write("train.txt", SMALL)).facts
    assert facts["unlabelled_documents"] == {"train": 1}
    assert facts["empty_documents"] == 1
    assert facts["terms"] == {"median": 1.0}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("4 0:1", r"label 4 lies outside 0\.\.3"),
        ("99999999999999999999999 0:1", "label .* lies outside"),
        ("1 8:1", r"feature 8 lies outside 0\.\.7"),
        ("1 0:nan", "feature 0 is not a finite number"),
        ("1 0:-inf", "feature 0 is not a finite number"),
        ("1 0:1e39", "feature 0 is not a finite number"),
        ("1 0:1e999999999999999999999", "feature 0 is not a finite number"),
        ("1 3:-0.5", "feature 3 is negative"),
        ("1 3:1 5:1 3:2", "feature 3 stands twice"),
        ("1 3:1 3:2", "feature 3 stands twice"),
        ("1 3:", "value of feature 3 is not a number"),
        ("1 3:1.2.3", "value of feature 3 is not a number"),
        ("1 3:1e", "value of feature 3 is not a number"),
        ("1 3", "not of the form"),
        ("1 x:3", "not of the form"),
        ("1,,2 3:1", "labels are not numbers"),
        ("1, 3:1", "labels are not numbers"),
        ("-1 3:1", "labels are not numbers"),
        ("3:1", "must start with a space"),
    ],
)
def test_a_bad_line_is_named(write, prepare, line, message):
    with pytest.raises(InputError, match=f"train.txt line 3: .*{message}"):
        prepare(train=write("train.txt", f"2 8 4\n1 0:1\n{line}\n"))


def test_fewer_documents_than_promised(write, prepare):
    with pytest.raises(InputError, match=r"train.txt holds 3 documents, its header promises 5"):
        prepare(train=write("train.txt", SMALL.replace("3 8 4", "5 8 4")))


def test_more_documents_than_promised(write, prepare):
    with pytest.raises(InputError, match=r"train.txt line 4: a document more than the 2"):
        prepare(train=write("train.txt", SMALL.replace("3 8 4", "2 8 4")))


@pytest.mark.parametrize("header", ["3 2000000000 4", "3 8 2000000000"])
def test_a_header_larger_than_the_file_is_not_believed(write, prepare, header):
    with pytest.raises(InputError, match=r"line 1: the header promises 2000000000 .* more than the file has bytes"):
        prepare(train=write("train.txt", SMALL.replace("3 8 4", header)))


@pytest.mark.parametrize("header", ["1 0:1", "3 8", "3 8 9999999999", "0 8 4"])
def test_a_file_without_a_header_is_an_error(write, prepare, header):
    with pytest.raises(InputError, match=r"train.txt line 1: "):
        prepare(train=write("train.txt", SMALL.replace("3 8 4", header)), format="xmc")


def test_test_must_have_the_columns_of_train(write, prepare):
    train, test = write("train.txt", SMALL), write("test.txt", SMALL.replace("3 8 4", "3 8 5"))
    with pytest.raises(InputError, match=r"test.txt has 5 labels and 8 features, train 4 and 8"):
        prepare(train=train, test=test)


def test_label_names_by_line(write, prepare):
    dataset = prepare(train=write("train.txt", SMALL), labels=write("names.txt", "a\nb\nc\nd\n"))
    assert list(dataset.labels.texts) == ["a", "b", "c", "d"]


rows = st.lists(
    st.tuples(
        st.lists(st.integers(0, 49), max_size=6),
        st.dictionaries(st.integers(0, 99), st.floats(0, 2.0**120), max_size=8),
    ),
    min_size=1,
    max_size=20,
)
forms = st.sampled_from(["{!r}", "{:f}", "{:e}", "{:.3g}", "+{:.17g}"])


@settings(max_examples=60, deadline=None)
@given(rows, forms, st.sampled_from(["\n", "\r\n", " \n"]))
def test_the_kernel_reads_what_plain_python_reads(tmp_path_factory, documents, form, end):
    path = tmp_path_factory.mktemp("xmc") / "train.txt"
    lines = [f"{len(documents)} 100 50"]
    for labels, features in documents:
        written = [f"{term}:{form.format(value)}" for term, value in features.items()]
        lines.append(" ".join([",".join(map(str, labels)), *written]))
    path.write_text("".join(line + end for line in lines), newline="")
    (block,) = SparseTextFile(TextFile(path), Notes()).read()
    assert len(block) == len(documents)
    for i, (labels, features) in enumerate(documents):
        assert block.Y.row(i).tolist() == sorted(set(labels))
        assert block.X.row(i).tolist() == sorted(features)
        wanted = np.array([float(form.format(features[term])) for term in sorted(features)], np.float32)
        found = block.X.slice(i, i + 1).values()
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-44)


def test_many_blocks_are_one_file(write, prepare, monkeypatch):
    monkeypatch.setattr("xbert.stages.corpus.lines._BLOCK", 7)
    lines = [f"{i % 4} {i % 8}:{i}.5" for i in range(50)]
    dataset = prepare(train=write("train.txt", "50 8 4\n" + "\n".join(lines)))
    assert dataset.train.Y.indices.tolist() == [i % 4 for i in range(50)]
    assert dataset.train.X.values().tolist() == [i + 0.5 for i in range(50)]
