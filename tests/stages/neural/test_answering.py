"""Many documents at once get the answers each would get alone."""

import numpy as np
import pytest
import torch

from xbert.stages.neural import answering
from xbert.stages.neural.answering import answer_all
from xbert.stages.neural.devices import Arithmetic
from xbert.stages.neural.heads.cls import Cls
from xbert.stages.neural.names import BCE, EAGER, FP32, MEAN
from xbert.stages.neural.network import Network
from xbert.stages.neural.tokens import WINDOWS, Reading

CPU, PLAIN = torch.device("cpu"), Arithmetic(FP32, EAGER)


@pytest.fixture(params=["bert", "bilstm"])
def network(request, encoder_of):
    encoder = encoder_of(request.param)
    return Network(encoder, [Cls(encoder.width, n_targets, BCE, MEAN) for n_targets in (7, 2)]).train()


@pytest.fixture
def pieces(network):
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{word}" for word in rng.integers(90, size=length)) for length in rng.integers(0, 40, 30)]
    return Reading(WINDOWS, 10, overlap=2).pieces(texts, network.encoder.tokenizer)


def test_documents_are_answered_as_if_alone_and_in_their_order(network, pieces, monkeypatch):
    monkeypatch.setattr(answering, "_TOKENS", 100)
    seen = []
    vectors, answers = answer_all(network, pieces, 3, CPU, PLAIN, seen.append)
    assert sum(seen) == 30
    assert len(seen) > 5
    assert [ids.shape for ids, _ in answers] == [(30, 3), (30, 2)]
    for doc in range(30):
        alone, each = answer_all(network, pieces.take(np.array([doc])), 3, CPU, PLAIN)
        np.testing.assert_allclose(vectors[doc], alone[0], atol=2e-3)  # kept in half precision
        for (ids, scores), (its_ids, its_scores) in zip(answers, each, strict=True):
            np.testing.assert_array_equal(ids[doc], its_ids[0])
            np.testing.assert_allclose(scores[doc], its_scores[0], atol=1e-5)


def test_very_many_targets_are_answered_for_few_documents_at_a_time(network, pieces, monkeypatch):
    expected = answer_all(network, pieces, 3, CPU, PLAIN)
    monkeypatch.setattr(answering, "_MARGINS", 4 * 7)
    seen = []
    found = answer_all(network, pieces, 3, CPU, PLAIN, seen.append)
    assert max(seen) == 4
    np.testing.assert_array_equal(found[1][0][0], expected[1][0][0])


def test_vectors_alone_are_the_same(network, pieces):
    with_answers, _ = answer_all(network, pieces, 3, CPU, PLAIN)
    vectors, answers = answer_all(network, pieces, 0, CPU, PLAIN)
    np.testing.assert_array_equal(vectors, with_answers)
    assert answers == []


def test_no_documents_get_no_answers_of_the_right_shape(network, pieces):
    vectors, answers = answer_all(network, pieces.take(np.array([], np.int64)), 3, CPU, PLAIN)
    assert len(vectors) == 0
    assert [(ids.shape, scores.shape) for ids, scores in answers] == [((0, 3), (0, 3)), ((0, 2), (0, 2))]
