"""What every kind of artifact can do."""

import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

from xbert.artifacts.atomic import write_text
from xbert.artifacts.errors import ArtifactError


class Artifact(ABC):
    """A result that can be kept: it saves itself as plain files and checks itself when built."""

    kind: ClassVar[str]
    format: ClassVar[int]

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write every file into `folder`; a mapped array that is there already is left alone."""

    @classmethod
    @abstractmethod
    def load(cls, folder: Path) -> Self:
        """Open what `save` wrote; arrays are mapped, not read."""

    @abstractmethod
    def summary(self) -> dict[str, Any]:
        """A few facts for a person: sizes, counts."""


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON object with a fixed layout, so that equal content is equal bytes."""
    write_text(path, json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; a missing or malformed one is a damaged artifact."""
    try:
        content = json.loads(path.read_bytes().decode("utf-8"))
    except FileNotFoundError:
        raise ArtifactError(f"{path} is missing: the artifact is damaged; remove its folder and run again") from None
    except ValueError as error:
        raise ArtifactError(f"{path} is not JSON ({error}); remove its folder and run again") from None
    if not isinstance(content, dict):
        raise ArtifactError(f"{path} holds no JSON object; remove its folder and run again")
    return content
