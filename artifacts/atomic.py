"""Writing that a crash cannot leave half done: bytes reach the disk before their name does."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from xbert.artifacts.errors import StorageError

_REFUSALS = {
    errno.ENOSPC: "the disk is full; free some space",
    errno.EDQUOT: "the disk quota is used up; free some space",
    errno.EFBIG: "the file grew past the largest size allowed here; raise the limit (ulimit -f)",
    errno.EROFS: "the file system is read-only; choose another run folder",
    errno.EACCES: "permission denied; choose a run folder you may write to",
    errno.EPERM: "operation not permitted; choose a run folder you may write to",
}


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn the file system's refusals below `path` into one sentence."""
    try:
        yield
    except OSError as error:
        why = _REFUSALS.get(error.errno or 0)
        if why is None:
            raise
        raise StorageError(f"cannot write {error.filename or path}: {why}, and run the same command again") from error


def make_folder(path: Path) -> None:
    """Make a folder and those above it; one sentence where it cannot be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = _REFUSALS.get(error.errno or 0, f"{error.strerror}; choose another run folder")
        raise StorageError(f"cannot make the folder {path}: {why}, and run the same command again") from None


def sync_file(path: Path) -> None:
    """Wait until the file's bytes are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Wait until the folder's entries (new names, renames) are on the disk."""
    sync_file(path)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a small file whole: under another name first, on the disk, then renamed into place."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")  # a name of its own: others may write the same file
    with part.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(part, path)
    sync_folder(path.parent)


def write_text(path: Path, content: str) -> None:
    """As write_bytes, for UTF-8 text."""
    write_bytes(path, content.encode("utf-8"))


def rename_folder(source: Path, target: Path) -> None:
    """Give a finished folder its final name, durably."""
    os.rename(source, target)
    sync_folder(target.parent)


def remove_folder(path: Path) -> None:
    """Remove a folder if it is there: renamed first, so that a half-removed one never bears a good name."""
    doomed = path.with_name(f".doomed-{path.name}")
    if doomed.exists():  # left by a crash
        shutil.rmtree(doomed)
    if path.exists():
        os.rename(path, doomed)
        shutil.rmtree(doomed)
