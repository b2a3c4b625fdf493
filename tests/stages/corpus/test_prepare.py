import dataclasses
import hashlib

import pytest

from xbert.artifacts.errors import InputError
from xbert.artifacts.kinds.dataset import Dataset
from xbert.stages.corpus import documents, text_formats
from xbert.stages.corpus.prepare import Prepare, PrepareConfig


def corpus(count):
    return [{"text": f"é{i} " * (i % 7 + 1), "labels": [f"l{i % 5}", f"m{i % 3}"]} for i in range(count)]


def content_of(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_the_same_settings_give_the_same_bytes_over_leftovers(write, prepare, work):
    train = write("train.jsonl", corpus(100))
    prepare(train=train, test_fraction=0.2)
    first = content_of(work.folder)
    (work.folder / "scratch").mkdir()
    (work.folder / "scratch" / "train.texts.blob.npy").write_bytes(b"half a file")
    for stale in ("train.texts.blob.npy", "valid.Y.indices.npy", "train.X.data.npy"):
        (work.folder / stale).write_bytes(b"stale")
    prepare(train=train, test_fraction=0.2)
    assert content_of(work.folder) == first


def test_block_sizes_do_not_show(write, prepare, work, monkeypatch):
    train = write("train.jsonl", corpus(100))
    prepare(train=train, test_fraction=0.2)
    first = content_of(work.folder)
    monkeypatch.setattr(text_formats, "_BLOCK_DOCS", 3)
    monkeypatch.setattr(documents, "_BLOCK_ENTRIES", 50)
    prepare(train=train, test_fraction=0.2)
    assert content_of(work.folder) == first


def test_only_the_files_of_the_dataset_remain(write, prepare, work):
    prepare(train=write("train.jsonl", corpus(20)), test_fraction=0.2)
    names = {path.name.split(".")[0] for path in work.folder.iterdir()}
    assert names == {"train", "test", "dataset"} | {f"label_{each}" for each in ("ids", "texts", "alternatives", "parents")}


def test_an_error_leaves_no_scratch_behind(write, prepare, work):
    with pytest.raises(InputError):
        prepare(train=write("train.jsonl", '{"text": "a"}\n'))
    assert not (work.folder / "scratch").exists()


def test_saving_leaves_what_is_in_place_alone(write, work):
    config = PrepareConfig(train=write("train.jsonl", corpus(40)))
    dataset = Prepare().run({}, config, work)
    before = {path.name: path.stat().st_mtime_ns for path in work.folder.iterdir()}
    dataset.save(work.folder)
    assert before == {path.name: path.stat().st_mtime_ns for path in work.folder.iterdir() if path.name in before}
    assert {name.split(".")[1] for name in before} == {"texts", "Y"}


def test_progress_reaches_its_end(write, prepare, work):
    prepare(train=write("train.jsonl", corpus(1000)), test=write("test.jsonl", corpus(10)))
    (bar,) = work.bars
    assert bar.done == bar.total > 0


def test_every_setting_has_a_help():
    for each in dataclasses.fields(PrepareConfig):
        assert 10 < len(each.metadata["help"]) <= 110
        assert "\n" not in each.metadata["help"]


def test_the_method_says_what_it_is():
    assert (Prepare.stage, Prepare.name, Prepare.needs, Prepare.gives) == ("data", "corpus", (), Dataset)
