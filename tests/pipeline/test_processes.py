"""Processes of one run: the first asks, the others help, and none is left behind when one fails."""

import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from xbert.artifacts.errors import BusyError, InputError, UsageError, XbertError

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402

from xbert.pipeline.processes import Processes, joined  # noqa: E402


@pytest.fixture
def pair(in_children, tmp_path):
    """Run first(processes) and second(processes) as torchrun would start them; the exit code of each, and what each met."""

    def run(first, second):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]

        def member(rank, work):
            def run():
                os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
                os.environ["MASTER_PORT"] = str(port)
                try:
                    with joined() as processes:
                        work(processes)
                except XbertError as error:  # what the command line would say
                    (tmp_path / f"said-{rank}").write_text(str(error))
                    raise SystemExit(error.exit_code) from None

            return run

        statuses = in_children([member(0, first), member(1, second)], longest=120)
        said = [path.read_text() if (path := tmp_path / f"said-{rank}").exists() else None for rank in (0, 1)]
        return [os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status) for status in statuses], said

    return run


def wait_in_a_collective(processes):
    dist.barrier()


def help_until_told(processes):
    list(processes.orders())


def fail(error):
    def work(processes):
        raise error

    return work


def test_the_others_get_every_order_until_the_first_is_done(pair, tmp_path):
    def ask(processes):
        assert (processes.rank, processes.world, processes.local, processes.alone) == (0, 2, 2, False)
        for task in ("one", "two"):
            processes.order(task)
            dist.barrier()

    def help(processes):
        for task in processes.orders():
            with (tmp_path / "helped").open("a") as stream:
                stream.write(f"{task}\n")
            dist.barrier()

    assert pair(ask, help) == ([0, 0], [None, None])
    assert (tmp_path / "helped").read_text() == "one\ntwo\n"


@pytest.mark.parametrize("second", [help_until_told, wait_in_a_collective])
def test_when_the_first_fails_the_others_end_quietly_with_its_exit_code(pair, second):
    assert pair(fail(BusyError("is being made")), second) == ([4, 4], ["is being made", None])


def test_when_another_fails_alone_it_says_why_and_the_first_ends_with_it(pair):
    assert pair(wait_in_a_collective, fail(InputError("other files"))) == ([3, 3], [None, "other files"])


def test_what_all_meet_is_said_by_the_first(pair):
    same = fail(InputError("no longer a number"))
    assert pair(same, same) == ([3, 3], ["no longer a number", None])


def test_a_process_that_was_killed_is_missed(pair):
    def die(processes):
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)

    codes, said = pair(wait_in_a_collective, die)
    assert codes == [3, -signal.SIGKILL]
    assert "another process of this run has ended without a word" in said[0]


def test_alone_there_is_nobody_to_ask(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with joined() as processes:
        processes.order("nothing")
        assert processes.leads
        assert processes.alone
        assert list(processes.orders()) == []


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"WORLD_SIZE": "2"}, "WORLD_SIZE is 2 in the environment, but RANK is not set: .*torchrun"),
        ({"WORLD_SIZE": "many"}, "WORLD_SIZE = 'many' in the environment: must be a whole number"),
    ],
)
def test_half_an_environment_is_one_sentence(monkeypatch, environment, sentence):
    monkeypatch.delenv("RANK", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=sentence):
        joined()


def test_cores_are_divided_unless_the_experiment_says_how_many(experiment):
    from dataclasses import replace

    from xbert.pipeline.config import read

    given = replace(read(experiment, ["run.threads=6"]))
    assert given.threads_of_each(2) == 6
    all_cores = replace(read(experiment, ["run.threads=0"]), threads=6)
    assert [all_cores.threads_of_each(local) for local in (1, 2, 4, 8)] == [6, 3, 1, 1]


def test_torch_stays_unloaded_without_torchrun(experiment):
    code = (
        "import sys; from xbert.cli import main; main(sys.argv[1:], standalone_mode=False); "
        "print([m for m in ('torch', 'tensorboard') if m in sys.modules])"
    )
    environment = {name: value for name, value in os.environ.items() if name != "WORLD_SIZE"}
    ended = subprocess.run(
        [sys.executable, "-c", code, "match", str(experiment)], env=environment, capture_output=True, text=True, check=True
    )
    assert ended.stdout.strip() == "[]"


def test_a_process_alone_is_the_first_of_one():
    assert (Processes().leads, Processes().world, Processes().local) == (True, 1, 1)
