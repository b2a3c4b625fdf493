"""Matrices in 8 bits: nearly the same answers from a quarter of the bytes."""

import numpy as np
import pytest
import torch

from xbert.artifacts.errors import InputError
from xbert.stages.neural.answering import answer_all
from xbert.stages.neural.devices import Arithmetic
from xbert.stages.neural.heads.cls import Cls
from xbert.stages.neural.heads.self_attention import SelfAttention
from xbert.stages.neural.names import BCE, EAGER, FP32, MEAN
from xbert.stages.neural.network import Network
from xbert.stages.neural.quantized import in_eight_bits
from xbert.stages.neural.tokens import TRUNCATE, Reading

CPU, PLAIN = torch.device("cpu"), Arithmetic(FP32, EAGER)
TEXTS = [" ".join(f"w{word}" for word in range(start, start + 6)) for start in range(40)]


@pytest.fixture(params=["bert", "bilstm"])
def network(request, encoder_of):
    encoder = encoder_of(request.param)
    return Network(encoder, [Cls(encoder.width, 9, BCE, MEAN), SelfAttention(encoder.width, 5, BCE, 8, 3, 20)]).eval()


def test_answers_in_eight_bits_are_near_those_in_32(network):
    pieces = Reading(TRUNCATE, 12).pieces(TEXTS, network.encoder.tokenizer)
    exact, answers = answer_all(network, pieces, 9, CPU, PLAIN)
    near, rounded = answer_all(in_eight_bits(network, CPU), pieces, 9, CPU, PLAIN)
    assert not np.array_equal(exact, near)
    assert np.abs(exact.astype(float) - near).max() < 0.05 * np.abs(exact).max()
    for (ids, scores), (its_ids, its_scores) in zip(answers, rounded, strict=True):
        by_target, its_own = (np.take_along_axis(s, np.argsort(i), 1) for i, s in ((ids, scores), (its_ids, its_scores)))
        np.testing.assert_allclose(by_target, its_own, atol=0.02)


def test_the_network_that_was_trained_stays_as_it_is(network):
    before = {name: weight.clone() for name, weight in network.state_dict().items()}
    in_eight_bits(network, CPU)
    assert all(torch.equal(weight, before[name]) for name, weight in network.state_dict().items())


def test_eight_bits_are_for_the_cpu(network):
    with pytest.raises(InputError, match="precision = 'int8' is for the CPU, and the network runs on cuda"):
        in_eight_bits(network, torch.device("cuda"))
