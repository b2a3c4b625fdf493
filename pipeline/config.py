"""The experiment file: TOML with a section per stage, checked against the methods' own settings."""

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from xbert.artifacts.errors import InputError, UsageError, XbertError
from xbert.artifacts.kinds.evaluation import COMPARISON, ENSEMBLE
from xbert.pipeline import registry
from xbert.pipeline.memory import free, parse
from xbert.pipeline.registry import MODEL_STAGES, STAGES, did_you_mean
from xbert.stages.base import AUTO, Config, Method

_SHARED = tuple(stage for stage in STAGES if stage not in MODEL_STAGES)
_RUN_KEYS = ("folder", "threads", "memory")
_RESERVED = (ENSEMBLE, COMPARISON)  # what reports say of all models together
_MOST_THREADS = 1024
_LONGEST_NAME = 200  # file systems take 255; what xbert writes inside adds to it


@dataclass(frozen=True)
class Choice:
    """A method and its settings."""

    method: type[Method[Any]]
    config: Config


@dataclass(frozen=True)
class Experiment:
    """What to run and where: the shared stages, and the stages of every model."""

    path: Path
    folder: Path  # the run folder
    threads: int
    memory: int  # bytes a stage may hold at once
    shared: dict[str, Choice]
    models: dict[str, dict[str, Choice]]
    threads_are_set: bool = False  # by the user; else they are all cores

    def threads_of_each(self, processes: int) -> int:
        """Threads of each of so many processes on this machine: the cores are divided, unless the user has said how many."""
        return self.threads if self.threads_are_set else max(1, self.threads // processes)


def read(path: Path, overrides: Iterable[str] = ()) -> Experiment:
    """Read and check an experiment file; `overrides` are `section.key=value` from the command line."""
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path} does not exist: write one with `xbert init linear --train FILE > {path}`") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder, not an experiment file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not valid TOML: {error}") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    for override in overrides:
        _apply(content, override)
    given = tuple(overrides)
    try:
        return _experiment(path, content)
    except InputError as error:
        if given:
            raise UsageError(f"{path} with -o {' -o '.join(given)}: {error}") from None
        raise InputError(f"{path}: {error}") from None


def _apply(content: dict[str, Any], override: str) -> None:
    """Set one key from the command line; a model's key is written model.NAME.section.key."""
    key, equals, text = override.partition("=")
    parts = [part.strip() for part in key.split(".")]
    if not equals or len(parts) < 2 or not all(parts):
        raise UsageError(f"-o {override}: write it as section.key=value, like -o index.clusters=512")
    table: Any = content
    if parts[0] == "model":
        models = content.get("model", [])
        names = {str(each.get("name")): each for each in models if isinstance(each, dict)} if isinstance(models, list) else {}
        if parts[1] not in names:
            raise UsageError(f"-o {override}: there is no model {parts[1]!r}{did_you_mean(parts[1], names)}")
        if len(parts) < 4:
            raise UsageError(f"-o {override}: write it as model.NAME.section.key=value")
        table, parts = names[parts[1]], parts[2:]
    for part in parts[:-1]:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise UsageError(f"-o {override}: {part!r} is not a section")
    table[parts[-1]] = _value(text.strip())


