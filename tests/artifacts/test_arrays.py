import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xbert.artifacts.arrays import ArrayWriter, Strings, StringsWriter, load_array, save_array
from xbert.artifacts.errors import ArtifactError


def test_an_array_comes_back_as_it_was(tmp_path):
    save_array(tmp_path / "a.npy", np.arange(5, dtype=np.int32))
    assert load_array(tmp_path / "a.npy", np.int32).tolist() == [0, 1, 2, 3, 4]


def test_a_truncated_file_is_refused_before_anything_is_read(tmp_path):
    path = tmp_path / "a.npy"
    save_array(path, np.arange(1000, dtype=np.int64))
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ArtifactError, match="header promises"):
        load_array(path, np.int64)


def test_a_header_that_promises_terabytes_is_refused(tmp_path):
    path = tmp_path / "a.npy"
    save_array(path, np.arange(10, dtype=np.int64))
    path.write_bytes(path.read_bytes().replace(b"(10,)", b"(9999999999999,)".ljust(5))[:200])
    with pytest.raises(ArtifactError):
        load_array(path, np.int64)


def test_an_array_of_objects_is_never_unpickled(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(ArtifactError):
        load_array(path, np.int64)


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"not an array at all", b"\x93NUMPY\x01\x00\x10\x00{'descr': [[[["])
def test_foreign_bytes_are_refused(tmp_path, content):
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(ArtifactError):
        load_array(tmp_path / "a.npy", np.int64)


def test_another_dtype_is_refused(tmp_path):
    save_array(tmp_path / "a.npy", np.arange(3, dtype=np.int64))
    with pytest.raises(ArtifactError, match="int64"):
        load_array(tmp_path / "a.npy", np.int32)


def test_changing_a_mapped_array_does_not_change_its_file(tmp_path):
    save_array(tmp_path / "a.npy", np.zeros(4, np.int32))
    load_array(tmp_path / "a.npy", np.int32)[:] = 7
    assert load_array(tmp_path / "a.npy", np.int32).sum() == 0


def test_a_mapped_array_is_not_written_over_its_own_file(tmp_path):
    path = tmp_path / "a.npy"
    save_array(path, np.arange(4, dtype=np.int32))
    inode = path.stat().st_ino, path.stat().st_mtime_ns
    save_array(path, load_array(path, np.int32))
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == inode


def test_a_part_of_a_mapped_array_is_written(tmp_path):
    path = tmp_path / "a.npy"
    save_array(path, np.arange(4, dtype=np.int32))
    save_array(path, load_array(path, np.int32)[:2].copy())
    assert load_array(path, np.int32).tolist() == [0, 1]


def test_a_growing_array_equals_one_written_at_once(tmp_path):
    writer = ArrayWriter(tmp_path / "grown.npy", np.int32)
    for start in range(0, 1000, 100):
        writer.append(np.arange(start, start + 100))
    writer.close()
    assert np.load(tmp_path / "grown.npy").tolist() == list(range(1000))


@given(st.lists(st.text()))
def test_strings_come_back_as_they_were(strings):
    assert list(Strings.of(strings)) == strings


def test_a_growing_string_table_equals_one_built_at_once(tmp_path):
    writer = StringsWriter(tmp_path, "t")
    writer.append(["eins", ""])
    writer.append(["größer"])
    assert list(writer.close()) == list(Strings.load(tmp_path, "t")) == ["eins", "", "größer"]


def test_string_offsets_that_do_not_fit_are_refused(tmp_path):
    Strings.of(["ab", "cd"]).save(tmp_path, "t")
    save_array(tmp_path / "t.offsets.npy", np.array([0, 3, 2, 4]))
    with pytest.raises(ArtifactError, match="offsets"):
        Strings.load(tmp_path, "t")
