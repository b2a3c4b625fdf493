"""Heads and losses against their equations, computed by hand."""

import numpy as np
import pytest
import torch
from scipy.special import expit, softmax

from xbert.stages.neural.heads.cls import Cls, pool
from xbert.stages.neural.heads.self_attention import SelfAttention
from xbert.stages.neural.losses import LOSSES
from xbert.stages.neural.names import BCE, FIRST, LAST, MEAN, SQUARED_HINGE
from xbert.stages.neural.states import States
from xbert.stages.neural.tokens import WINDOWS

LENGTHS = (4, 2, 5)


@pytest.fixture
def states():
    """Random states of three documents, whose padding holds large numbers."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(3, 5, 6)).astype(np.float32)
    mask = np.arange(5) < np.array(LENGTHS)[:, None]
    vectors[~mask] = 1000
    return States((torch.from_numpy(vectors),), torch.from_numpy(mask.astype(np.int64)), torch.arange(3), 3)


def array(tensor):
    return tensor.detach().numpy().astype(np.float64)


def test_self_attention_follows_the_equations_of_the_paper(states):
    head = SelfAttention(6, 7, BCE, attention=4, rows=3, hidden=9)
    W1, W2, V, U = (array(layer.weight) for layer in (head.inner, head.outer, head.hidden, head.output))
    with torch.no_grad():
        head.hidden.bias.uniform_()
        head.output.bias.uniform_()
        margins = head.margins(head.read(states))
    for doc, length in enumerate(LENGTHS):
        H = array(states.last)[doc, :length].T  # 2u x T
        A = softmax(W2 @ np.tanh(W1 @ H), axis=1)  # r x T
        v = (H @ A.T).T.ravel()  # one row of attention after the other
        expected = U @ np.maximum(V @ v + array(head.hidden.bias), 0) + array(head.output.bias)
        np.testing.assert_allclose(array(margins[doc]), expected, atol=1e-5)


def test_attention_sums_to_one_and_leaves_padding_alone(states):
    weights = array(SelfAttention(6, 7, BCE, attention=4, rows=3, hidden=9).attention(states))
    np.testing.assert_allclose(weights.sum(2), 1, atol=1e-6)
    assert weights[1, :, LENGTHS[1] :].max() == 0


@pytest.mark.parametrize("pooling", [FIRST, MEAN, LAST])
def test_pooling_takes_the_first_the_last_or_the_mean_of_the_tokens(states, pooling):
    for doc, length in enumerate(LENGTHS):
        H = array(states.last)[doc, :length]
        expected = {FIRST: H[0], LAST: H[-1], MEAN: H.mean(0)}[pooling]
        np.testing.assert_allclose(array(pool(states, pooling)[doc]), expected, atol=1e-6)


def test_a_linear_head_is_linear(states):
    head = Cls(6, 7, BCE, FIRST)
    with torch.no_grad():
        head.output.bias.uniform_()
        margins = head.margins(head.read(states))
    expected = array(states.last)[:, 0] @ array(head.output.weight).T + array(head.output.bias)
    np.testing.assert_allclose(array(margins), expected, atol=1e-6)


@pytest.mark.parametrize("kind", ["bert", "bilstm"])
@pytest.mark.parametrize("pooling", [FIRST, MEAN, LAST])
def test_a_document_of_several_windows_has_the_mean_of_their_vectors(encoder_of, batch_of, kind, pooling):
    encoder = encoder_of(kind)
    special = len(encoder.tokenizer.prefix) + len(encoder.tokenizer.suffix)
    texts = ["w1 w2 w3 w4 w5 w6 w7 w8", "w9 w10", "w11 w12 w13 w14 w15"]
    windows = ["w1 w2 w3 w4", "w4 w5 w6 w7", "w7 w8", "w9 w10", "w11 w12 w13 w14", "w14 w15"]
    with torch.inference_mode():
        whole = encoder(batch_of(encoder, texts, WINDOWS, 4 + special, overlap=1))
        parts = pool(encoder(batch_of(encoder, windows)), pooling)
        read = pool(whole, pooling)
    assert whole.owner.tolist() == [0, 0, 0, 1, 2, 2]
    expected = torch.stack([parts[:3].mean(0), parts[3], parts[4:].mean(0)])
    torch.testing.assert_close(read, expected, atol=1e-5, rtol=0)


def test_self_attention_averages_windows_before_its_perceptron(encoder_of, batch_of):
    encoder = encoder_of("bilstm")
    head = SelfAttention(encoder.width, 3, BCE, attention=4, rows=2, hidden=5)
    with torch.inference_mode():
        whole = head.read(encoder(batch_of(encoder, ["w1 w2 w3 w4"], WINDOWS, 2, overlap=0)))
        parts = encoder(batch_of(encoder, ["w1 w2", "w3 w4"]))
        means = torch.bmm(head.attention(parts), parts.last).flatten(1).mean(0, keepdim=True)
        torch.testing.assert_close(whole, torch.relu(head.hidden(means)), atol=1e-6, rtol=0)


MARGINS = np.array([[-2.0, 0.5, 3.0], [0.0, 1.0, -0.5]])
POSITIVES = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]])


def test_cross_entropy_is_summed_over_targets_and_averaged_over_documents():
    loss = LOSSES[BCE]
    p = expit(MARGINS)
    expected = -(POSITIVES * np.log(p) + (1 - POSITIVES) * np.log(1 - p)).sum() / 2
    assert loss.of(torch.tensor(MARGINS), torch.tensor(POSITIVES)).item() == pytest.approx(expected)
    np.testing.assert_allclose(loss.scores(torch.tensor(MARGINS)), p)


def test_squared_hinge_wants_every_margin_beyond_one():
    loss = LOSSES[SQUARED_HINGE]
    hinge = np.maximum(1 - np.where(POSITIVES > 0, 1, -1) * MARGINS, 0)
    assert loss.of(torch.tensor(MARGINS), torch.tensor(POSITIVES)).item() == pytest.approx((hinge**2).sum() / 2)
    np.testing.assert_allclose(loss.scores(torch.tensor(MARGINS)), np.exp(-(np.maximum(1 - MARGINS, 0) ** 3)))


@pytest.mark.parametrize("loss", [BCE, SQUARED_HINGE])
def test_the_margin_of_a_share_is_the_constant_with_the_least_loss(loss):
    made, positives = LOSSES[loss], torch.tensor([[1.0]] * 3 + [[0.0]] * 7)
    best = made.margin_of(torch.tensor([0.3]))
    at_best = made.of(best.expand(10, 1), positives)
    for other in (best - 0.05, best + 0.05):
        assert made.of(other.expand(10, 1), positives) > at_best


@pytest.mark.parametrize("loss", [BCE, SQUARED_HINGE])
def test_scores_stay_in_range_at_the_ends(loss):
    scores = LOSSES[loss].scores(torch.tensor([-1e30, -200.0, 200.0, 1e30]))
    assert scores.tolist() == [0, 0, 1, 1]
    shares = LOSSES[loss].margin_of(torch.tensor([0.0, 1.0]))
    assert torch.isfinite(shares).all()
