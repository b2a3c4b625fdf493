"""What a setting of fine-tuning is part of: the result, or only the way to it."""

import shutil

import pytest

pytest.importorskip("transformers")

from xbert.pipeline.config import read
from xbert.pipeline.console import Console
from xbert.pipeline.runner import Runner
from xbert.stages.base import Shape
from xbert.stages.match.neural import Neural, NeuralConfig
from xbert.stages.match.neural_cost import size_of


def recipe(path, *settings):
    return Runner(read(path, settings), Console(quiet=True)).graph.models["neural"]["match"].recipe


@pytest.mark.parametrize("setting", ["match.at_once=4", "match.gradient_checkpointing=true", "match.device=auto"])
def test_how_to_compute_can_be_changed_in_the_middle_of_a_run(write_neural, tmp_path, setting):
    path = write_neural(tmp_path)
    assert recipe(path, setting) == recipe(path)
    assert recipe(path, "match.batch=8") != recipe(path)


def test_an_encoder_beside_the_experiment_file_is_found_from_any_folder(write_neural, tmp_path, tiny_bert, monkeypatch):
    path = write_neural(tmp_path / "work")
    shutil.copytree(tiny_bert, tmp_path / "work" / "encoders" / "tiny")
    monkeypatch.chdir(tmp_path)
    beside = recipe(path, "match.model=encoders/tiny")
    assert beside == recipe(path)  # the same files in another place
    (tmp_path / "work/encoders/tiny/config.json").write_text("{}")
    assert recipe(path, "match.model=encoders/tiny") != beside


LAWS = Shape(45_000, 6_000, 4_108, 228_000, text_bytes=214_000_000, entries=8_000_000, n_terms=39_000, n_clusters=4_108)


def test_a_larger_encoder_and_longer_batches_take_more_memory(tiny_bert):
    def memory(**settings):
        return Neural.estimate(NeuralConfig(**settings), LAWS, 2).memory

    usual = memory()
    assert memory(model=str(tiny_bert)) < usual < memory(encoder="bilstm", head="self_attention")
    assert memory(at_once=4) < usual
    assert memory(gradient_checkpointing=True) < usual
    assert memory(max_tokens=64) < usual
    assert size_of(NeuralConfig(model=str(tiny_bert)))[1:] == (16, 2)


def test_a_plan_that_does_not_fit_names_the_settings_of_fine_tuning(write_neural, tmp_path, xbert):
    path = write_neural(tmp_path)
    result = xbert("run", path, "--memory", "400M", "-o", "match.encoder=bilstm")
    assert result.exit_code == 3
    assert "match needs about " in result.stderr
    assert "or a lower match.at_once or match.max_tokens, or match.gradient_checkpointing = true" in result.stderr
