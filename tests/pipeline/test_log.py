import json
import time

import pytest

from xbert.pipeline.log import TENSORBOARD, Log, read


def lines(folder):
    return [json.loads(line) for line in (folder / "match-a.jsonl").read_text().splitlines()]


def test_a_line_a_step(tmp_path):
    with Log(tmp_path, "match-a") as log:
        log.add(1, {"train/loss": 0.5, "train/rate": 1e-5})
        log.add(2, {"train/loss": 0.25, "train/rate": 2e-5})
        log.add(2, {"valid/P@5": 50.0})
        assert len(lines(tmp_path)) == 3  # at once, not only at the end
    assert lines(tmp_path)[0] == {"step": 1, "train/loss": 0.5, "train/rate": 1e-5}


def test_nothing_is_written_before_the_first_number_or_without_a_folder(tmp_path):
    with Log(tmp_path / "logs", "match-a"):
        pass
    with Log(None) as log:
        log.add(1, {"train/loss": 0.5})
    assert list(tmp_path.iterdir()) == []


def told(folder, first, last):
    with Log(folder, "match-a") as log:
        for step in range(first, last + 1):
            log.add(step, {"train/loss": step / 10 + first})


@pytest.mark.parametrize("cut", ["", '{"step": 5, "train'])
def test_a_run_that_goes_on_replaces_what_it_tells_again(tmp_path, cut):
    told(tmp_path, 1, 4)
    with (tmp_path / "match-a.jsonl").open("a") as stream:
        stream.write(cut)
    told(tmp_path, 3, 5)
    assert [entry["step"] for entry in lines(tmp_path)] == [1, 2, 3, 4, 5]
    assert [entry["train/loss"] > 3 for entry in lines(tmp_path)] == [False, False, True, True, True]


def test_a_validation_that_comes_after_a_crash_leaves_its_step_alone(tmp_path):
    told(tmp_path, 1, 4)
    with Log(tmp_path, "match-a") as log:
        log.add(4, {"valid/P@5": 50.0})
    assert [entry["step"] for entry in read(tmp_path / "match-a.jsonl")] == [1, 2, 3, 4, 4]


def test_a_run_that_begins_anew_begins_a_new_log(tmp_path):
    told(tmp_path, 1, 4)
    told(tmp_path, 1, 2)
    assert [entry["step"] for entry in lines(tmp_path)] == [1, 2]


def test_tensorboard_reads_the_same_numbers(tmp_path):
    pytest.importorskip("tensorboard", reason="tensorboard is an extra: pip install -e '.[tensorboard]'")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    told(tmp_path, 1, 4)
    time.sleep(1.1)  # files are told apart, and ordered, by the second they were begun in
    told(tmp_path, 3, 5)  # after a crash
    events = EventAccumulator(str(tmp_path / TENSORBOARD / "match-a"))
    events.Reload()
    assert events.Tags()["scalars"] == ["train/loss"]
    found = [(event.step, event.value) for event in events.Scalars("train/loss")]
    assert found == [(entry["step"], pytest.approx(entry["train/loss"])) for entry in lines(tmp_path)]
