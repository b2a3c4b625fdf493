"""Processes that are killed, and an experiment that fine-tunes an encoder within a second."""

import os
import signal

import pytest


class Crash:
    """Runs work in forked processes, kills them right before a write, and looks at what is left."""

    WRITES = ("fsync", "replace", "rename")

    def __init__(self, in_children):
        self.in_children = in_children

    def in_child(self, work):
        """Run `work` in a forked process; returns its wait status."""
        return self.in_children([work])[0]

    def dies_at(self, point, work):
        """Run `work` and kill it right before the write numbered `point`; False if it ends before that."""

        def doomed():
            left = [point]

            def deadly(original):
                def call(*arguments, **more):
                    if left[0] == 0:
                        os.kill(os.getpid(), signal.SIGKILL)
                    left[0] -= 1
                    return original(*arguments, **more)

                return call

            for name in self.WRITES:
                setattr(os, name, deadly(getattr(os, name)))
            work()

        status = self.in_child(doomed)
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
        return os.WIFSIGNALED(status)

    def contents(self, folder):
        """Every artifact's every file; the journal, the logs and the locks only inform."""
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
            and not any(part.startswith(".") or part == "logs" for part in path.relative_to(folder).parts)
            and path.name not in ("journal.jsonl", "model.json.part")
        }


@pytest.fixture(scope="session")
def crash(in_children):
    return Crash(in_children)


@pytest.fixture(scope="session")
def write_neural(jsonl, documents, tiny_bert):
    """Write an experiment that fine-tunes the tiny BERT, 4 steps an epoch, into a folder; returns its file."""

    def write(folder):
        jsonl(folder / "train.jsonl", documents(60, 12, 1))
        jsonl(folder / "valid.jsonl", documents(20, 12, 2))
        (folder / "e.toml").write_text(
            '[run]\nthreads = 1\n[data]\ntrain = "train.jsonl"\nvalid = "valid.jsonl"\ntest_fraction = 0\n'
            '[index]\nclusters = 4\n[rank]\nnegatives = "tfn"\n[match]\nmethod = "neural"\n'
            f'model = "{tiny_bert}"\nmax_tokens = 24\nepochs = 2\nbatch = 16\nlearning_rate = 0.01\nhead_rate = 0.05\n'
            'precision = "fp32"\ndevice = "cpu"\ntrain_scores = "none"\nbeam = 2\n'
        )
        return folder / "e.toml"

    return write
