"""What a user can get wrong, through the command line: one sentence, the right exit code, and nothing lost."""

import json
import shutil
import subprocess
import sys

import pytest


def refused(result, exit_code, *parts):
    """One sentence on stderr, its exit code, and the words it must hold."""
    assert result.exit_code == exit_code, result.stderr
    assert result.stderr.strip().splitlines()[-1].startswith("xbert: ")
    for part in parts:
        assert part in result.stderr


def accepted(result):
    assert result.exit_code == 0, result.stderr
    return result


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with a corpus, its experiment file and a finished run: to be copied, not changed."""
    from click.testing import CliRunner

    from xbert.cli import main

    folder = tmp_path_factory.mktemp("finished")
    rows = [{"text": f"w{i % 12}x{i % 5} w{i % 12}x{i % 3} common{i % 7}", "labels": [f"L{i % 12}"]} for i in range(240)]
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "e.toml").write_text('[data]\ntrain = "train.jsonl"\n[index]\nclusters = 4\n')
    ended = CliRunner().invoke(main, ["run", str(folder / "e.toml"), "--quiet"])
    assert ended.exit_code == 0, ended.output
    return folder


@pytest.fixture
def done(finished, tmp_path):
    """A finished run of its own."""
    return shutil.copytree(finished, tmp_path / "done")


def artifact(done, stage):
    return next(path for path in (done / "runs" / "e" / stage).iterdir() if not path.name.startswith("."))


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("index", "section.key=value"),
        ("=3", "section.key=value"),
        ("index..clusters=4", "section.key=value"),
        ("index.clusters=", "must be a whole number"),
        ("indx.clusters=4", "did you mean 'index'?"),
        ("data.train.x=4", "'train' is not a section"),
        ("model.x=3", "model.x=3"),
        ("run.threads=-1", "threads = -1"),
    ],
)
def test_an_override_of_a_wrong_form_is_a_usage_error(done, xbert, override, sentence):
    refused(xbert("status", done / "e.toml", "-o", override), 2, sentence)


def test_an_override_of_a_model_without_a_section_is_a_usage_error(done, xbert):
    (done / "e.toml").write_text((done / "e.toml").read_text() + '[[model]]\nname = "x"\n')
    refused(xbert("status", done / "e.toml", "-o", "model.x=3"), 2, "model.x=3")


@pytest.mark.parametrize(
    ("addition", "sentence"),
    [
        ('[[model]]\nname = "x"\nindex = 5\n', "index"),
        ("[match]\nmethod = 3\n", "[match] method"),
        ("[match]\nseed = " + "9" * 400, "seed"),
        ("[match]\nmax_iterations = " + "9" * 30, "max_iterations"),
        ("[rank]\ntop = " + "9" * 30, "top"),
        ("[rank]\ncost_positive = inf\n", "cost_positive"),
        ('[run]\nfolder = "a\\u0000b"\n', "folder"),
        (f'[run]\nfolder = "{"x" * 300}"\n', "folder"),
    ],
    ids=["section", "method", "huge seed", "huge count", "huge top", "infinite", "nul in a path", "long name"],
)
def test_a_setting_that_cannot_be_is_one_sentence(done, xbert, addition, sentence):
    (done / "e.toml").write_text((done / "e.toml").read_text() + addition)
    refused(xbert("run", done / "e.toml", "--quiet"), 3, sentence)


def test_a_home_folder_that_is_not_known_is_one_sentence(done, xbert):
    (done / "e.toml").write_text('[data]\ntrain = "~nobody-of-that-name/t.jsonl"\n')
    refused(xbert("status", done / "e.toml"), 3, "train")


def test_one_label_cannot_be_clustered_and_the_advice_can_be_followed(tmp_path, xbert, jsonl):
    jsonl(tmp_path / "train.jsonl", [{"text": f"alpha beta d{i}", "labels": ["A"]} for i in range(40)])
    (tmp_path / "e.toml").write_text('[data]\ntrain = "train.jsonl"\n')
    result = xbert("run", tmp_path / "e.toml", "--quiet")
    refused(result, 3, "label")
    assert "set it to at most that" not in result.stderr  # a number of clusters below 2 is refused as well


def test_more_clusters_than_labels_is_one_sentence(done, xbert):
    refused(xbert("run", done / "e.toml", "--quiet", "-o", "index.clusters=13"), 3, "only 12 labels")


def test_all_documents_with_the_same_labels_can_be_learnt(tmp_path, xbert, jsonl):
    jsonl(tmp_path / "train.jsonl", [{"text": f"alpha beta d{i}", "labels": ["A", "B"]} for i in range(40)])
    (tmp_path / "e.toml").write_text('[data]\ntrain = "train.jsonl"\n')
    accepted(xbert("run", tmp_path / "e.toml", "--quiet"))


def test_a_single_document_says_what_to_set(tmp_path, xbert, jsonl):
    jsonl(tmp_path / "train.jsonl", [{"text": "alpha beta", "labels": ["A", "B"]}])
    (tmp_path / "e.toml").write_text('[data]\ntrain = "train.jsonl"\n')
    refused(xbert("run", tmp_path / "e.toml", "--quiet"), 3, "too few documents", "data.test_fraction = 0")


def test_without_held_out_documents_the_model_is_trained_and_can_be_used(done, xbert):
    without = ("-o", "data.valid_fraction=0", "-o", "data.test_fraction=0", "-o", f"run.folder={done / 'all'}")
    xbert("run", done / "e.toml", "--quiet", *without)
    answer = accepted(xbert("predict", done / "all", "-", "-k", 1, stdin="w3x1 w3x0 w3x2\n"))
    assert json.loads(answer.stdout)["labels"][0]["id"] == "L3"


@pytest.mark.parametrize(
    ("addition", "sentence"),
    [
        ('[rank]\nmatcher_weight = "auto"\n', "[rank] matcher_weight = 'auto' is chosen on a validation split"),
        (
            '[ensemble]\ncombine = "weighted"\n[[model]]\nname = "a"\n[[model]]\nname = "b"\nindex.seed = 1\n',
            "ensemble.combine = 'weighted' learns on a validation split",
        ),
    ],
)
def test_what_is_chosen_on_a_validation_split_is_refused_without_one_before_training(
    tmp_path, xbert, jsonl, documents, addition, sentence
):
    jsonl(tmp_path / "train.jsonl", documents(60, 12))
    (tmp_path / "e.toml").write_text('[data]\ntrain = "train.jsonl"\nvalid_fraction = 0\n[index]\nclusters = 4\n' + addition)
    for command in ("run", "match"):
        refused(xbert(command, tmp_path / "e.toml"), 3, sentence, "and there is none: give data.valid")
    assert [folder.name for folder in (tmp_path / "runs/e").glob("[!.]*") if folder.is_dir()] == ["data"]


def test_an_empty_held_out_file_is_one_sentence(done, xbert):
    (done / "test.jsonl").write_text("")
    refused(xbert("run", done / "e.toml", "--quiet", "-o", "data.test=test.jsonl"), 3, "test.jsonl holds no documents")


def test_label_ids_with_any_characters_come_back_as_they_were(tmp_path, xbert, jsonl):
    names = ["a b", "a\tb", "a\nb", "q\"uo'te", "ünï 日本", "<script>alert(1)</script>"]
    rows = [{"text": f"w{i % 6}x{i % 4} w{i % 6}x{i % 3} d{i}", "labels": [names[i % 6]]} for i in range(120)]
    jsonl(tmp_path / "train.jsonl", rows)
    (tmp_path / "e.toml").write_text('[data]\ntrain = "train.jsonl"\n')
    accepted(xbert("run", tmp_path / "e.toml", "--quiet"))
    queries = "".join(f"w{i}x1 w{i}x2 w{i}x0\n" for i in range(6))
    lines = accepted(xbert("predict", tmp_path / "e.toml", "-", "-k", 1, stdin=queries)).stdout.splitlines()
    assert [json.loads(line)["labels"][0]["id"] for line in lines] == names
    assert "<script>alert" not in next(tmp_path.rglob("report.html")).read_text()


@pytest.mark.parametrize("content", [b"", b"{", b"[]\n", b"\xff\xfe"], ids=["empty", "cut", "list", "binary"])
def test_a_damaged_model_json_is_written_anew_by_the_next_run(done, xbert, content):
    path = done / "runs" / "e" / "model.json"
    whole = path.read_bytes()
    path.write_bytes(content)
    refused(xbert("predict", done / "runs" / "e", "-", stdin="w1x1\n"), 3, "model.json")
    accepted(xbert("run", done / "e.toml", "--quiet"))
    assert path.read_bytes() == whole


def test_a_model_json_of_a_newer_format_is_refused(done, xbert):
    path = done / "runs" / "e" / "model.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 99'))
    refused(xbert("predict", done / "runs" / "e", "-", stdin="w1x1\n"), 3, "format 99", "install a newer xbert")


def test_a_manifest_of_a_newer_format_is_refused(done, xbert):
    path = artifact(done, "rank") / "manifest.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 99'))
    refused(xbert("predict", done / "runs" / "e", "-", stdin="w1x1\n"), 3, "install a newer xbert")


def test_a_damaged_manifest_of_another_result_does_not_stop_a_run(done, xbert):
    path = artifact(done, "rank") / "manifest.json"
    content = json.loads(path.read_text())
    content["recipe"]["config"] = [1]
    path.write_text(json.dumps(content))
    accepted(xbert("run", done / "e.toml", "--quiet", "-o", "rank.top=7"))


def test_a_missing_file_of_an_artifact_is_named(done, xbert):
    (artifact(done, "rank") / "prior.npy").unlink()
    refused(xbert("predict", done / "runs" / "e", "-", stdin="w1x1\n"), 3, "prior.npy is missing")


@pytest.mark.parametrize(
    ("stage", "name"), [("data", "train.Y.indices.npy"), ("features", "train.X.indices.npy"), ("data", "test.Y.indices.npy")]
)
def test_a_flipped_bit_in_an_input_ends_in_a_sentence_not_a_crash(done, stage, name):
    path = artifact(done, stage) / name
    content = bytearray(path.read_bytes())
    content[-1] ^= 0x7F  # the highest byte of the last column
    path.write_bytes(bytes(content))
    command = [sys.executable, "-m", "xbert.cli", "run", "e.toml", "--quiet", "-o", "index.clusters=3"]
    ended = subprocess.run(command, cwd=done, capture_output=True, text=True, check=False)
    assert ended.returncode == 3, ended.stderr[-500:]
    assert "damaged" in ended.stderr


def test_a_journal_of_other_bytes_only_loses_its_notes(done, xbert):
    (done / "runs" / "e" / "journal.jsonl").write_bytes(b"\xff\xfe\x00")
    accepted(xbert("status", done / "e.toml"))


@pytest.mark.parametrize(
    ("line", "exit_code"),
    [
        (b"\x80\x81\n", 3),
        (b'{"x": "a"}\n', 3),
        (b'{"text": ' + b"[" * 100_000 + b"\n", 3),
        (b'{"text": "a", "id": "\\ud800"}\n', 3),
        (b"w1x1\r\nw2x1\r\n", 0),
        (b"\xef\xbb\xbfw1x1\n", 0),
        (b"", 0),
    ],
    ids=["binary", "no text", "deep", "half a surrogate pair", "windows", "byte order mark", "nothing"],
)
def test_new_documents_of_any_bytes(done, xbert, line, exit_code):
    result = xbert("predict", done / "e.toml", "-", stdin=line)
    assert result.exit_code == exit_code, result.stderr
    if exit_code:
        assert "- line 1: " in result.stderr


def test_more_labels_asked_for_than_there_are(done, xbert):
    answer = json.loads(accepted(xbert("predict", done / "e.toml", "-", "-k", 10**12, stdin="w1x1\n")).stdout)
    assert len(answer["labels"]) == 12


def test_a_missing_file_of_new_documents_is_one_sentence(done, xbert):
    refused(xbert("predict", done / "e.toml", done / "none.txt"), 3, "none.txt")


def test_a_closed_pipe_ends_quietly(done):
    line = f"yes w1x1 | head -3000 | {sys.executable} -m xbert.cli predict e.toml - --batch 16 | head -1"
    ended = subprocess.run(line, shell=True, cwd=done, capture_output=True, text=True, check=False)
    assert len(ended.stdout.splitlines()) == 1
    assert ended.stderr == ""


def test_status_before_any_run_writes_nothing(done, xbert):
    shutil.rmtree(done / "runs")
    result = xbert("status", done / "e.toml")
    assert result.exit_code == 1
    assert "never run" in result.stdout
    assert not (done / "runs").exists()


def test_an_ensemble_of_one_model_says_that_there_is_nothing_to_combine(done, xbert):
    assert "one model" in xbert("ensemble", done / "e.toml").stderr


def test_a_batch_does_not_change_what_an_ensemble_says(corpus, xbert):
    text = xbert("init", "linear-ensemble", "--train", corpus / "train.jsonl", "--test", corpus / "test.jsonl").stdout
    path = corpus / "n.toml"
    path.write_text(text.replace('clusters = "auto"', "clusters = 9").replace("beam = 10", "beam = 2"))
    path.write_text(path.read_text().replace('combine = "average"', 'combine = "rank-average"'))
    accepted(xbert("run", path, "--quiet"))
    answers = [accepted(xbert("predict", path, corpus / "test.jsonl", "--batch", size)).stdout for size in (1, 512)]
    assert answers[0] == answers[1]


@pytest.mark.parametrize("threads", [2, 3])
def test_the_number_of_threads_does_not_change_a_byte(done, xbert, threads):
    accepted(xbert("run", done / "e.toml", "--quiet", "-o", f"run.threads={threads}", "-o", f"run.folder={done / 'r'}"))
    made = {path.relative_to(done / "r"): path.read_bytes() for path in (done / "r").rglob("*/*/*") if path.is_file()}
    accepted(xbert("run", done / "e.toml", "--quiet", "-o", "run.threads=1", "-o", f"run.folder={done / 'one'}"))
    assert made == {p.relative_to(done / "one"): p.read_bytes() for p in (done / "one").rglob("*/*/*") if p.is_file()}
