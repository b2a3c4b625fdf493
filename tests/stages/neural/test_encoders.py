"""Encoders of several architectures: all are read alike, and padding never matters."""

import json
import logging
import shutil
import warnings

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from xbert.artifacts.errors import InputError
from xbert.stages.neural.building import build_encoder
from xbert.stages.neural.encoders.transformer import Transformer
from xbert.stages.neural.heads.cls import Cls
from xbert.stages.neural.heads.self_attention import SelfAttention
from xbert.stages.neural.names import BCE, EAGER, FIRST, LAST, MEAN, SDPA

KINDS = ("bert", "roberta", "xlnet", "mpnet", "modernbert")
SHORT, LONG, EMPTY = "w1 w2 w3", " ".join(f"w{number}" for number in range(20)), ""
HEADS = {
    "first": lambda width: Cls(width, 4, BCE, FIRST),
    "mean": lambda width: Cls(width, 4, BCE, MEAN),
    "last": lambda width: Cls(width, 4, BCE, LAST),
    "self_attention": lambda width: SelfAttention(width, 4, BCE, attention=5, rows=3, hidden=6),
}
over_kinds = pytest.mark.parametrize("kind", KINDS)


@pytest.mark.parametrize("kind", [*KINDS, "bilstm"])
def test_padding_does_not_matter_to_any_encoder_and_head(encoder_of, batch_of, kind):
    encoder = encoder_of(kind)
    with torch.inference_mode():
        together = encoder(batch_of(encoder, [SHORT, LONG, EMPTY]), all_layers=True)
        alone = [encoder(batch_of(encoder, [text]), all_layers=True) for text in (SHORT, LONG, EMPTY)]
        for layer in range(len(together.layers)):
            for row, each in enumerate(alone):
                states = each.layers[layer][0]
                torch.testing.assert_close(together.layers[layer][row, : len(states)], states, atol=1e-5, rtol=0)
        for name, make in HEADS.items():
            head = make(encoder.width)
            expected = torch.cat([head.margins(head.read(each)) for each in alone])
            found = head.margins(head.read(together))
            assert torch.isfinite(found).all(), name
            torch.testing.assert_close(found, expected, atol=1e-5, rtol=0, msg=name)


@over_kinds
def test_all_layers_end_with_the_last(encoder_of, batch_of, kind):
    encoder = encoder_of(kind)
    batch = batch_of(encoder, [SHORT, LONG])
    with torch.inference_mode():
        every, last = encoder(batch, all_layers=True), encoder(batch)
    assert len(every.layers) == encoder.depth() + 1 == 3
    assert every.last.shape == (2, batch.ids.shape[1], 16)
    assert len(last.layers) == 1
    torch.testing.assert_close(every.last, last.last, atol=1e-6, rtol=0)


@over_kinds
def test_special_tokens_stand_where_the_architecture_wants_them(encoder_of, batch_of, kind):
    encoder = encoder_of(kind)
    batch = batch_of(encoder, ["w0 w1", "w2"])
    assert batch.ids[0].tolist() == ([5, 6, 2, 0] if kind == "xlnet" else [0, 5, 6, 2])
    assert batch.ids[1, -1] == encoder.tokenizer.padding == 1
    assert batch.mask.tolist() == [[1, 1, 1, 1], [1, 1, 1, 0]]


@over_kinds
def test_as_many_tokens_can_be_read_as_it_says_and_where_positions_are_learnt_no_more(encoder_of, batch_of, kind):
    encoder = encoder_of(kind)
    most = {"bert": 40, "roberta": 38, "mpnet": 38, "modernbert": 40, "xlnet": None}[kind]
    assert encoder.most_tokens() == most
    text = " ".join(["w1"] * 100)
    with torch.inference_mode():
        assert torch.isfinite(encoder(batch_of(encoder, [text], most=most or 90)).last).all()
        if kind in ("bert", "roberta", "mpnet"):
            with pytest.raises((IndexError, RuntimeError)):
                encoder(batch_of(encoder, [text], most=most + 1))


@over_kinds
def test_attention_can_be_computed_either_way_without_a_remark(encoder_of, batch_of, kind, caplog):
    encoder = encoder_of(kind)
    batch = batch_of(encoder, [SHORT, LONG])
    caplog.set_level(logging.WARNING)
    found = []
    for attention in (EAGER, SDPA):
        encoder.set_attention(attention)
        with torch.inference_mode():
            found.append(encoder(batch).last[batch.mask == 1])
    torch.testing.assert_close(*found, atol=1e-5, rtol=0)
    assert not caplog.records


@over_kinds
def test_what_is_frozen_does_not_learn_and_the_rest_does(encoder_of, batch_of, kind):
    encoder = encoder_of(kind)
    encoder.freeze(1, True)
    before = {name: weight.clone() for name, weight in encoder.named_parameters()}
    optimizer = torch.optim.AdamW([weight for weight in encoder.parameters() if weight.requires_grad], lr=0.1)
    encoder.train()(batch_of(encoder, [SHORT, LONG])).last.square().sum().backward()
    optimizer.step()
    learnt = {name for name, weight in encoder.named_parameters() if not torch.equal(weight, before[name])}
    lowest, upper = ([id(weight) for weight in layer.parameters()] for layer in encoder.layers())
    named = dict(encoder.named_parameters())
    assert learnt
    assert not any("embed" in name or id(named[name]) in lowest for name in learnt)
    assert any(id(named[name]) in upper for name in learnt)


