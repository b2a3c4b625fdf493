"""Arrays and string tables on disk: .npy only, no pickle, headers checked against the file before anything is allocated."""

import io
import mmap
import os
import sys
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, overload

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from xbert.artifacts.errors import ArtifactError

Array = NDArray[Any]
_MAX_HEADER = 10_000
_MAP_NORESERVE = 0x4000  # Linux; Python names it from 3.12 on


def save_array(path: Path, array: Array) -> None:
    """Write an array and wait for the disk. An array that already lives in that file is left alone."""
    home = _home(array)
    if home is not None and home.path == path and home.content == array.nbytes:
        return
    array = np.ascontiguousarray(array)
    with path.open("wb") as stream:
        npy.write_array_header_1_0(stream, npy.header_data_from_array_1_0(array))
        stream.write(array.reshape(-1).view(np.uint8).data)  # numpy's own writing hides why the disk refused
        stream.flush()
        os.fsync(stream.fileno())


def load_array(path: Path, dtype: DTypeLike, ndim: int = 1) -> Array:
    """Map an array read-only, after checking that its header tells the truth about the file."""
    try:
        with path.open("rb") as stream:
            shape, fortran, found = read_header(stream)
            start, size = stream.tell(), os.fstat(stream.fileno()).st_size
    except FileNotFoundError:
        raise ArtifactError(f"{path} is missing: the artifact is damaged; remove its folder and run again") from None
    except (ValueError, EOFError, SyntaxError, tokenize.TokenError) as error:
        raise ArtifactError(f"{path} is not an array file ({error}); remove its folder and run again") from None
    wanted = np.dtype(dtype)
    if found != wanted or len(shape) != ndim or fortran:
        raise ArtifactError(
            f"{path} holds {found} of {len(shape)} dimensions, not {wanted} of {ndim}: it is not what this kind keeps"
        )
    count = 1
    for length in shape:
        count *= length
    if start + count * wanted.itemsize != size:
        raise ArtifactError(f"{path} has {size} bytes where its header promises {start + count * wanted.itemsize}")
    if count == 0:
        return np.empty(shape, wanted)
    return np.frombuffer(_map(path, size, count * wanted.itemsize), wanted, count, start).reshape(shape)


class _Mapping(mmap.mmap):
    """A mapped file that remembers which one it is."""

    path: Path
    content: int


def _map(path: Path, size: int, content: int) -> _Mapping:
    """Map a file so that it cannot be changed through the mapping.

    Private and writable rather than read-only: numba compiles a kernel anew for read-only arrays. Without a reservation,
    so that a file larger than memory can be mapped.
    """
    with path.open("rb") as stream:
        flags = mmap.MAP_PRIVATE | (_MAP_NORESERVE if sys.platform == "linux" else 0)
        mapping = _Mapping(stream.fileno(), size, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    mapping.path, mapping.content = path, content
    return mapping


def _home(array: Array) -> _Mapping | None:
    """The mapped file an array is a view of."""
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    return base if isinstance(base, _Mapping) else None


def read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """The shape, the order and the type an .npy stream promises; ValueError if it is none."""
    version = npy.read_magic(stream)
    if version == (1, 0):
        return npy.read_array_header_1_0(stream, max_header_size=_MAX_HEADER)
    if version == (2, 0):
        return npy.read_array_header_2_0(stream, max_header_size=_MAX_HEADER)
    raise ValueError(f"npy version {version}")


class ArrayWriter:
    """A one-dimensional .npy file that grows: for arrays larger than memory."""

    def __init__(self, path: Path, dtype: DTypeLike) -> None:
        self.path, self.dtype, self.length = path, np.dtype(dtype), 0
        self._stream = path.open("wb")
        self._stream.write(self._header())

    def _header(self) -> bytes:
        # numpy pads the header for a growing first axis, so the final one has the same length as the first.
        buffer = io.BytesIO()
        npy.write_array_header_1_0(
            buffer, {"descr": npy.dtype_to_descr(self.dtype), "fortran_order": False, "shape": (self.length,)}
        )
        return buffer.getvalue()

    def append(self, values: Array) -> None:
        """Add values at the end."""
        self._stream.write(np.ascontiguousarray(values, self.dtype).tobytes())
        self.length += len(values)

    def close(self) -> Array:
        """Write the true length into the header, wait for the disk, and map the result."""
        self._stream.seek(0)
        self._stream.write(self._header())
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._stream.close()
        return load_array(self.path, self.dtype)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._stream.close()


class Strings(Sequence[str]):
    """A read-only table of strings: one UTF-8 blob and the offsets of its entries, mapped from disk."""

    def __init__(self, blob: Array, offsets: Array) -> None:
        if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(blob) or (np.diff(offsets) < 0).any():
            raise ArtifactError("a string table's offsets do not fit its text: the artifact is damaged")
        self.blob, self.offsets = blob, offsets

    @classmethod
    def of(cls, strings: Iterable[str]) -> Self:
        """Build a table in memory."""
        parts = [string.encode("utf-8") for string in strings]
        offsets = np.zeros(len(parts) + 1, np.int64)
        np.cumsum([len(part) for part in parts], out=offsets[1:])
        return cls(np.frombuffer(b"".join(parts), np.uint8), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        at %= len(self)
        try:
            return self.blob[self.offsets[at] : self.offsets[at + 1]].tobytes().decode("utf-8")
        except UnicodeDecodeError:
            raise ArtifactError(f"entry {at} of a string table is not UTF-8: the artifact is damaged") from None

    def __iter__(self) -> Iterator[str]:
        return (self[i] for i in range(len(self)))

    def save(self, folder: Path, name: str) -> None:
        """Write `name.blob.npy` and `name.offsets.npy`."""
        save_array(folder / f"{name}.blob.npy", self.blob)
        save_array(folder / f"{name}.offsets.npy", self.offsets)

    @classmethod
    def load(cls, folder: Path, name: str) -> Self:
        """Map what `save` or a StringsWriter wrote."""
        return cls(load_array(folder / f"{name}.blob.npy", np.uint8), load_array(folder / f"{name}.offsets.npy", np.int64))


class StringsWriter:
    """A string table that grows on disk: for texts larger than memory."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name, self._end = folder, name, 0
        self._blob = ArrayWriter(folder / f"{name}.blob.npy", np.uint8)
        self._offsets = ArrayWriter(folder / f"{name}.offsets.npy", np.int64)
        self._offsets.append(np.zeros(1, np.int64))

    def append(self, strings: Iterable[str]) -> None:
        """Add strings at the end; give many at a time."""
        parts = [string.encode("utf-8") for string in strings]
        self.append_encoded(b"".join(parts), np.array([len(part) for part in parts], np.int64))

    def append_encoded(self, blob: bytes, lengths: Array) -> None:
        """Add strings that are UTF-8 already: their bytes end to end, and the length of each."""
        self._blob.append(np.frombuffer(blob, np.uint8))
        self._offsets.append(self._end + np.cumsum(lengths))
        self._end += len(blob)

    def close(self) -> Strings:
        """Wait for the disk, and map the table."""
        return Strings(self._blob.close(), self._offsets.close())
