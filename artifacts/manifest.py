"""The manifest: written last, it says what the folder is, and size and sha256 of every file in it."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from xbert.artifacts.errors import ArtifactError
from xbert.artifacts.fingerprint import Recipe, file_sha256
from xbert.artifacts.kinds.base import Artifact, read_json, write_json

FORMAT = 1
NAME = "manifest.json"
_ADVICE = "remove that folder and run again, or run with --force"


@dataclass(frozen=True)
class Manifest:
    """What a finished folder says of itself."""

    kind: str
    kind_format: int
    recipe: Recipe
    files: dict[str, dict[str, Any]]  # name -> {"size": bytes, "sha256": hex}

    def write(self, folder: Path) -> None:
        """Write manifest.json: from then on the folder is whole."""
        write_json(folder / NAME, {"format": FORMAT, **asdict(self)})

    @classmethod
    def of(cls, folder: Path, recipe: Recipe, kind: type[Artifact]) -> "Manifest":
        """Describe the files of a folder."""
        files = {
            path.name: {"size": path.stat().st_size, "sha256": file_sha256(path)}
            for path in sorted(folder.iterdir())
            if path.is_file() and path.name != NAME
        }
        return cls(kind.kind, kind.format, recipe, files)

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """Read a folder's manifest; refuses what is damaged, foreign or newer."""
        if not (folder / NAME).exists():
            raise ArtifactError(f"{folder} has no {NAME}: it was not made by xbert, or is damaged; {_ADVICE}")
        content = read_json(folder / NAME)
        found = content.get("format")
        if not isinstance(found, int):
            raise ArtifactError(f"{folder / NAME} has no format number: it was not made by xbert; {_ADVICE}")
        if found > FORMAT:
            raise ArtifactError(
                f"{folder} is of format {found}, this xbert reads up to {FORMAT}: install a newer xbert to read it"
            )
        try:
            recipe = Recipe(**content["recipe"])
            if not isinstance(recipe.config, dict) or not isinstance(recipe.inputs, dict):
                raise TypeError("its recipe has no settings")
            return cls(content["kind"], int(content["kind_format"]), recipe, dict(content["files"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ArtifactError(f"{folder / NAME} is malformed ({error}); {_ADVICE}") from None

    def check(self, folder: Path, kind: type[Artifact]) -> None:
        """Refuse a folder of another kind, of a newer format, under a wrong name, or with files missing or cut."""
        if self.kind != kind.kind:
            raise ArtifactError(f"{folder} is a {self.kind}, not a {kind.kind}: it does not belong there; {_ADVICE}")
        if self.kind_format > kind.format:
            raise ArtifactError(
                f"{folder} is a {self.kind} of format {self.kind_format}, this xbert reads up to {kind.format}: "
                "install a newer xbert to read it"
            )
        if self.recipe.name != folder.name.removeprefix(".partial-"):
            raise ArtifactError(f"{folder} holds {self.recipe.name}: it was renamed or comes from elsewhere; {_ADVICE}")
        for name, facts in self.files.items():
            path = folder / name
            size = path.stat().st_size if path.is_file() else None
            if size is None:
                raise ArtifactError(f"{path} is missing: the artifact is damaged; {_ADVICE}")
            if size != facts.get("size"):
                raise ArtifactError(f"{path} has {size} bytes instead of {facts.get('size')}: damaged; {_ADVICE}")

    def verify(self, folder: Path) -> None:
        """Read every byte and compare the checksums."""
        for name, facts in self.files.items():
            if file_sha256(folder / name) != facts.get("sha256"):
                raise ArtifactError(f"{folder / name} does not match its checksum: the artifact is damaged; {_ADVICE}")
