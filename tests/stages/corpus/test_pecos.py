import io
import zipfile

import numpy as np
import pytest
from scipy.sparse import csc_matrix, csr_matrix, save_npz

from xbert.artifacts.errors import InputError
from xbert.stages.corpus.npz import NpzRows
from xbert.stages.corpus.prepare import Prepare, PrepareConfig

Y_TRAIN = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
Y_TEST = [[0, 1, 1]]


@pytest.fixture
def folder(tmp_path):
    """As PECOS publishes them."""
    path = tmp_path / "eurlex"
    path.mkdir()
    (path / "X.trn.txt").write_text("one\n\nthree\n")
    (path / "X.tst.txt").write_text("four\n")
    (path / "output-items.txt").write_text("cat\ndog\ncat\n")
    save_npz(path / "Y.trn.npz", csr_matrix(np.array(Y_TRAIN, np.float32)))
    save_npz(path / "Y.tst.npz", csr_matrix(np.array(Y_TEST, np.float32)))
    return path


def rows_of(split):
    return [split.Y.row(i).tolist() for i in range(split.n_docs)]


def test_a_folder_gives_train_and_test_with_names(folder, prepare):
    dataset = prepare(train=str(folder))
    assert list(dataset.train.texts) == ["one", "", "three"]
    assert rows_of(dataset.train) == [[0, 2], [1], []]
    assert rows_of(dataset.splits["test"]) == [[1, 2]]
    assert list(dataset.labels.ids) == ["0", "1", "2"]
    assert list(dataset.labels.texts) == ["cat", "dog", "cat"]


def test_documents_without_text_or_labels_are_kept_and_counted(folder, prepare):
    facts = prepare(train=str(folder)).facts
    assert facts["empty_documents"] == 1
    assert facts["unlabelled_documents"]["train"] == 1


def test_the_names_of_x_transformer_are_known(folder, prepare):
    (folder / "X.trn.txt").rename(folder / "train_raw_texts.txt")
    (folder / "X.tst.txt").rename(folder / "test_raw_texts.txt")
    (folder / "output-items.txt").rename(folder / "label_map.txt")
    assert prepare(train=str(folder)).summary() == {"train": 3, "test": 1, "labels": 3}


def test_every_file_used_is_read(folder):
    reads = Prepare.reads(PrepareConfig(train=str(folder)))
    assert {name: path.name for name, path in reads.items()} == {
        "train.texts": "X.trn.txt",
        "train.labels": "Y.trn.npz",
        "test.texts": "X.tst.txt",
        "test.labels": "Y.tst.npz",
        "label_names": "output-items.txt",
    }


def test_label_names_in_latin_1_are_read_and_told(folder, prepare):
    (folder / "output-items.txt").write_bytes("cité\nño\x85x\nc\n".encode("latin-1"))
    dataset = prepare(train=str(folder))
    assert list(dataset.labels.texts) == ["cité", "ño\x85x", "c"]
    assert any("Latin-1" in sentence for sentence in dataset.facts["warnings"])


def test_a_label_file_names_the_columns_in_order(folder, prepare, write):
    labels = write("labels.jsonl", [{"id": name, "text": name} for name in "cab"])
    assert list(prepare(train=str(folder), labels=labels).labels.ids) == ["c", "a", "b"]


@pytest.mark.parametrize("texts", ["one\ntwo\n", "one\ntwo\nthree\nfour\n"])
def test_another_number_of_texts_than_rows_is_an_error(folder, prepare, texts):
    (folder / "X.trn.txt").write_text(texts)
    with pytest.raises(InputError, match=rf"X.trn.txt has {texts.count(chr(10))} texts, its label matrix 3 rows"):
        prepare(train=str(folder))


def test_another_number_of_names_than_columns_is_an_error(folder, prepare):
    (folder / "output-items.txt").write_text("cat\n")
    with pytest.raises(InputError, match=r"output-items.txt has 1 labels, Y.trn.npz 3"):
        prepare(train=str(folder))


