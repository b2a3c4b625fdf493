import gzip

import pytest

from xbert.artifacts.errors import InputError

GOOD = '{"text": "a", "labels": ["x"]}\n'


def test_json_lines_keep_text_and_labels(write, prepare, label_names):
    train = write("train.jsonl", [{"id": "1", "text": "one\ntwo", "labels": ["b", "a"]}, {"text": "é", "labels": ["a"]}])
    dataset = prepare(train=train)
    assert list(dataset.train.texts) == ["one\ntwo", "é"]
    assert label_names(dataset) == [["a", "b"], ["a"]]


def test_gzip_and_byte_order_mark_are_read(write, prepare):
    train = write("train.jsonl.gz", gzip.compress(b"\xef\xbb\xbf" + GOOD.encode() * 3))
    assert list(prepare(train=train).train.texts) == ["a", "a", "a"]


def test_windows_line_ends_and_blank_lines_are_no_documents(write, prepare):
    train = write("train.jsonl", GOOD.replace("\n", "\r\n") + "\r\n  \n" + GOOD.rstrip())
    assert prepare(train=train).train.n_docs == 2


def test_only_a_newline_ends_a_line(write, prepare):
    train = write("train.tsv", "one\u2028still\u0085one\tx\n")
    assert list(prepare(train=train).train.texts) == ["one\u2028still\u0085one"]


def test_other_json_keys_and_joined_texts(write, prepare, label_names):
    train = write("train.jsonl", [{"title": "T", "body": "B", "tags": ["x"]}])
    dataset = prepare(train=train, text_key="title, body", labels_key="tags")
    assert list(dataset.train.texts) == ["T\nB"]
    assert label_names(dataset) == [["x"]]


def test_annif_with_and_without_brackets(write, prepare, label_names):
    train = write("train.tsv", "a cat\t<http://x/1> <http://x/2>\na dog\thttp://x/2\n")
    dataset = prepare(train=train)
    assert list(dataset.train.texts) == ["a cat", "a dog"]
    assert label_names(dataset) == [["http://x/1", "http://x/2"], ["http://x/2"]]


def test_fasttext_takes_labels_wherever_they_stand(write, prepare, label_names):
    train = write("train.txt", "__label__x __label__y a  cat\n__label__x\ta dog __label__z here\n")
    dataset = prepare(train=train, format="fasttext")
    assert list(dataset.train.texts) == ["a  cat", "a dog here"]
    assert label_names(dataset) == [["x", "y"], ["x", "z"]]


def test_a_repeated_label_is_kept_once_and_counted(write, prepare, label_names):
    dataset = prepare(train=write("train.jsonl", [{"text": "a", "labels": ["x", "y", "x"]}]))
    assert label_names(dataset) == [["x", "y"]]
    assert dataset.facts["repeated_labels"] == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "a"', "broken JSON"),
        ("[1]", "not a JSON object"),
        ("[" * 100_000, "JSON that cannot be read"),
        ('{"labels": ["x"]}', "'text' is missing"),
        ('{"text": null, "labels": ["x"]}', "'text' is missing"),
        ('{"text": " \\n", "labels": ["x"]}', "'text' is empty"),
        ('{"text": 3, "labels": ["x"]}', "'text' must be a string, not 3"),
        ('{"text": "\\ud800", "labels": ["x"]}', "half of a surrogate pair"),
        ('{"text": "a", "labels": ["\\ud800"]}', "half of a surrogate pair"),
        ('{"text": "a"}', "'labels' is missing"),
        ('{"text": "a", "labels": []}', "'labels' is empty"),
        ('{"text": "a", "labels": "x"}', "'labels' must be a list of strings"),
        ('{"text": "a", "labels": ["x", 7]}', "'labels' holds 7; labels must be strings"),
        ('{"text": "a", "labels": [""]}', "'labels' holds an empty string"),
    ],
)
def test_a_bad_json_line_is_named(write, prepare, line, message):
    with pytest.raises(InputError) as caught:
        prepare(train=write("train.jsonl", GOOD * 2 + line + "\n" + GOOD))
    assert str(caught.value).startswith("train.jsonl line 3: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("format", "good", "line", "message"),
    [
        ("annif", "a\tx\n", "no tab", "no TAB between text and labels"),
        ("annif", "a\tx\n", "a\t ", "the labels are missing"),
        ("annif", "a\tx\n", "a\t<>", "a label is empty"),
        ("annif", "a\tx\n", " \tx", "the text is empty"),
        ("fasttext", "__label__x a\n", "no label", "no label"),
        ("fasttext", "__label__x a\n", "__label__x", "the text is empty"),
        ("fasttext", "__label__x a\n", "__label__ a", "a label has no name"),
    ],
)
def test_a_bad_line_is_named(write, prepare, format, good, line, message):
    with pytest.raises(InputError, match=f"train.txt line 2: {message}"):
        prepare(train=write("train.txt", good + line + "\n"), format=format)


def test_a_wrong_encoding_is_named_by_file_and_line(write, prepare):
    train = write("train.tsv", b"a\tx\ncaf\xe9\ty\n")
    with pytest.raises(InputError, match=r"train.tsv line 2: byte 0xe9 at position 4 is not UTF-8"):
        prepare(train=train)


def test_a_cut_gzip_file_is_an_error(write, prepare):
    packed = gzip.compress(GOOD.encode() * 1000)
    with pytest.raises(InputError, match=r"damaged gzip"):
        prepare(train=write("train.jsonl.gz", packed[:-20]))


def test_a_file_without_documents_is_an_error(write, prepare):
    train, valid = write("train.jsonl", GOOD), write("valid.jsonl", "\n\n")
    with pytest.raises(InputError, match=r"valid.jsonl holds no documents"):
        prepare(train=train, valid=valid)