def _value(text: str) -> Any:
    """The text as a TOML value if it is one, else as a plain word."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return parsed["value"] if len(parsed) == 1 else text


def _experiment(path: Path, content: dict[str, Any]) -> Experiment:
    known = ("run", *STAGES, "model")
    for key, value in content.items():
        if key not in known:
            raise InputError(f"there is no section [{key}]{did_you_mean(key, known)}")
        if key != "model" and not isinstance(value, dict):
            raise InputError(f"[{key}] must be a section, not {value!r}")
    base = path.parent
    folder, threads, memory = _run_section(content.get("run", {}), path)
    shared = {stage: _choice(stage, content.get(stage, {}), base) for stage in _SHARED}
    models = _models(content, base)
    for name, choices in models.items():
        for stage, choice in choices.items():
            others = {other: each.config for other, each in choices.items() if other != stage}
            _named(f"model {name}", choice.method.check, choice.config, others)
    threads_are_set = bool(content.get("run", {}).get("threads", 0))
    return Experiment(path, folder, threads, memory, shared, models, threads_are_set)


def _run_section(section: Mapping[str, Any], path: Path) -> tuple[Path, int, int]:
    for key in section:
        if key not in _RUN_KEYS:
            raise InputError(f"[run] has no setting {key!r}{did_you_mean(key, _RUN_KEYS)}")
    folder, threads = section.get("folder", f"runs/{path.stem}"), section.get("threads", 0)
    if not isinstance(folder, str) or not folder or "\0" in folder:
        raise InputError(f"[run] folder = {folder!r}: must be a path")
    if any(len(os.fsencode(part)) > _LONGEST_NAME for part in Path(folder).parts):
        raise InputError(f"[run] folder: a name in it is longer than {_LONGEST_NAME} bytes")
    if not isinstance(threads, int) or isinstance(threads, bool) or not 0 <= threads <= _MOST_THREADS:
        raise InputError(f"[run] threads = {threads!r}: must be a whole number up to {_MOST_THREADS}, 0 for all cores")
    memory = section.get("memory", AUTO)
    if isinstance(memory, bool) or not isinstance(memory, (str, int, float)):
        raise InputError(f"[run] memory = {memory!r}: must be a size like '8G', or {AUTO!r} for what is free")
    size = free() if memory == AUTO else parse(str(memory))
    return path.parent / folder, threads or available_cores(), size


def available_cores() -> int:
    """Cores this process may use, which in a container are fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _models(content: dict[str, Any], base: Path) -> dict[str, dict[str, Choice]]:
    tables = content.get("model", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InputError("write models as [[model]] with a name, in double brackets")
    if not tables:
        method = content.get("match", {}).get("method")
        tables = [{"name": method if isinstance(method, str) else registry.default_method("match")}]
    models: dict[str, dict[str, Choice]] = {}
    for table in tables:
        name = table.get("name")
        if not isinstance(name, str) or not name or "/" in name or name in _RESERVED:
            raise InputError(
                f"[[model]] name = {name!r}: must be a word of its own, without '/', not {' or '.join(map(repr, _RESERVED))}"
            )
        if name in models:
            raise InputError(f"two [[model]] sections have the name {name!r}")
        for key in table:
            if key not in ("name", *MODEL_STAGES):
                raise InputError(f"model {name!r} has no section {key!r}{did_you_mean(key, MODEL_STAGES)}")
            if key != "name" and not isinstance(table[key], dict):
                raise InputError(f"model {name!r}: {key} must be a section, like {key}.seed = 1, not {table[key]!r}")
        merged = {stage: _merged(stage, content.get(stage, {}), table.get(stage, {})) for stage in MODEL_STAGES}
        models[name] = {stage: _named(f"model {name}", _choice, stage, merged[stage], base) for stage in MODEL_STAGES}
    return models


def _merged(stage: str, shared: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """A model's section: its own settings over the shared ones, which mean nothing to another method than theirs."""
    usual = shared.get("method", registry.default_method(stage))
    return dict(own) if own.get("method", usual) != usual else {**shared, **own}


def _named(where: str, function: Any, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except XbertError as error:
        raise type(error)(f"{where}: {error}") from None


def _choice(stage: str, section: Mapping[str, Any], base: Path) -> Choice:
    """The method and settings of one section."""
    values = dict(section)
    name = values.pop("method", registry.default_method(stage))
    method = registry.find(stage, name if isinstance(name, str) else repr(name))
    known = {each.name: each for each in fields(method.config)}
    for key in values:
        if key not in known:
            raise InputError(f"[{stage}] has no setting {key!r}{did_you_mean(key, known)}")
    for key, value in values.items():
        rule = known[key].metadata
        if isinstance(value, str) and value and (rule.get("path") or rule.get("folder")):
            there = Path(os.path.abspath(base / os.path.expanduser(value)))
            if rule.get("path") or there.is_dir():
                values[key] = str(there)
    try:
        return Choice(method, method.config(**values))
    except InputError as error:
        raise InputError(f"[{stage}] {error}") from None
