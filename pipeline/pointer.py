"""model.json in a run folder: which artifacts make up the finished model, so that it can be used without its experiment."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xbert.artifacts.errors import ArtifactError, StaleError
from xbert.artifacts.kinds.base import read_json, write_json
from xbert.artifacts.store import Store
from xbert.pipeline.graph import Graph, Node

NAME = "model.json"
FORMAT = 1


@dataclass(frozen=True)
class Pointer:
    """Folders of the artifacts, relative to the run folder: of the data, of each model's stages, of the ensemble."""

    data: str
    models: dict[str, dict[str, str]]
    ensemble: str | None


def of(graph: Graph, store: Store) -> Pointer:
    """The artifacts a graph stands for."""

    def place(node: Node) -> str:
        return store.path(node.recipe).relative_to(store.folder).as_posix()

    models = {name: {stage: place(node) for stage, node in made.items()} for name, made in graph.models.items()}
    return Pointer(place(graph.nodes[0]), models, place(graph.ensemble) if graph.ensemble else None)


def write(folder: Path, graph: Graph, store: Store) -> None:
    """Write model.json, unless it says the same already."""
    now = of(graph, store)
    content: dict[str, Any] = {"format": FORMAT, "data": now.data, "models": now.models, "ensemble": now.ensemble}
    if _content(folder) != content:
        write_json(folder / NAME, content)


def _content(folder: Path) -> dict[str, Any] | None:
    try:
        return read_json(folder / NAME)
    except ArtifactError:
        return None  # missing or damaged: it is written anew


def read(folder: Path) -> Pointer:
    """Read a run folder's model.json."""
    if not (folder / NAME).exists():
        raise StaleError(f"{folder} holds no finished model: run the experiment first (`xbert run EXPERIMENT.toml`)")
    content = _content(folder)
    if content is None:
        raise ArtifactError(f"{folder / NAME} is damaged: run the experiment again, which writes it anew")
    found = content.get("format")
    if not isinstance(found, int) or found > FORMAT:
        raise ArtifactError(f"{folder / NAME} is of format {found}, this xbert reads up to {FORMAT}: install a newer xbert")
    try:
        pointer = Pointer(content["data"], content["models"], content["ensemble"])
        places = [pointer.data, *(place for model in pointer.models.values() for place in model.values())]
        if any(".." in Path(place).parts or Path(place).is_absolute() for place in places):
            raise ArtifactError(f"{folder / NAME} points outside the run folder: it was not made by xbert")
        return pointer
    except (KeyError, TypeError, AttributeError) as error:
        raise ArtifactError(f"{folder / NAME} lacks {error}: the run folder is damaged; run the experiment again") from None
