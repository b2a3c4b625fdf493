"""A place for a stage to run in, a small corpus there is something to learn from, and the command line."""

import json
import os
import signal
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from xbert.stages.base import seeded

# Tests run side by side, and torch's threads wait for each other: two of them on one core take many times as long as one.
os.environ.setdefault("OMP_NUM_THREADS", "1")


class Bar:
    """A progress bar that remembers how far it came."""

    def __init__(self, total):
        self.total, self.done = total, 0

    def advance(self, amount=1):
        self.done += amount

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


@dataclass
class Bench:
    """A place for a stage to run in: remembers what was said, how far bars came, and the pieces kept."""

    folder: Path
    threads: int = 2
    memory: int = 1 << 30
    seed: int = 0
    said: list = field(default_factory=list)
    logged: list = field(default_factory=list)
    bars: list = field(default_factory=list)
    pieces: dict = field(default_factory=dict)

    def __post_init__(self):
        self.folder.mkdir(parents=True, exist_ok=True)

    def rng(self, name):
        return seeded(self.seed, name)

    def progress(self, what, total, unit):
        self.bars.append(Bar(total))
        return self.bars[-1]

    def say(self, sentence):
        self.said.append(sentence)

    def log(self, step, values):
        self.logged.append((step, values))

    def recall(self, name):
        return self.pieces.get(name)

    def keep(self, name, piece):
        self.pieces[name] = piece


@pytest.fixture
def work(tmp_path):
    return Bench(tmp_path / "work")


@pytest.fixture(scope="session")
def bench():
    """Bench itself, for tests that need several, or another number of threads."""
    return Bench


def make_documents(n_docs, n_labels, seed=0, words_per_doc=12):
    """Documents whose words come from the vocabularies of their labels: each label has six words of its own."""
    rng = np.random.default_rng(seed)
    frequency = 1 / np.arange(1, n_labels + 1)
    documents = []
    for number in range(n_docs):
        labels = rng.choice(n_labels, rng.integers(1, 4), replace=False, p=frequency / frequency.sum())
        words = [f"w{rng.choice(labels)}x{rng.integers(6)}" for _ in range(words_per_doc)]
        words += [f"common{rng.integers(20)}" for _ in range(3)]
        documents.append({"id": f"d{number}", "text": " ".join(words), "labels": sorted(f"L{label}" for label in labels)})
    return documents


def write_jsonl(path: Path, rows) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def documents():
    return make_documents


@pytest.fixture(scope="session")
def jsonl():
    return write_jsonl


def write_tiny_bert(folder: Path, words, positions=32) -> Path:
    """A BERT of 16 numbers a token and two layers, with a vocabulary of whole words, as Hugging Face keeps an encoder."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    vocabulary = {word: number for number, word in enumerate([*special.values(), *sorted(words)])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    ends = [("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.BertConfig(vocab_size=len(vocabulary), max_position_embeddings=positions, **sizes)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformers.BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory):
    """The folder of a tiny BERT that knows the words of `documents` of up to 40 labels."""
    words = [f"w{label}x{number}" for label in range(40) for number in range(6)] + [f"common{number}" for number in range(20)]
    return write_tiny_bert(tmp_path_factory.mktemp("tiny-bert"), words)


def run_in_children(works, longest=300):
    """Run each in a forked process of its own, at the same time; returns their wait statuses. One that hangs fails the test."""
    children = {_fork(work): None for work in works}
    until = time.monotonic() + longest
    while None in children.values():
        for child in [child for child, status in children.items() if status is None]:
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                children[child] = status
            elif time.monotonic() > until:
                os.kill(child, signal.SIGKILL)
        time.sleep(0.005)
    assert time.monotonic() < until, "a process hangs"
    return list(children.values())


def _fork(work):
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except SystemExit as ended:
            os._exit(ended.code or 0)
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(1)
    return child


@pytest.fixture(scope="session")
def in_children():
    return run_in_children


@pytest.fixture
def corpus(tmp_path):
    """train, valid, test and a label file of 40 labels, in tmp_path."""
    for name, n_docs, seed in (("train", 400, 1), ("valid", 60, 2), ("test", 80, 3)):
        write_jsonl(tmp_path / f"{name}.jsonl", make_documents(n_docs, 40, seed))
    labels = [{"id": f"L{i}", "text": f"w{i}x0 label {i}", "parents": [f"L{i // 8}"] if i > 8 else []} for i in range(40)]
    write_jsonl(tmp_path / "labels.jsonl", labels)
    return tmp_path


@pytest.fixture(scope="session")
def xbert():
    """Call the command line: xbert("run", "e.toml") -> result with exit_code, stdout, stderr."""
    from xbert.cli import main

    def call(*arguments, stdin=None):
        return CliRunner().invoke(main, [str(each) for each in arguments], input=stdin, catch_exceptions=False)

    return call


@pytest.fixture
def experiment(corpus, xbert):
    """The default linear experiment over the corpus, with 8 clusters: the path of its file."""
    written = xbert(
        "init",
        "linear",
        "--train",
        "train.jsonl",
        "--valid",
        "valid.jsonl",
        "--test",
        "test.jsonl",
        "--labels",
        "labels.jsonl",
    )
    path = corpus / "e.toml"
    path.write_text(written.stdout.replace('clusters = "auto"', "clusters = 8"), encoding="utf-8")
    return path
