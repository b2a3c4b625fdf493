"""Every format of a corpus, from its files to tags, through the command line."""

import gzip
import json

import numpy as np
import pytest
from scipy.sparse import csr_matrix, save_npz

N_LABELS = 20
QUERY = "w3x1 w3x2 w3x0"


@pytest.fixture
def splits(documents):
    return {"train": documents(240, N_LABELS, 1), "test": documents(60, N_LABELS, 2)}


def write_gzip(folder, splits):
    for name, rows in splits.items():
        with gzip.open(folder / f"{name}.jsonl.gz", "wt", encoding="utf-8") as stream:
            stream.writelines(json.dumps(row) + "\n" for row in rows)
    return ["--train", "train.jsonl.gz", "--test", "test.jsonl.gz"]


def write_annif(folder, splits):
    for name, rows in splits.items():
        lines = [f"{row['text']}\t{' '.join(f'<{label}>' for label in row['labels'])}\n" for row in rows]
        (folder / f"{name}.tsv").write_text("".join(lines))
    return ["--train", "train.tsv", "--test", "test.tsv"]


def write_fasttext(folder, splits):
    for name, rows in splits.items():
        lines = [f"{' '.join(f'__label__{label}' for label in row['labels'])} {row['text']}\n" for row in rows]
        (folder / f"{name}.txt").write_text("".join(lines))
    return ["--train", "train.txt", "--test", "test.txt"]


def write_pecos(folder, splits):
    at = folder / "set"
    at.mkdir()
    for name, part in (("train", "trn"), ("test", "tst")):
        (at / f"X.{part}.txt").write_text("".join(row["text"] + "\n" for row in splits[name]))
        Y = np.zeros((len(splits[name]), N_LABELS), np.float32)
        for i, row in enumerate(splits[name]):
            Y[i, [int(label[1:]) for label in row["labels"]]] = 1
        save_npz(at / f"Y.{part}.npz", csr_matrix(Y))
    (at / "output-items.txt").write_text("".join(f"name of {i}\n" for i in range(N_LABELS)))
    return ["--train", "set"]


def write_xmc(folder, splits):
    """The sparse format; returns what `init` needs, and the number of each word."""
    numbers = {}
    for row in [*splits["train"], *splits["test"]]:
        for word in row["text"].split():
            numbers.setdefault(word, len(numbers))
    for name, rows in splits.items():
        lines = [f"{len(rows)} {len(numbers)} {N_LABELS}"]
        for row in rows:
            words = [numbers[word] for word in row["text"].split()]
            features = " ".join(f"{n}:{words.count(n)}" for n in sorted(set(words)))
            lines.append(f"{','.join(label[1:] for label in row['labels'])} {features}")
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")
    return ["--train", "train.txt", "--test", "test.txt"], numbers


def first_tag(xbert, folder, files, query):
    """init, run, evaluate, predict; what can be learnt was learnt. The best tag of the query."""
    path = folder / "e.toml"
    absolute = [each if each.startswith("--") else str(folder / each) for each in files]
    path.write_text(xbert("init", "linear", *absolute).stdout)
    ran = xbert("run", path, "--quiet")
    assert ran.exit_code == 0, ran.stderr
    metrics = json.loads(xbert("evaluate", path, "--json", "--quiet").stdout)
    assert set(metrics["linear"]) == {"valid", "test"}
    assert metrics["linear"]["test"]["P@1"] > 80
    answer = xbert("predict", path, "-", "-k", 1, stdin=query + "\n")
    assert answer.exit_code == 0, answer.stderr
    return json.loads(answer.stdout)["labels"][0]


@pytest.mark.parametrize("write", [write_gzip, write_annif, write_fasttext])
def test_a_text_format_from_its_files_to_tags(tmp_path, xbert, splits, write):
    assert first_tag(xbert, tmp_path, write(tmp_path, splits), QUERY)["id"] == "L3"


def test_a_pecos_folder_from_its_files_to_tags(tmp_path, xbert, splits):
    tag = first_tag(xbert, tmp_path, write_pecos(tmp_path, splits), QUERY)
    assert (tag["id"], tag["text"]) == ("3", "name of 3")


def test_the_sparse_format_from_its_files_to_tags(tmp_path, xbert, splits):
    files, numbers = write_xmc(tmp_path, splits)
    query = " ".join(f"{numbers[word]}:1" for word in QUERY.split())
    assert first_tag(xbert, tmp_path, files, query)["id"] == "3"
    assert 'method = "given"' in (tmp_path / "e.toml").read_text()


@pytest.mark.parametrize(
    "line", ["hello world", "1:-1", "1:nan", "1:inf", "1:1e39", "100000:1", "1:1 1:2", "1:2:3"], ids=lambda line: line
)
def test_a_row_of_features_that_cannot_be_is_named_by_its_line(tmp_path, xbert, splits, line):
    files, _ = write_xmc(tmp_path, splits)
    first_tag(xbert, tmp_path, files, "1:1")
    result = xbert("predict", tmp_path / "e.toml", "-", stdin=f"1:1\n{line}\n")
    assert result.exit_code == 3
    assert "- line 2: " in result.stderr
    assert "NaN" not in result.stdout


def test_a_sparse_header_that_lies_is_refused_and_the_finished_model_stays(tmp_path, xbert, splits):
    files, _ = write_xmc(tmp_path, splits)
    first_tag(xbert, tmp_path, files, "1:1")
    whole = (tmp_path / "train.txt").read_text()
    (tmp_path / "train.txt").write_text(whole.replace("240 ", "250 ", 1))
    result = xbert("run", tmp_path / "e.toml")
    assert result.exit_code == 3
    assert "holds 240 documents, its header promises 250" in result.stderr
    (tmp_path / "train.txt").write_text(whole)
    assert xbert("status", tmp_path / "e.toml").exit_code == 0


def test_an_encoder_for_features_without_text_is_refused_before_anything_is_trained(tmp_path, xbert, splits):
    files, _ = write_xmc(tmp_path, splits)
    path = tmp_path / "e.toml"
    path.write_text(xbert("init", "x-bert", *(f if f.startswith("--") else str(tmp_path / f) for f in files)).stdout)
    result = xbert("run", path)
    assert result.exit_code == 3, result.stderr
    assert "[match] method = 'neural' reads the documents' text, and this dataset has none" in result.stderr
    assert [folder.name for folder in (tmp_path / "runs/e").glob("[!.]*") if folder.is_dir()] == ["data"]