def test_texts_without_a_matrix_are_an_error(folder):
    (folder / "Y.tst.npz").unlink()
    with pytest.raises(InputError, match=r"has X.tst.txt but no Y.tst.npz"):
        Prepare.reads(PrepareConfig(train=str(folder)))


def test_a_folder_of_something_else_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"no train part"):
        Prepare.reads(PrepareConfig(train=str(tmp_path)))


def save(path, **replaced):
    """A matrix file as scipy writes it, with members replaced by arrays or by raw bytes."""
    members = {
        "format": np.array(b"csr"),
        "shape": np.array([2, 3]),
        "indptr": np.array([0, 2, 3], np.int32),
        "indices": np.array([2, 0, 1], np.int32),
        "data": np.ones(3, np.float32),
        **replaced,
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, member in members.items():
            if isinstance(member, bytes):
                archive.writestr(f"{name}.npy", member)
            elif member is not None:
                buffer = io.BytesIO()
                np.save(buffer, member)
                archive.writestr(f"{name}.npy", buffer.getvalue())


def header_of(length, dtype="<i4"):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": dtype, "fortran_order": False, "shape": (length,)})
    return buffer.getvalue()


def test_rows_come_sorted_once_each_and_without_zeros(tmp_path):
    path = tmp_path / "Y.npz"
    save(path, indices=np.array([2, 0, 1]), data=np.array([1, 0, 1]), indptr=np.array([0, 2, 3]))
    with NpzRows(path) as rows:
        first, _ = rows.take(1)
        second, _ = rows.take(1)
    assert (first.indices.tolist(), second.indices.tolist()) == ([2], [1])


def test_a_column_twice_in_a_row_is_counted(tmp_path):
    path = tmp_path / "Y.npz"
    save(path, indices=np.array([2, 2, 1]))
    with NpzRows(path) as rows:
        Y, repeated = rows.take(2)
    assert (Y.indices.tolist(), repeated) == ([2, 1], 1)


@pytest.mark.parametrize(
    "replaced",
    [
        {"format": np.array(b"csc")},
        {"data": None},
        {"data": np.array([1, -1, 1])},
        {"data": np.array([1, np.nan, 1])},
        {"data": np.array([1, None, 1], object)},
        {"indices": np.array([2, 0, 3], np.int32)},
        {"indices": np.array([2, 0, -1], np.int32)},
        {"indices": header_of(10**12) + bytes(12)},
        {"indices": b"not an array at all"},
        {"indptr": np.array([0, 2], np.int32)},
        {"indptr": np.array([1, 2, 3], np.int32)},
        {"indptr": np.array([0, 4, 3], np.int32)},
        {"indptr": np.array([0, 1, 2], np.int32)},
        {"indptr": np.array([0, 2**63 - 1, 3], np.int64)},
        {"shape": np.array([2, 2_000_000_000])},
        {"shape": np.array([2, -3])},
    ],
)
def test_a_matrix_that_lies_is_an_error(tmp_path, replaced):
    save(tmp_path / "Y.npz", **replaced)
    with pytest.raises(InputError, match=r"Y.npz is not a sound .npz matrix"), NpzRows(tmp_path / "Y.npz") as rows:
        rows.take(2)


def test_a_cut_matrix_file_is_an_error(tmp_path):
    save_npz(tmp_path / "Y.npz", csr_matrix(np.eye(3)))
    (tmp_path / "Y.npz").write_bytes((tmp_path / "Y.npz").read_bytes()[:200])
    with pytest.raises(InputError, match=r"Y.npz is not a sound"):
        NpzRows(tmp_path / "Y.npz")


def test_scipy_csc_is_refused_with_its_name(tmp_path):
    save_npz(tmp_path / "Y.npz", csc_matrix(np.eye(3)))
    with pytest.raises(InputError, match=r"saved as 'csc'"):
        NpzRows(tmp_path / "Y.npz")