def test_embeddings_can_be_frozen_alone(encoder_of):
    encoder = encoder_of("bert")
    encoder.freeze(0, True)
    assert not any(weight.requires_grad for weight in encoder.model.embeddings.parameters())
    assert all(weight.requires_grad for weight in encoder.model.encoder.parameters())


@over_kinds
def test_gradients_can_be_checkpointed_or_it_is_said(encoder_of, batch_of, kind):
    encoder = encoder_of(kind).train()
    batch = batch_of(encoder, [SHORT, LONG])
    encoder(batch).last.square().sum().backward()
    expected = [weight.grad.clone() for weight in encoder.parameters() if weight.grad is not None]
    encoder.zero_grad()
    if kind in ("xlnet", "mpnet"):
        with pytest.raises(InputError, match="gradient_checkpointing = true, but"):
            encoder.checkpoint_gradients()
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.checkpoint_gradients()
    encoder(batch).last.square().sum().backward()
    found = [weight.grad for weight in encoder.parameters() if weight.grad is not None]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


@over_kinds
def test_dropout_is_what_the_setting_says(encoder_of, batch_of, kind):
    still, shaken = encoder_of(kind, dropout=0.0).train(), encoder_of(kind, dropout=0.5).train()
    batch = batch_of(still, [SHORT])
    assert torch.equal(still(batch).last, still(batch).last)
    assert not torch.equal(shaken(batch).last, shaken(batch).last)


@over_kinds
def test_it_is_built_again_from_its_files(encoder_of, batch_of, tmp_path, kind):
    encoder = encoder_of(kind)
    encoder.save_files(tmp_path)
    shell = Transformer.load(tmp_path, weights=False).eval()
    shell.load_state_dict(encoder.state_dict())
    with torch.inference_mode():
        found, expected = (each(batch_of(each, [SHORT, LONG])).last for each in (shell, encoder))
    assert torch.equal(found, expected)


@pytest.fixture
def copy(encoder_folder, tmp_path):
    """A copy of an encoder's folder, to be spoilt."""
    return shutil.copytree(encoder_folder("bert"), tmp_path / "copy")


def configured(folder, **values):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def spoilt_weights(folder, change):
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


LAYER = "encoder.layer.1.output.dense.weight"


def test_weights_that_are_missing_are_not_made_up(copy):
    spoilt_weights(copy, lambda weights: weights.pop(LAYER))
    with pytest.raises(InputError, match=f"lacks 1 of its encoder's weights, as '{LAYER}'"):
        Transformer.load(copy)


def test_a_missing_pooling_layer_is_not_missed(copy):
    spoilt_weights(copy, lambda weights: [weights.pop(name) for name in list(weights) if "pooler" in name])
    assert Transformer.load(copy).width == 16


@pytest.mark.parametrize(
    "spoil",
    [
        lambda folder: (folder / "model.safetensors").write_bytes(b"nonsense"),
        lambda folder: spoilt_weights(folder, lambda weights: weights.update({LAYER: np.zeros((2, 2), np.float32)})),
        lambda folder: configured(folder, model_type="of-the-future"),
        lambda folder: configured(folder, hidden_size="wide"),
        lambda folder: configured(folder, num_attention_heads=5),
    ],
    ids=["weights", "shape", "type", "size", "heads"],
)
def test_a_spoilt_encoder_is_one_sentence(copy, spoil):
    spoil(copy)
    with pytest.raises(InputError, match=r"copy holds no (encoder|tokenizer) that can be"):
        Transformer.load(copy)


@pytest.mark.parametrize("content", ["{", '{"a": 1}'])
def test_a_spoilt_tokenizer_is_one_sentence(copy, content):
    (copy / "tokenizer.json").write_text(content)
    with pytest.raises(InputError, match="copy holds no tokenizer that can be read"):
        Transformer.load(copy)


def test_an_encoder_with_a_decoder_is_refused(encoder_folder):
    with pytest.raises(InputError, match=r"holds an encoder-decoder \(t5\)"):
        Transformer.load(encoder_folder("t5"))


class Settings:
    encoder, dropout, freeze_layers = "transformer", 0.0, 3
    words, word_width, lstm_width, word_vectors = 9, 4, 4, ""


def test_more_frozen_layers_than_there_are_are_refused(encoder_folder):
    settings = Settings()
    settings.model = str(encoder_folder("bert"))
    with pytest.raises(InputError, match="freeze_layers = 3, but the encoder has 2 layers"):
        build_encoder(settings, [])


def test_an_architecture_with_one_way_to_compute_attention_keeps_to_it(encoder_of, batch_of, monkeypatch):
    encoder = encoder_of("bert")
    batch = batch_of(encoder, [SHORT])
    before = encoder(batch).last

    def refuse(attention):
        raise ValueError(f"this model does not support {attention} yet")

    monkeypatch.setattr(encoder.model, "set_attn_implementation", refuse)
    encoder.set_attention(SDPA)
    torch.testing.assert_close(encoder(batch).last, before)
