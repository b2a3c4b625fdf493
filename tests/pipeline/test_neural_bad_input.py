"""What can be wrong with fine-tuning: one sentence, exit code 3, no traceback."""

import pytest

pytest.importorskip("transformers")

import torch
from transformers import BertModel

from xbert.artifacts.errors import ArtifactError
from xbert.pipeline.config import read
from xbert.pipeline.console import Console
from xbert.pipeline.runner import Runner


@pytest.fixture(scope="module")
def path(write_neural, tmp_path_factory, xbert):
    """An experiment whose index is made: only match is left to fail."""
    path = write_neural(tmp_path_factory.mktemp("neural"))
    assert xbert("index", path).exit_code == 0
    return path


def refused(xbert, path, *settings):
    """The one sentence that match ends with under these settings."""
    result = xbert("match", path, *(part for setting in settings for part in ("-o", setting)))
    assert result.exit_code == 3, result.stderr
    assert "Traceback" not in result.output
    sentences = [line for line in result.stderr.splitlines() if line.startswith("xbert: ")]
    assert len(sentences) == 1
    return sentences[0]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (["match.learning_rate=1e30"], "the loss is no longer a number at step"),
        (["match.max_tokens=33"], "[match] max_tokens = 33, but the encoder has 32 positions: set it to at most 32"),
        (["match.freeze_layers=3"], "freeze_layers = 3, but the encoder has 2 layers"),
        (["match.model=/nowhere/bert"], "the encoder's folder /nowhere/bert does not exist"),
    ],
)
def test_a_setting_that_cannot_be_is_one_sentence(path, xbert, settings, sentence):
    assert sentence in refused(xbert, path, *settings)


def test_vectors_of_a_head_that_makes_none_are_refused_with_the_settings(path, xbert):
    result = xbert("match", path, "-o", "match.head=self_attention", "-o", "match.train_vectors=true")
    assert result.exit_code == 2
    assert "[match] train_vectors is for head = 'cls'" in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_asked_for_where_there_is_none(path, xbert):
    assert "device = 'cuda', but torch" in refused(xbert, path, "match.device=cuda")


def test_an_encoder_that_is_nowhere(path, xbert, monkeypatch):
    import huggingface_hub.constants

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    said = refused(xbert, path, "match.model=no-such/encoder")
    assert "the encoder 'no-such/encoder' is neither a folder here nor in the Hugging Face cache" in said


def test_a_folder_that_holds_no_encoder(path, xbert, tmp_path):
    assert "holds no config.json" in refused(xbert, path, f"match.model={tmp_path}")


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"), "xbert: the GPU's memory is too small"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), "xbert: memory is too small"),
    ],
)
def test_too_little_memory_names_the_setting_to_lower(path, xbert, monkeypatch, error, sentence):
    def forward(self, *arguments, **more):
        raise error

    monkeypatch.setattr(BertModel, "forward", forward)
    assert f"{sentence}: lower [match] at_once (now 16)" in refused(xbert, path)


def test_a_matcher_of_another_index_is_refused(path):
    runner = Runner(read(path), Console(quiet=True))
    runner.run(["match"])
    made = runner.graph.models["neural"]
    matcher, index = runner.artifact(made["match"]), runner.artifact(made["index"])
    assert set(matcher.scores_of(index)) == {"valid"}
    other = Runner(read(path, ["index.seed=5"]), Console(quiet=True))
    other.run(["index"])
    with pytest.raises(ArtifactError, match="the matcher was not fine-tuned for this label index"):
        matcher.scores_of(other.artifact(other.graph.models["neural"]["index"]))
