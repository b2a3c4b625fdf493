import subprocess
import sys

import pytest

from xbert.artifacts.errors import InputError, StaleError
from xbert.pipeline.tagger import Tagger


@pytest.fixture
def run(experiment, xbert):
    assert xbert("run", experiment, "--quiet").exit_code == 0
    return experiment.parent / "runs" / "e"


def test_tags_are_names_texts_and_scores(run):
    (tags,) = Tagger.load(run).predict(["w5x1 w5x2 w5x3"], k=3)
    assert tags[0].id == "L5"
    assert tags[0].text == "w5x0 label 5"
    assert len(tags) == 3
    assert sorted((tag.score for tag in tags), reverse=True) == [tag.score for tag in tags]
    assert tags.note is None


def test_the_experiment_file_and_the_run_folder_are_the_same_model(run, experiment):
    texts = ["w5x1 w1x2", "common1 w8x0"]
    assert Tagger.load(run).predict(texts) == Tagger.load(experiment).predict(texts)


def test_one_text_or_many_at_a_time_gives_the_same(run):
    tagger = Tagger.load(run)
    texts = [f"w{i}x1 w{i + 1}x2 common{i}" for i in range(30)]
    assert tagger.predict(texts, threads=2) == [tagger.predict([text])[0] for text in texts]


def test_predictions_equal_those_of_the_evaluation(run, experiment, jsonl):
    import json

    from xbert.pipeline.config import read
    from xbert.pipeline.console import Console
    from xbert.pipeline.runner import Runner

    runner = Runner(read(experiment), Console(quiet=True))
    stored = runner.artifact(runner.graph.models["linear"]["rank"]).scores["test"].top(5)[0]
    texts = [json.loads(line)["text"] for line in (experiment.parent / "test.jsonl").read_text().splitlines()]
    tagger = Tagger.load(run)
    found = [[tag.id for tag in tags] for tags in tagger.predict(texts, k=5)]
    assert found == [[tagger.labels.ids[int(label)] for label in row] for row in stored]


def test_a_folder_without_a_model_says_so(tmp_path):
    with pytest.raises(StaleError, match="no finished model"):
        Tagger.load(tmp_path)


@pytest.mark.parametrize(("texts", "k", "why"), [([3], 5, "must be a string"), (["a"], 0, "at least 1")])
def test_what_cannot_be_tagged(run, texts, k, why):
    with pytest.raises(InputError, match=why):
        Tagger.load(run).predict(texts, k)


def test_no_texts_give_no_tags(run):
    assert Tagger.load(run).predict([]) == []


def test_the_linear_path_never_imports_torch(run):
    code = f"import sys; from xbert import Tagger; Tagger.load({str(run)!r}).predict(['w1x1']); print('torch' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "False"


def test_a_run_folder_can_be_moved(run, tmp_path):
    moved = run.rename(tmp_path / "elsewhere")
    assert Tagger.load(moved).predict(["w5x1 w5x2"])[0][0].id == "L5"
