import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from xbert.artifacts.arrays import load_array, save_array
from xbert.artifacts.errors import ArtifactError, BusyError, StorageError
from xbert.artifacts.fingerprint import FileDigests, Recipe
from xbert.artifacts.kinds.base import Artifact
from xbert.artifacts.manifest import Manifest
from xbert.artifacts.store import Store


@dataclass
class Numbers(Artifact):
    kind: ClassVar[str] = "numbers"
    format: ClassVar[int] = 3
    values: np.ndarray

    def save(self, folder):
        save_array(folder / "values.npy", self.values)

    @classmethod
    def load(cls, folder):
        return cls(load_array(folder / "values.npy", np.int64))

    def summary(self):
        return {"n": len(self.values)}


RECIPE = Recipe("index", "kmeans", 1, {"clusters": 512, "seed": 0}, {"data": "aa", "features": "bb"})


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "run")


def make(store, recipe=RECIPE, n=4, force=False):
    return store.make(recipe, Numbers, lambda folder, pieces: Numbers(np.arange(n)), force)


def test_what_was_made_is_found_again(store):
    make(store)
    assert store.load(RECIPE, Numbers).values.tolist() == [0, 1, 2, 3]


def test_a_finished_artifact_is_not_made_twice(store):
    make(store)
    make(store, n=9)
    assert len(store.load(RECIPE, Numbers).values) == 4


def test_force_makes_it_again(store):
    make(store)
    make(store, n=9, force=True)
    assert len(store.load(RECIPE, Numbers).values) == 9


def test_a_failure_leaves_nothing_that_looks_finished(store):
    def fail(folder, pieces):
        (folder / "values.npy").write_bytes(b"half")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        store.make(RECIPE, Numbers, fail)
    assert not store.has(RECIPE)
    make(store)
    assert len(store.load(RECIPE, Numbers).values) == 4


def test_pieces_of_an_interrupted_run_are_taken_up(store):
    def interrupted(folder, pieces):
        pieces.keep("a", {"x": np.arange(3)})
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.make(RECIPE, Numbers, interrupted)
    assert store.why_not(RECIPE).startswith("interrupted with 1 finished piece")
    store.make(RECIPE, Numbers, lambda folder, pieces: Numbers(pieces.recall("a")["x"]))
    assert store.load(RECIPE, Numbers).values.tolist() == [0, 1, 2]
    assert not (store.path(RECIPE) / "pieces").exists()


def test_a_rotten_piece_is_computed_again(store):
    def interrupted(folder, pieces):
        pieces.keep("a", {"x": np.arange(300)})
        path = folder / "pieces" / "a.npz"
        path.write_bytes(path.read_bytes()[:100])
        return Numbers(np.zeros(1, np.int64) if pieces.recall("a") is None else np.ones(1, np.int64))

    store.make(RECIPE, Numbers, interrupted)
    assert store.load(RECIPE, Numbers).values.tolist() == [0]


def test_a_sealed_partial_only_lacks_its_rename(store):
    path = make(store)
    path.rename(store.partial(RECIPE))
    store.make(RECIPE, Numbers, lambda folder, pieces: pytest.fail("computed again"))
    assert store.has(RECIPE)


def test_a_flipped_bit_is_found_by_verify(store):
    path = make(store) / "values.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))
    manifest = Manifest.read(path.parent)
    manifest.check(path.parent, Numbers)
    with pytest.raises(ArtifactError, match="checksum"):
        manifest.verify(path.parent)


def test_a_truncated_file_is_found_on_loading(store):
    path = make(store) / "values.npy"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ArtifactError, match="bytes instead of"):
        store.load(RECIPE, Numbers)


def test_a_foreign_folder_is_refused(store):
    store.path(RECIPE).mkdir(parents=True)
    with pytest.raises(ArtifactError, match="not made by xbert"):
        store.load(RECIPE, Numbers)


def test_an_artifact_under_another_name_is_refused(store):
    other = replace(RECIPE, version=2)
    make(store).rename(store.path(other))
    with pytest.raises(ArtifactError, match="renamed"):
        store.load(other, Numbers)


@pytest.mark.parametrize("key", ["format", "kind_format"])
def test_a_newer_format_is_refused(store, key):
    path = make(store) / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: 99}))
    with pytest.raises(ArtifactError, match="install a newer xbert"):
        store.load(RECIPE, Numbers)


def test_a_second_writer_is_told_who_is_first(store):
    def meanwhile(folder, pieces):
        with pytest.raises(BusyError, match=r"index/kmeans-\w+ is being made by process \d+ on .* since"):
            make(Store(store.folder))
        return Numbers(np.arange(1))

    store.make(RECIPE, Numbers, meanwhile)


def test_the_reason_names_the_setting_that_changed(store):
    make(store)
    assert store.why_not(replace(RECIPE, config={"clusters": 256, "seed": 0})) == "config.clusters: 512 -> 256"


def test_the_reason_names_the_input_that_changed(store):
    make(store)
    assert store.why_not(replace(RECIPE, inputs={"data": "cc", "features": "bb"})) == "its data changed"
    another = replace(RECIPE, method="another", config={"depth": 3})
    assert store.why_not(another) == f"method: {RECIPE.method} -> another"


def test_the_reason_for_a_first_run(store):
    assert store.why_not(RECIPE) == "never run"


@pytest.mark.parametrize("folder", ["/proc/xbert", "file/run"])
def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path, folder):
    (tmp_path / "file").write_text("a file where a folder should be")
    with pytest.raises(StorageError, match="cannot make the folder"):
        make(Store(tmp_path / folder))


FULL_DISK = """
import resource, sys
from pathlib import Path
import numpy as np
sys.path.insert(0, sys.argv[2])
from test_store import Numbers, RECIPE
from xbert.artifacts.errors import StorageError
from xbert.artifacts.store import Store
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    Store(Path(sys.argv[1])).make(RECIPE, Numbers, lambda folder, pieces: Numbers(np.arange(100_000)))
except StorageError as error:
    print(error)
"""


def test_a_disk_that_is_full_is_one_sentence_and_nothing_looks_finished(store, request):
    """The limit on file size stands in for the end of the disk: the same refusal, from the same system call."""
    folder = str(request.path.parent)
    ended = subprocess.run([sys.executable, "-c", FULL_DISK, store.folder, folder], capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("cannot write")
    assert not store.has(RECIPE)
    make(store)
    assert store.has(RECIPE)


def test_a_changed_file_of_the_user_is_seen(tmp_path):
    path = tmp_path / "train.jsonl"
    path.write_text("one")
    before = FileDigests(tmp_path / "digests.json")
    first = before.of(path)
    before.save()
    assert FileDigests(tmp_path / "digests.json").of(path) == first
    path.write_text("two")
    assert FileDigests(tmp_path / "digests.json").of(path) != first


def test_what_other_libraries_wrote_is_on_the_disk_before_the_manifest_says_so(store, monkeypatch):
    synced, done = set(), os.fsync

    def fsync(descriptor):
        synced.add(os.fstat(descriptor).st_ino)
        done(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)

    def compute(folder, pieces):
        (folder / "weights.bin").write_bytes(b"by somebody who does not wait for the disk")
        return Numbers(np.arange(4))

    folder = store.make(RECIPE, Numbers, compute)
    assert {path.name for path in folder.iterdir() if path.stat().st_ino not in synced} == set()
