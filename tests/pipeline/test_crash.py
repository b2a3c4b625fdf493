"""SIGKILL at every write point of every stage: nothing half-written counts, and the rerun gives the same bytes."""

import io

import pytest

from xbert.pipeline.config import read
from xbert.pipeline.console import Console
from xbert.pipeline.registry import STAGES
from xbert.pipeline.runner import Runner


def run(path, stages=STAGES):
    Runner(read(path), Console(stream=io.StringIO())).run(stages)


@pytest.fixture
def small(tmp_path, jsonl, documents):
    """A corpus small enough to be run a hundred times, with made splits and two models."""
    jsonl(tmp_path / "train.jsonl", documents(60, 12))
    (tmp_path / "e.toml").write_text(
        '[run]\nthreads = 1\n[data]\ntrain = "train.jsonl"\n[index]\nclusters = 4\n'
        '[match]\ntrain_scores = "out-of-fold"\nfolds = 2\n[rank]\nnegatives = "tfn+man"\n[evaluate]\nbootstrap = 20\n'
        '[[model]]\nname = "a"\n[[model]]\nname = "b"\nindex.seed = 1\n'
    )
    return tmp_path / "e.toml"


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_killed_at_any_write_is_made_whole_by_the_next_run(small, tmp_path, stage, crash):
    folder = tmp_path / "runs" / "e"
    before = STAGES[: STAGES.index(stage)]
    run(small, (*before, stage))
    whole = crash.contents(folder)
    point = 0
    while True:
        for path in list((folder / stage).iterdir()) if (folder / stage).exists() else []:
            path.rename(tmp_path / f"aside-{stage}-{point}-{path.name}")
        (folder / "model.json").unlink(missing_ok=True)
        killed = crash.dies_at(point, lambda: run(small, (stage,)))
        finished = crash.contents(folder)
        assert all(whole[name] == content for name, content in finished.items())  # what is there is right
        if not killed:
            break
        run(small, (stage,))
        assert crash.contents(folder) == whole, f"another result after SIGKILL at write {point}"
        point += 1
    assert point > 5


def test_a_run_killed_over_and_over_gets_to_its_end(small, tmp_path, crash):
    """Each attempt finishes at least a stage or a piece; every one starts from what the last one left."""
    run(small)
    folder = tmp_path / "runs" / "e"
    whole = crash.contents(folder)
    folder.rename(tmp_path / "whole")
    for _ in range(200):
        if not crash.dies_at(60, lambda: run(small)):
            break
    assert crash.contents(folder) == whole
