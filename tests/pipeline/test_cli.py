import json
import signal
import subprocess
import sys
import time

import click
import pytest

from xbert.cli import predict
from xbert.stages.neural.names import ANSWERING, DEVICES


def run_ok(xbert, *arguments, **more):
    result = xbert(*arguments, **more)
    assert result.exit_code == 0, result.stderr
    return result


def test_from_a_corpus_to_tags(experiment, xbert):
    run_ok(xbert, "run", experiment)
    metrics = json.loads(run_ok(xbert, "evaluate", experiment, "--json").stdout)
    assert set(metrics) == {"linear"}
    assert set(metrics["linear"]) == {"valid", "test"}
    for name in ("P@1", "P@3", "P@5", "nDCG@5", "PSP@1", "PSP@5", "R@5", "RP@5", "coverage@5"):
        assert 0 <= metrics["linear"]["test"][name] <= 100
    assert metrics["linear"]["test"]["P@1"] > 80  # every label has words of its own, so this can be learnt
    answer = json.loads(run_ok(xbert, "predict", experiment, "-", stdin="w3x1 w3x2 w3x0\n").stdout)
    assert answer["labels"][0]["id"] == "L3"
    assert answer["labels"][0]["text"] == "w3x0 label 3"
    assert 0 < answer["labels"][0]["score"] <= 1


