"""The house rules that can be read off the source."""

import ast
import configparser
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("artifacts", "stages", "pipeline", "cli")
SHARED_STAGES = {"base", "kernels", "metrics", "neural"}
SOURCES = [ROOT / "__init__.py", ROOT / "cli.py", *(p for layer in LAYERS[:3] for p in sorted((ROOT / layer).rglob("*.py")))]


def imports(path):
    """Modules of xbert that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "xbert":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "xbert")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_down_the_layers_and_never_across_stages(path):
    here = path.relative_to(ROOT).with_suffix("").parts
    for module in imports(path):
        there = module.split(".")[1:]
        if here[0] in LAYERS and there and there[0] in LAYERS:
            assert LAYERS.index(there[0]) <= LAYERS.index(here[0]), f"{path.name} imports {module}"
        if here[0] == "stages" and there[0] == "stages" and len(here) > 2:
            assert there[1] == here[1] or there[1] in SHARED_STAGES, f"{path.name} imports {module}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_pickle_no_assert_no_catch_all_no_click_outside_the_command_line(path):
    text = path.read_text("utf-8")
    tree = ast.parse(text)
    assert not any(isinstance(node, ast.Assert) for node in ast.walk(tree))
    assert not re.search(r"import pickle|allow_pickle=True|except Exception|except:", text)
    assert path.name == "cli.py" or "import click" not in text


def test_setup_cfg_lists_every_package_on_disk():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    listed = set(config["options"]["packages"].split())
    found = {
        ".".join(("xbert", *path.parent.relative_to(ROOT).parts))
        for layer in LAYERS[:3]
        for path in (ROOT / layer).rglob("__init__.py")
    }
    assert listed == found | {"xbert"}


def test_only_the_package_and_the_command_line_are_python_files_of_the_root():
    assert {path.name for path in ROOT.glob("*.py")} == {"__init__.py", "cli.py"}


def test_constraints_pin_everything_a_plain_install_needs():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    needed = {re.split(r"[<>=!~]", line)[0] for line in config["options"]["install_requires"].split("\n") if line}
    pinned = {line.split("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line}
    assert needed <= pinned


def test_python_is_new_enough():
    assert sys.version_info >= (3, 11)
