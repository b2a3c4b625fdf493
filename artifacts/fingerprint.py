"""What a thing is, by its content: a file by its bytes, a recipe by everything that decides its result."""

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from xbert.artifacts.atomic import write_text
from xbert.artifacts.errors import InputError

_BLOCK = 1 << 20


@dataclass(frozen=True)
class Recipe:
    """All that decides a result. Equal recipes give equal bytes; a changed one gives another folder."""

    stage: str
    method: str
    version: int
    config: dict[str, Any]
    inputs: dict[str, str]  # what it is made of -> fingerprint of an artifact, or sha256 of a file of the user

    @property
    def fingerprint(self) -> str:
        """sha256 over the recipe's canonical JSON."""
        content = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(content.encode("utf-8")).hexdigest()

    @property
    def name(self) -> str:
        """The folder's name: the method, and enough of the fingerprint."""
        return f"{self.method}-{self.fingerprint[:12]}"


def file_sha256(path: Path) -> str:
    """sha256 of a file's bytes, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


class FileDigests:
    """sha256 of the user's files, remembered in `path` while a file's size, times and inode stay as they were."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            known = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError):
            known = {}
        self._known: dict[str, Any] = known if isinstance(known, dict) else {}

    def of(self, path: Path) -> str:
        """The file's sha256."""
        try:
            stat = os.stat(path)
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror or error}") from None
        key, state = str(path.resolve()), [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]
        entry = self._known.get(key)
        if not isinstance(entry, dict) or entry.get("state") != state:
            try:
                entry = self._known[key] = {"state": state, "sha256": file_sha256(path)}
            except OSError as error:
                raise InputError(f"cannot read {path}: {error.strerror or error}") from None
        return str(entry["sha256"])

    def save(self) -> None:
        """Remember for the next command."""
        write_text(self._path, json.dumps(self._known, indent=1, sort_keys=True) + "\n")