def test_the_readmes_one_line_works_in_a_shell(corpus):
    line = (
        "{x} init linear --train train.jsonl --valid valid.jsonl --test test.jsonl --labels labels.jsonl > e.toml "
        '&& {x} run e.toml && {x} evaluate e.toml --json && echo "w3x1 w3x2" | {x} predict e.toml -'
    ).format(x=f"{sys.executable} -m xbert.cli")
    ended = subprocess.run(line, shell=True, cwd=corpus, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert '"labels"' in ended.stdout


def test_a_second_run_has_nothing_to_do(experiment, xbert):
    run_ok(xbert, "run", experiment)
    again = run_ok(xbert, "run", experiment)
    assert "running" not in again.stderr
    assert again.stderr.count("up to date") == 6


@pytest.mark.parametrize(
    ("setting", "stale"),
    [
        ("evaluate.few=10", {"evaluate"}),
        ("rank.top=20", {"rank", "evaluate"}),
        ("match.beam=3", {"match", "rank", "evaluate"}),
        ("index.clusters=4", {"index", "match", "rank", "evaluate"}),
        ("features.min_df=3", {"features", "index", "match", "rank", "evaluate"}),
        ("data.seed=1", {"data", "features", "index", "match", "rank", "evaluate"}),
    ],
)
def test_a_changed_setting_makes_exactly_what_depends_on_it_stale(experiment, xbert, setting, stale):
    run_ok(xbert, "run", experiment, "--quiet")
    assert xbert("status", experiment).exit_code == 0
    result = xbert("status", experiment, "-o", setting, "--json")
    assert result.exit_code == 1
    rows = {row["name"]: row for row in json.loads(result.stdout)["artifacts"]}
    assert {name for name, row in rows.items() if row["state"] != "done"} == stale
    section, _, rest = setting.partition(".")
    key, _, value = rest.partition("=")
    assert rows[section]["reason"].startswith(f"config.{key}: ")
    assert rows[section]["reason"].endswith(f" -> {value}")
    ran = run_ok(xbert, "run", experiment, "-o", setting, "--dry-run").stderr
    assert {line.split(":")[0] for line in ran.splitlines() if "would run" in line} == stale


def test_a_changed_file_makes_everything_stale(experiment, xbert, corpus):
    run_ok(xbert, "run", experiment, "--quiet")
    with (corpus / "train.jsonl").open("a") as stream:
        stream.write('{"text": "w1x1 w1x2", "labels": ["L1"]}\n')
    result = xbert("status", experiment)
    assert result.exit_code == 1
    assert "its train changed" in result.stdout


def test_a_stage_command_runs_what_it_needs_and_no_more(experiment, xbert):
    ran = run_ok(xbert, "index", experiment).stderr
    assert "index: done" in ran
    assert "match" not in ran
    ran = run_ok(xbert, "match", experiment).stderr
    assert "index: up to date" in ran
    assert "match: done" in ran


def test_force_runs_one_stage_again(experiment, xbert):
    run_ok(xbert, "rank", experiment)
    ran = run_ok(xbert, "rank", experiment, "--force").stderr
    assert "match: up to date" in ran
    assert "rank: running (forced)" in ran


def test_a_dry_run_writes_nothing(experiment, xbert, corpus):
    before = sorted(corpus.rglob("*"))
    run_ok(xbert, "run", experiment, "--dry-run")
    assert sorted(corpus.rglob("*")) == before


def test_an_ensemble_of_models(corpus, xbert):
    text = run_ok(xbert, "init", "linear-ensemble", "--train", "train.jsonl", "--test", "test.jsonl").stdout
    path = corpus / "three.toml"
    path.write_text(text.replace('clusters = "auto"', "clusters = 6"))
    run_ok(xbert, "run", path, "-o", "ensemble.combine=weighted")
    metrics = json.loads(run_ok(xbert, "evaluate", path, "-o", "ensemble.combine=weighted", "--json").stdout)
    assert set(metrics) == {"seed0", "seed1", "seed2", "ensemble", "comparison"}
    answer = json.loads(run_ok(xbert, "predict", corpus / "runs" / "three", "-", stdin="w2x1 w2x2 w2x0\n").stdout)
    assert answer["labels"][0]["id"] == "L2"


def test_predict_reads_json_lines_and_keeps_their_ids(experiment, xbert, corpus):
    run_ok(xbert, "run", experiment, "--quiet")
    lines = "".join(json.dumps({"id": f"n{i}", "text": f"w{i}x0 w{i}x1 w{i}x2"}) + "\n" for i in range(5))
    (corpus / "new.jsonl").write_text(lines)
    answers = [
        json.loads(line) for line in run_ok(xbert, "predict", experiment, corpus / "new.jsonl", "-k", 1).stdout.splitlines()
    ]
    assert [(a["id"], a["labels"][0]["id"]) for a in answers] == [(f"n{i}", f"L{i}") for i in range(5)]


def test_a_document_without_a_known_word_gets_the_prior_and_says_so(experiment, xbert):
    run_ok(xbert, "run", experiment, "--quiet")
    answers = [
        json.loads(line) for line in run_ok(xbert, "predict", experiment, "-", stdin="zzz qqq\n\nw1x1\n").stdout.splitlines()
    ]
    assert ["note" in answer for answer in answers] == [True, True, False]
    assert answers[0]["labels"][0]["id"] == "L0"  # the most frequent label
    assert len(answers[0]["labels"]) == 5


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [(["predict", "nowhere", "-"], 3), (["run", "none.toml"], 3), (["run"], 2), (["init", "lineer"], 2), (["frobnicate"], 2)],
)
def test_what_is_missing_is_one_sentence(xbert, arguments, exit_code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = xbert(*arguments, stdin="")
    assert result.exit_code == exit_code
    assert "Traceback" not in result.output


def test_predicting_with_a_stale_model_is_refused(experiment, xbert):
    run_ok(xbert, "run", experiment, "--quiet")
    experiment.write_text(experiment.read_text().replace("clusters = 8", "clusters = 4"))
    result = xbert("predict", experiment, "-", stdin="w1x1\n")
    assert result.exit_code == 1
    assert "config.clusters: 8 -> 4" in result.stderr


def test_broken_json_in_new_documents_names_the_line_and_keeps_what_was_tagged(experiment, xbert):
    run_ok(xbert, "run", experiment, "--quiet")
    result = xbert("predict", experiment, "-", "--batch", 1, stdin='{"text": "w1x1"}\n{"text": \n')
    assert result.exit_code == 3
    assert "- line 2: not valid JSON" in result.stderr
    assert len(result.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('{"text": "a", "labels": ["x"]', "line 401"),
        ('{"labels": ["L1"]}', "line 401: 'text' is missing"),
        ('{"text": "", "labels": ["L1"]}', "line 401: 'text' is empty"),
        ('{"text": "a"}', "line 401: 'labels' is missing"),
        ('{"text": "a", "labels": []}', "line 401: 'labels' is empty"),
        ('{"text": "a", "labels": [3]}', "line 401"),
        ('{"text": "a", "labels": ["L999"]}', "L999"),
    ],
)
def test_a_bad_line_of_the_corpus_is_one_sentence_and_nothing_is_lost(experiment, xbert, corpus, line, sentence):
    run_ok(xbert, "run", experiment, "--quiet")
    with (corpus / "train.jsonl").open("a") as stream:
        stream.write(line + "\n")
    result = xbert("run", experiment)
    assert result.exit_code == 3
    assert sentence in result.stderr
    assert result.stderr.strip().splitlines()[-1].startswith("xbert: ")
    run_ok(xbert, "predict", corpus / "runs" / "e", "-", stdin="w1x1\n")  # the finished model still answers


