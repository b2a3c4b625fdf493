"""Recipes, and the full commented experiment file that `xbert init` writes from one."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import Any

from xbert.artifacts.errors import InputError, UsageError
from xbert.pipeline import registry
from xbert.pipeline.registry import STAGES, did_you_mean
from xbert.stages.base import AUTO

_ABOUT = {
    "data": "The corpus: documents, labels, splits. Paths are relative to this file.",
    "features": "Text to TF-IDF rows of unit length.",
    "index": "Stage 1: label embeddings and clusters.",
    "match": "Stage 2: which clusters may hold a document's labels.",
    "rank": "Stage 3: the order of the labels inside those clusters.",
    "ensemble": "Several models made one; used where there are several [[model]] sections.",
    "evaluate": "Metrics and the report.",
}


def recipes() -> dict[str, dict[str, Any]]:
    """The recipes of the package: name -> content."""
    folder = resources.files("xbert.pipeline.recipes")
    found = sorted((each for each in folder.iterdir() if each.name.endswith(".toml")), key=lambda each: each.name)
    return {each.name.removesuffix(".toml"): tomllib.loads(each.read_text("utf-8")) for each in found}


def find(name: str) -> dict[str, Any]:
    """One recipe; an unknown name is an error that names the nearest."""
    known = recipes()
    if name not in known:
        raise UsageError(f"there is no recipe {name!r}{did_you_mean(name, known)}; there is {', '.join(known)}")
    return known[name]


def render(name: str, data: Mapping[str, Any], settings: Mapping[str, Mapping[str, Any]] | None = None) -> str:
    """The whole experiment file: every setting with its meaning, the recipe's values, and the user's files."""
    recipe = find(name)
    lines = [f"# {recipe['about']}", f"# Written by `xbert init {name}`; every setting is shown with its meaning.", ""]
    lines += ["[run]", '# folder = "runs/NAME"   # where results go; by default runs/ and the name of this file']
    lines += ["threads = 0   # cores to use; 0 for all"]
    lines += ['memory = "auto"   # most memory to use, like "8G"; auto for what is free', ""]
    for stage in STAGES:
        chosen = {**recipe.get(stage, {}), **(settings or {}).get(stage, {}), **(data if stage == "data" else {})}
        lines += [f"# {_ABOUT[stage]}", f"[{stage}]", *_section(stage, chosen), ""]
    for model in recipe.get("model", []):
        lines += ["[[model]]", f"name = {_toml(model['name'])}"]
        overrides = {key: section for key, section in model.items() if key != "name"}
        lines += [f"{stage}.{key} = {_toml(value)}" for stage, section in overrides.items() for key, value in section.items()]
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def _section(stage: str, chosen: Mapping[str, Any]) -> list[str]:
    name = chosen.get("method", registry.default_method(stage))
    method = registry.find(stage, name)
    lines = [f"method = {_toml(name)}" + _comment(f"one of: {', '.join(registry.METHODS[stage])}")]
    for each in fields(method.config):
        value = chosen.get(each.name, each.default)
        choices = each.metadata.get("choices")
        about = each.metadata["help"] + (f"; one of {', '.join(map(str, choices))}" if choices else "")
        lines.append(f"{each.name} = {_toml(value)}{_comment(about)}")
    return lines


def _comment(text: str) -> str:
    return f"   # {text}"


def _toml(value: Any) -> str:
    """A TOML value: JSON writes strings, numbers and booleans the same way."""
    return json.dumps(value, ensure_ascii=False)


def settings_for(data: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What the user's files ask for beyond the recipe: a corpus of features without text takes them as given."""
    from xbert.stages.corpus.sources import detect

    path, form = Path(data.get("train", "")), data.get("format", AUTO)
    if form == AUTO and path.is_file():
        try:
            form = detect("train", path, AUTO, "__label__")
        except InputError:
            return {}  # whoever runs the file will be told what is wrong with it
    return {"features": {"method": "given"}} if form == "xmc" else {}
