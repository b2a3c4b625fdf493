"""The real command line under torchrun: two processes learn what one does, and end as one."""

import json
import os
import shutil
import socket
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("transformers")

from safetensors.numpy import load_file

SETTINGS = ("match.freeze_layers=1", "match.at_once=5", "match.patience=2")
OPTIONS = [part for setting in SETTINGS for part in ("-o", setting)]
LONGEST = 540  # seconds


@pytest.fixture(scope="module")
def path(write_neural, tmp_path_factory, xbert):
    """An experiment whose index is made."""
    path = write_neural(tmp_path_factory.mktemp("torchrun"))
    assert xbert("index", path).exit_code == 0
    return path


@pytest.fixture(scope="module")
def alone(path, xbert):
    """The matcher that one process makes."""
    result = xbert("match", path, *OPTIONS)
    assert result.exit_code == 0, result.stderr
    return take(path)


def take(path):
    """History and weights of the matcher that was made, which is then moved away."""
    folder = next((path.parent / "runs" / "e" / "match").glob("neural-*"))
    history = json.loads((folder / "neural_matcher.json").read_text())["history"]
    weights = load_file(folder / "weights.safetensors")
    shutil.rmtree(folder)
    return history, weights


def environment(**more):
    outer = ("WORLD_SIZE", "RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
    return {name: value for name, value in os.environ.items() if name not in outer} | {"OMP_NUM_THREADS": "1", **more}


def torchrun(*arguments):
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "xbert.cli", *map(str, arguments)]
    return subprocess.run(
        [sys.executable, *command], env=environment(), capture_output=True, text=True, timeout=LONGEST, check=False
    )


def assert_alike(found, expected):
    """The same training within rounding."""
    (history, weights), (other_history, other_weights) = found, expected
    assert [entry["epoch"] for entry in history] == [entry["epoch"] for entry in other_history]
    assert [entry["loss"] for entry in history] == pytest.approx([entry["loss"] for entry in other_history], abs=1e-4)
    assert [entry.get("best") for entry in history] == [entry.get("best") for entry in other_history]
    assert weights.keys() == other_weights.keys()
    for name, array in weights.items():
        assert np.allclose(array, other_weights[name], atol=1e-4), name


def test_two_processes_make_the_matcher_that_one_makes(path, alone):
    ended = torchrun("match", path, *OPTIONS)
    assert ended.returncode == 0, ended.stderr
    for sentence in ("index: up to date", "match: running", "2 processes with 1 threads each", "epoch 2: loss", "match: done"):
        assert ended.stderr.count(sentence) == 1, ended.stderr
    assert ended.stdout == ""
    assert_alike(take(path), alone)


def test_two_processes_go_on_from_the_checkpoint_of_one(path, alone, crash, xbert, monkeypatch):
    from functools import partial

    from xbert.stages.match import tuning

    monkeypatch.setattr(tuning, "Plan", partial(tuning.Plan, seconds_between_checkpoints=0.0))
    assert crash.dies_at(22, lambda: xbert("match", path, *OPTIONS))
    ended = torchrun("match", path, *OPTIONS)
    assert ended.returncode == 0, ended.stderr
    assert "which the next run takes up" in ended.stderr
    assert_alike(take(path), alone)


def test_when_the_first_process_fails_all_end_with_one_sentence(path):
    """Its checkpoint does not fit, while the other one waits for it in the middle of the next epoch."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    limited = ["bash", "-c", 'ulimit -f 20; exec "$@"', "limited"]
    command = [sys.executable, "-m", "xbert.cli", "match", str(path), "-o", "match.seed=9"]
    started = [
        subprocess.Popen(
            [*limited, *command] if rank == 0 else command,
            env=environment(RANK=str(rank), WORLD_SIZE="2", LOCAL_WORLD_SIZE="2", **address),
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    said = [process.communicate(timeout=LONGEST)[1] for process in started]
    assert [process.returncode for process in started] == [3, 3], said
    assert "Traceback" not in said[0] + said[1]
    assert [line.startswith("xbert: cannot write") for line in said[0].splitlines()].count(True) == 1
    assert "xbert:" not in said[1]
