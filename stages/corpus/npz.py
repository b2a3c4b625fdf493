"""A 0/1 matrix in scipy's .npz, read row by row: no pickle, and never more memory than the rows asked for."""

import math
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Self

import numpy as np

from xbert.artifacts.arrays import Array, read_header
from xbert.artifacts.errors import InputError
from xbert.artifacts.sparse import Sparse

_LARGEST = 2**31 - 1
_PLAUSIBLE = 10_000_000
_STEP = 1 << 20


@contextmanager
def _archive_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError, RuntimeError, ValueError) as error:
        # RuntimeError is zipfile's word for an encrypted member, NotImplementedError for a packing it does not know.
        raise InputError(f"{path.name} is not a sound .npz matrix ({error}); fetch or save it again") from None
    except (SyntaxError, tokenize.TokenError):
        raise InputError(f"{path.name} is not a sound .npz matrix (a header is malformed); fetch it again") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None


class _Member:
    """One array of the archive, read front to back."""

    def __init__(self, archive: zipfile.ZipFile, name: str, kinds: str) -> None:
        self.name = name
        info = archive.getinfo(f"{name}.npy")
        self._stream: IO[bytes] = archive.open(info)
        self.shape, fortran, self.dtype = read_header(self._stream)
        promised = math.prod(self.shape) * self.dtype.itemsize
        if self.dtype.kind not in kinds or (fortran and len(self.shape) > 1):
            raise ValueError(f"'{name}' holds {self.dtype}")
        if self._stream.tell() + promised != info.file_size:
            raise ValueError(f"'{name}' promises {promised} bytes, which it does not have")

    def __len__(self) -> int:
        return math.prod(self.shape)

    def take(self, count: int) -> Array:
        """The next entries; memory grows as they are unpacked, not as a header promises."""
        parts, left = [], count * self.dtype.itemsize
        while left:
            part = self._stream.read(min(left, _STEP))
            if not part:
                raise ValueError(f"'{self.name}' ends early")
            parts.append(part)
            left -= len(part)
        return np.frombuffer(b"".join(parts), self.dtype)


class NpzRows:
    """The rows of a matrix saved by `scipy.sparse.save_npz`, in order. Entries that are zero are no labels."""

    def __init__(self, path: Path) -> None:
        self._path, self._last, self._done = path, 0, 0
        with _archive_errors(path):
            self._archive = zipfile.ZipFile(path)
            self.n_rows, self.n_cols = self._check_form()
            self._indptr = _Member(self._archive, "indptr", "iu")
            self._indices = _Member(self._archive, "indices", "iu")
            self._data = _Member(self._archive, "data", "iufb")
            if len(self._indptr) != self.n_rows + 1 or len(self._data) != len(self._indices):
                raise ValueError("its arrays differ in length")
            if self.n_cols > max(len(self._indices), _PLAUSIBLE) or self.n_cols > _LARGEST:
                raise ValueError(f"it promises {self.n_cols} labels, more than it has entries")
            if self._indptr.take(1)[0] != 0:
                raise ValueError("its row pointers do not start at 0")

    def _check_form(self) -> tuple[int, int]:
        form, shape = _Member(self._archive, "format", "SU"), _Member(self._archive, "shape", "iu")
        if len(form) != 1 or form.dtype.itemsize > 16 or len(shape) != 2:
            raise ValueError("'format' or 'shape' is not what scipy writes")
        written = str(form.take(1).astype("U")[0])
        if written != "csr":
            raise ValueError(f"it is saved as {written!r}, not as 'csr'")
        n_rows, n_cols = map(int, shape.take(2))
        if n_rows < 0 or n_cols < 1:
            raise ValueError(f"its shape is {n_rows} x {n_cols}")
        return n_rows, n_cols

    @property
    def left(self) -> int:
        """Rows not yet taken."""
        return self.n_rows - self._done

    def take(self, count: int) -> tuple[Sparse, int]:
        """The next rows with their columns sorted, and how many columns stood twice in a row."""
        with _archive_errors(self._path):
            ends = self._indptr.take(count).astype(np.int64)
            indptr = np.concatenate([[self._last], ends])
            lengths = np.diff(indptr)
            if (lengths < 0).any() or (ends < self._last).any() or (ends > len(self._indices)).any():
                raise ValueError(f"row pointers fall or overrun after row {self._done + 1}")
            entries = int(indptr[-1]) - self._last
            columns, values = self._indices.take(entries).astype(np.int64), self._data.take(entries)
            self._check_entries(columns, values)
            self._last, self._done = int(indptr[-1]), self._done + count
            if self._done == self.n_rows and self._last != len(self._indices):
                raise ValueError("it holds entries after its last row")
        rows = np.repeat(np.arange(count), lengths)[values != 0]
        cells, kept = rows * self.n_cols + columns[values != 0], np.zeros(count + 1, np.int64)
        unique = np.unique(cells)
        np.cumsum(np.bincount(unique // self.n_cols, minlength=count), out=kept[1:])
        return Sparse(kept, (unique % self.n_cols).astype(np.int32), None, self.n_cols), len(cells) - len(unique)

    def _check_entries(self, columns: Array, values: Array) -> None:
        if len(columns) and (columns.min() < 0 or columns.max() >= self.n_cols):
            raise ValueError(f"a label lies outside 0..{self.n_cols - 1} after row {self._done + 1}")
        if values.dtype.kind in "if" and not (np.isfinite(values).all() and (values >= 0).all()):
            raise ValueError(f"an entry is negative or not a number after row {self._done + 1}")

    def close(self) -> None:
        """Let go of the file."""
        self._archive.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