def test_damage_is_named_by_status_and_force_mends_it(experiment, xbert, corpus):
    run_ok(xbert, "run", experiment, "--quiet")
    path = next((corpus / "runs" / "e" / "rank").glob("linear-*/labels.words.npy"))
    content = bytearray(path.read_bytes())
    content[-1] ^= 255
    path.write_bytes(bytes(content))
    assert xbert("status", experiment).exit_code == 0
    verified = xbert("status", experiment, "--verify")
    assert verified.exit_code == 3
    assert "does not match its checksum" in verified.stdout
    run_ok(xbert, "rank", experiment, "--force")
    assert xbert("status", experiment, "--verify").exit_code == 0


def test_a_truncated_artifact_is_refused_by_predict(experiment, xbert, corpus):
    run_ok(xbert, "run", experiment, "--quiet")
    path = next((corpus / "runs" / "e" / "rank").glob("linear-*/labels.words.npy"))
    path.write_bytes(path.read_bytes()[:-10])
    result = xbert("predict", corpus / "runs" / "e", "-", stdin="w1x1\n")
    assert result.exit_code == 3
    assert "damaged" in result.stderr


def test_a_recipe_that_needs_label_texts_where_there_are_none(corpus, xbert):
    text = run_ok(xbert, "init", "linear", "--train", "train.jsonl").stdout
    (corpus / "e.toml").write_text(text)
    result = xbert("run", corpus / "e.toml", "-o", "index.embedding=text", "-o", "index.clusters=4")
    assert result.exit_code == 3
    assert "needs label texts" in result.stderr


def test_a_busy_run_is_refused_with_its_holder(experiment, xbert, corpus):
    from xbert.artifacts.lock import locked

    run_ok(xbert, "match", experiment, "--quiet")
    state = json.loads(xbert("status", experiment, "--json").stdout)
    rank = next(row["folder"] for row in state["artifacts"] if row["name"] == "rank")
    with locked(corpus / "runs" / "e" / ".locks" / rank.replace("/", "-"), rank):
        result = xbert("run", experiment)
    assert result.exit_code == 4
    assert "is being made by process" in result.stderr


def test_ctrl_c_says_how_to_go_on(corpus, jsonl, documents):
    jsonl(corpus / "large.jsonl", documents(20_000, 300, words_per_doc=60))
    (corpus / "large.toml").write_text('[data]\ntrain = "large.jsonl"\n[rank]\ntolerance = 1e-7\nmax_iterations = 100000\n')
    process = subprocess.Popen(
        [sys.executable, "-m", "xbert.cli", "run", "large.toml"], cwd=corpus, stderr=subprocess.PIPE, text=True
    )
    for line in process.stderr:
        if line.startswith(("index: done", "match: running")):
            break
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    rest = process.stderr.read()
    assert process.wait() == 130
    assert "run large.toml` goes on from there" in rest


def test_the_help_names_every_command(xbert):
    listed = xbert("--help").stdout
    for command in ("prepare", "index", "match", "rank", "ensemble", "run", "status", "predict", "evaluate", "init"):
        assert f"  {command} " in listed


def test_predict_offers_every_device_and_precision():
    choices = {option.name: tuple(option.type.choices) for option in predict.params if isinstance(option.type, click.Choice)}
    assert choices == {"device": DEVICES, "precision": ANSWERING}


def test_the_command_line_starts_without_heavy_imports():
    code = "import sys, xbert.cli; print([m for m in ('numpy', 'scipy', 'numba', 'torch', 'joblib') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
