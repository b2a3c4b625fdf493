"""Rows on disk, written block by block."""

import io
import shutil
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from xbert.artifacts.arrays import Array, load_array
from xbert.stages.neural.frozen_parts import NotKept


class RowFile:
    """An .npy file of rows. It needs no care when written: what a crash left half done has another checksum."""

    def __init__(self, path: Path, n_rows: int, width: int, dtype: type[np.floating[Any]]) -> None:
        self.path, self.dtype, self.row = path, dtype, width * np.dtype(dtype).itemsize
        header = io.BytesIO()
        facts = {"descr": npy.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": (n_rows, width)}
        npy.write_array_header_1_0(header, facts)
        self._header = header.getvalue()
        self.size = len(self._header) + n_rows * self.row

    def make(self) -> None:
        """An empty file, unless there is one that may hold rows already."""
        if not self._is_ours():
            left = shutil.disk_usage(self.path.parent).free
            if self.size > 0.9 * left:
                raise NotKept(f"what they give takes {self.size / 1e9:.1f} GB on disk, and there are {left / 1e9:.1f} GB left")
            with self.path.open("wb") as stream:
                stream.write(self._header)
                stream.truncate(self.size)

    def _is_ours(self) -> bool:
        if not self.path.exists() or self.path.stat().st_size != self.size:
            return False
        with self.path.open("rb") as stream:
            return stream.read(len(self._header)) == self._header

    def write(self, first: int, rows: Array) -> None:
        """Put rows at their place. Written, not mapped: a full disk is then an error and not the end of the process."""
        with self.path.open("r+b") as stream:
            stream.seek(len(self._header) + first * self.row)
            stream.write(rows.view(np.uint8).data)

    def checksum(self, first: int, last: int) -> int:
        """Of the rows that are there."""
        with self.path.open("rb") as stream:
            stream.seek(len(self._header) + first * self.row)
            return zlib.crc32(stream.read((last - first) * self.row))

    def open(self) -> Array:
        """All rows, mapped."""
        return load_array(self.path, self.dtype, ndim=2)
