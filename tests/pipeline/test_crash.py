"""SIGKILL at every write point of every stage: nothing half-written counts, and the rerun gives the same bytes."""

import io
import os
import signal

import pytest

from xbert.pipeline.config import read
from xbert.pipeline.console import Console
from xbert.pipeline.registry import STAGES
from xbert.pipeline.runner import Runner

WRITES = ("fsync", "replace", "rename")


def run(path, stages=STAGES):
    Runner(read(path), Console(stream=io.StringIO())).run(stages)


def contents(folder):
    """Every artifact's every file; the journal and the locks only inform."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
        and path.name not in ("journal.jsonl", "model.json.part")
    }


def in_child(work):
    """Run `work` in a forked process; returns its wait status."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1]


def dies_at(point, path, stages):
    """Run and kill the process right before the write numbered `point`; False if it ends before that."""

    def work():
        left = [point]

        def deadly(original):
            def call(*arguments, **more):
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left[0] -= 1
                return original(*arguments, **more)

            return call

        for name in WRITES:
            setattr(os, name, deadly(getattr(os, name)))
        run(path, stages)

    status = in_child(work)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


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
def test_a_stage_killed_at_any_write_is_made_whole_by_the_next_run(small, tmp_path, stage):
    folder = tmp_path / "runs" / "e"
    before = STAGES[: STAGES.index(stage)]
    run(small, (*before, stage))
    whole = contents(folder)
    point = 0
    while True:
        for path in list((folder / stage).iterdir()) if (folder / stage).exists() else []:
            path.rename(tmp_path / f"aside-{stage}-{point}-{path.name}")
        (folder / "model.json").unlink(missing_ok=True)
        killed = dies_at(point, small, (stage,))
        finished = contents(folder)
        assert all(whole[name] == content for name, content in finished.items())  # what is there is right
        if not killed:
            break
        run(small, (stage,))
        assert contents(folder) == whole, f"another result after SIGKILL at write {point}"
        point += 1
    assert point > 5


def test_a_run_killed_over_and_over_gets_to_its_end(small, tmp_path):
    """Each attempt finishes at least a stage or a piece; every one starts from what the last one left."""
    run(small)
    folder = tmp_path / "runs" / "e"
    whole = contents(folder)
    folder.rename(tmp_path / "whole")
    for _ in range(200):
        if not dies_at(60, small, STAGES):
            break
    assert contents(folder) == whole
