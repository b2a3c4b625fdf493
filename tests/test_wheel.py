"""What a user installs: the wheel alone, in an empty environment, away from the checkout."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """An environment with the wheel in it; its dependencies are those of the running interpreter."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", folder, ROOT]
    subprocess.run(build, check=True, cwd=folder)
    (wheel,) = folder.glob("xbert-*.whl")
    venv.create(folder / "env", with_pip=False)
    site = next((folder / "env" / "lib").glob("python*/site-packages"))
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", site, wheel], check=True)
    here = next(Path(path) for path in sys.path if path.endswith("site-packages"))
    (site / "dependencies.pth").write_text(f"{here}\n")
    environment = {**os.environ, "PYTHONPATH": ""}

    def call(*arguments, cwd, stdin=None):
        command = [folder / "env" / "bin" / "python", "-m", "xbert.cli", *map(str, arguments)]
        return subprocess.run(command, cwd=cwd, env=environment, input=stdin, capture_output=True, text=True, check=False)

    call.site = site
    return call


def test_the_wheel_is_what_runs(installed, tmp_path):
    python = installed.site.parents[2] / "bin" / "python"
    code = "import xbert; print(xbert.__file__)"
    found = subprocess.run([python, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found.stdout.startswith(str(installed.site))


def test_help_init_run_and_predict_work_from_the_wheel(installed, corpus):
    assert "Exit codes" in installed("--help", cwd=corpus).stdout
    written = installed("init", "linear", "--train", "train.jsonl", "--labels", "labels.jsonl", cwd=corpus)
    (corpus / "e.toml").write_text(written.stdout.replace('clusters = "auto"', "clusters = 8"))
    ran = installed("run", "e.toml", cwd=corpus)
    assert ran.returncode == 0, ran.stderr
    answer = installed("predict", "e.toml", "-", cwd=corpus, stdin="w3x1 w3x2\n")
    assert '"L3"' in answer.stdout


def test_the_wheel_holds_no_tests_and_the_type_marker(installed):
    files = {path.relative_to(installed.site).as_posix() for path in (installed.site / "xbert").rglob("*") if path.is_file()}
    assert "xbert/py.typed" in files
    assert "xbert/pipeline/recipes/linear.toml" in files
    assert not any("test" in name for name in files)
