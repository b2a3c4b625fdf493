import pytest

from xbert.artifacts.errors import InputError
from xbert.stages.corpus.prepare import Prepare, PrepareConfig
from xbert.stages.corpus.sources import find_corpus

JSON = '{"text": "a", "labels": ["x"]}\n'


def find(train, format="auto", **more):
    return find_corpus({"train": train, "valid": "", "test": "", **more}, "", format, "__label__")


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("train.jsonl", JSON, "jsonl"),
        ("train.json.gz", JSON, "jsonl"),
        ("train.tsv", "a\tx\n", "annif"),
        ("train.txt", "\n" + JSON, "jsonl"),
        ("train.txt", "2 3 4\n", "xmc"),
        ("train.txt", "__label__a text\n", "fasttext"),
        ("train.txt", "text\t<uri>\n", "annif"),
    ],
)
def test_the_format_is_seen(write, name, content, format):
    assert find(write(name, content)).format == format


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("__label__a text\tx\n", "may be fasttext or annif; set data.format"),
        ("just words\n", "is in no format known .* set data.format"),
        ("", "is in no format known"),
    ],
)
def test_a_doubtful_format_is_an_error(write, content, message):
    with pytest.raises(InputError, match=message):
        find(write("train.txt", content))


def test_a_format_that_is_set_is_believed(write):
    assert find(write("train.txt", "__label__a text\tx\n"), "annif").format == "annif"


def test_text_formats_may_be_mixed(write):
    corpus = find(write("train.jsonl", JSON), test=write("test.tsv", "a\tx\n"))
    assert [source.format for source in corpus.sources] == ["jsonl", "annif"]


def test_text_and_features_cannot_be_mixed(write):
    with pytest.raises(InputError, match=r"jsonl and xmc"):
        find(write("train.jsonl", JSON), test=write("test.txt", "1 1 1\n0 0:1\n"))


def test_a_folder_is_no_json(tmp_path):
    with pytest.raises(InputError, match=r"is a folder, which format jsonl is not"):
        find(str(tmp_path), "jsonl")


def test_reads_names_every_file(write):
    paths = {name: write(f"{name}.jsonl", JSON) for name in ("train", "valid", "test", "labels")}
    assert {name: str(path) for name, path in Prepare.reads(PrepareConfig(**paths)).items()} == paths


@pytest.mark.parametrize("name", ["train", "valid", "test", "labels"])
def test_a_missing_file_is_named(write, name):
    paths = {"train": write("train.jsonl", JSON), name: "/nowhere/file.jsonl"}
    with pytest.raises(InputError, match=f"data.{name}: /nowhere/file.jsonl does not exist") as caught:
        Prepare.reads(PrepareConfig(**paths))
    assert caught.value.exit_code == 3


def test_train_must_be_set():
    with pytest.raises(InputError, match=r"data.train is not set"):
        Prepare.reads(PrepareConfig())
