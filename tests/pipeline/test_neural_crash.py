"""SIGKILL in the middle of fine-tuning, over and over: the weights come out as if nothing had happened."""

import io
import itertools
import json
from functools import partial

import pytest

pytest.importorskip("transformers")

from transformers.models.bert import modeling_bert  # noqa: F401  loaded once, not in every child

from xbert.artifacts.store import PIECES
from xbert.pipeline.config import read
from xbert.pipeline.console import Console
from xbert.pipeline.log import read as read_log
from xbert.pipeline.runner import Runner
from xbert.stages.match import tuning
from xbert.stages.neural import arithmetic


@pytest.fixture
def tune(write_neural, tmp_path, monkeypatch):
    """tune(settings) fine-tunes with a checkpoint after every step; what is measured to be faster is left out of it."""
    path = write_neural(tmp_path)
    Runner(read(path), Console(quiet=True)).run(["index"])
    monkeypatch.setattr(tuning, "Plan", partial(tuning.Plan, seconds_between_checkpoints=0.0))
    monkeypatch.setattr(arithmetic, "fastest", lambda candidates, step: candidates[0])

    def run(settings=(), console=None):
        Runner(read(path, settings), console or Console(quiet=True)).run(["match"])

    return run


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "runs" / "e"


@pytest.mark.parametrize(
    "settings",
    [("match.dropout=0.3",), ("match.at_once=5", "match.freeze_layers=1", "match.patience=1"), ("match.epochs=1",)],
)
def test_fine_tuning_killed_over_and_over_ends_in_the_same_bytes(tune, folder, crash, settings):
    assert crash.in_child(lambda: tune(settings)) == 0
    whole = crash.contents(folder)
    assert sum(name.endswith("weights.safetensors") for name in whole) == 1
    log = next((folder / "logs").glob("match-*.jsonl"))
    told = list(read_log(log))
    (folder / "match").rename(folder.parent / "whole")
    log.unlink()
    # 3 writes a checkpoint, so it gets on each time; at the end there are more in one piece, so at last it is let through.
    for attempts, point in enumerate(itertools.chain((10, 12, 14) * 5, itertools.repeat(60))):
        if not crash.dies_at(point, lambda: tune(settings)):
            break
        assert attempts < 60
    assert attempts >= 3
    assert crash.contents(folder) == whole
    steps = [entry for entry in told if "train/loss" in entry]
    assert [entry for entry in read_log(log) if "train/loss" in entry] == steps


def test_a_run_that_goes_on_says_so(tune, folder, crash):
    assert crash.dies_at(24, tune)
    pieces = next((folder / "match").glob(f".partial-*/{PIECES}"))
    assert sorted(path.stem for path in pieces.glob("*.npz"))[:2] == ["arithmetic", "best"]
    stream = io.StringIO()

    def go_on():
        tune(console=Console(stream=stream))
        said = stream.getvalue()
        assert "interrupted with 3 finished pieces, which the next run takes up" in said
        assert "epoch 1: loss" in said
        assert "epoch 2: loss" in said

    assert crash.in_child(go_on) == 0


def test_every_step_and_every_validation_is_logged(tune, folder, crash):
    assert crash.in_child(tune) == 0
    entries = [json.loads(line) for line in next((folder / "logs").glob("match-*.jsonl")).read_text().splitlines()]
    assert [entry["step"] for entry in entries if "train/loss" in entry] == list(range(1, 9))
    assert all(entry.keys() == {"step", "train/loss", "train/rate"} for entry in entries if "train/loss" in entry)
    assert [entry["step"] for entry in entries if "valid/P@5" in entry] == [4, 8]
    assert not any(path.name.endswith(".jsonl") for path in (folder / "match").rglob("*"))
