"""The BiLSTM of X-ttention."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from xbert.artifacts.errors import ArtifactError, InputError
from xbert.stages.neural.encoders.bilstm import BiLstm
from xbert.stages.neural.encoders.words import FIRST_WORD
from xbert.stages.neural.names import EAGER, SDPA

TEXTS = ["a cat and a dog", "cats 12 and 13 dogs", "dog"]


def start(seed=0, **settings):
    torch.manual_seed(seed)
    return BiLstm.start(TEXTS, **{"words": 100, "word_width": 6, "lstm_width": 5, "word_vectors": "", **settings})


def test_it_reads_as_one_bidirectional_lstm_over_packed_sequences(batch_of):
    encoder = start()
    one = nn.LSTM(6, 5, batch_first=True, bidirectional=True)
    weights = {**encoder.ahead.state_dict(), **{f"{name}_reverse": w for name, w in encoder.back.state_dict().items()}}
    one.load_state_dict(weights)
    batch = batch_of(encoder, [*TEXTS, ""])
    with torch.inference_mode():
        packed = pack_padded_sequence(encoder.words(batch.ids), batch.mask.sum(1), batch_first=True, enforce_sorted=False)
        expected, lengths = pad_packed_sequence(one(packed)[0], batch_first=True)
        found = encoder(batch).last
    assert found.shape == (4, 5, encoder.width)
    for row, length in enumerate(lengths):
        torch.testing.assert_close(found[row, :length], expected[row, :length], atol=1e-6, rtol=0)


def test_all_layers_are_the_words_and_what_is_made_of_them(batch_of):
    encoder = start()
    batch = batch_of(encoder, TEXTS)
    words, last = encoder(batch, all_layers=True).layers
    assert torch.equal(words, encoder.words(batch.ids))
    assert torch.equal(last, encoder(batch).last)


def test_the_same_seed_starts_the_same_encoder_and_another_another():
    first, again, other = (start(seed).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not any(torch.equal(first[name], other[name]) for name in first)


def test_the_attention_that_is_chosen_changes_nothing(batch_of):
    encoder = start()
    batch = batch_of(encoder, TEXTS)
    before = encoder(batch).last
    for attention in (EAGER, SDPA):
        encoder.set_attention(attention)
        assert torch.equal(encoder(batch).last, before)


def test_there_is_no_longest_text_and_no_layer_to_freeze():
    encoder = start()
    assert (encoder.most_tokens(), encoder.depth()) == (None, 0)
    with pytest.raises(InputError, match="gradient_checkpointing"):
        encoder.checkpoint_gradients()


@pytest.mark.parametrize("embeddings", [False, True])
def test_word_vectors_can_be_left_as_they_are(embeddings):
    encoder = start()
    encoder.freeze(0, embeddings)
    assert encoder.words.weight.requires_grad is not embeddings
    assert all(weight.requires_grad for weight in encoder.ahead.parameters())


def test_values_are_left_out_only_while_learning(batch_of):
    encoder = start(dropout=0.5)
    batch = batch_of(encoder, TEXTS)
    assert not torch.equal(encoder.train()(batch).last, encoder(batch).last)
    assert torch.equal(encoder.eval()(batch).last, encoder(batch).last)


def test_words_of_a_file_start_there_and_others_at_random_in_the_same_range(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("Dog " + "0.01 -0.01 " * 3 + "\ncat " + "0.02 -0.02 " * 3 + "\nbird " + "9 " * 6, "utf-8")
    encoder = start(word_vectors=str(path))
    weight = encoder.words.weight.detach()
    known = {word: weight[number] for word, number in encoder.tokenizer.numbers.items()}
    torch.testing.assert_close(known["dog"], torch.tensor([0.01, -0.01] * 3))
    torch.testing.assert_close(known["cat"], torch.tensor([0.02, -0.02] * 3))
    assert encoder.n_found == encoder.describe()["words_found"] == 2
    assert weight[0].abs().max() == 0
    assert 0.001 < known["and"].abs().mean() < 0.05
    assert torch.equal(weight, start(word_vectors=str(path)).words.weight)


def test_a_file_with_none_of_the_words_is_refused(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("oiseau" + " 1" * 6, "utf-8")
    with pytest.raises(InputError, match=r"vectors.txt has none of the 6 words"):
        start(word_vectors=str(path))


def test_padding_never_learns(batch_of):
    encoder = start()
    encoder(batch_of(encoder, TEXTS)).last.sum().backward()
    assert encoder.words.weight.grad[0].abs().max() == 0
    assert encoder.words.weight.grad[FIRST_WORD:].abs().sum(1).min() > 0


def test_it_is_built_again_from_its_files_and_what_it_tells(tmp_path, batch_of):
    encoder = start()
    encoder.save_files(tmp_path)
    shell = BiLstm.load(tmp_path, encoder.describe())
    shell.load_state_dict(encoder.state_dict())
    batch = batch_of(shell, TEXTS)
    np.testing.assert_array_equal(batch.ids, batch_of(encoder, TEXTS).ids)
    assert torch.equal(shell(batch).last, encoder(batch).last)
    assert shell.describe() == encoder.describe()


@pytest.mark.parametrize("value", [None, -1, "5", 2.0, True])
def test_a_damaged_header_is_refused(tmp_path, value):
    encoder = start()
    encoder.save_files(tmp_path)
    with pytest.raises(ArtifactError, match="lstm_width = "):
        BiLstm.load(tmp_path, {**encoder.describe(), "lstm_width": value})
