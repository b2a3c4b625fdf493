"""What every head must do, over every loss, either encoder and several seeds."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from xbert.stages.neural.building import build_head
from xbert.stages.neural.names import HEADS, LOSSES, POOLING
from xbert.stages.neural.network import Network
from xbert.stages.neural.states import make_targets

ENCODERS = ("bert", "bilstm")
CPU = torch.device("cpu")


@dataclass
class Settings:
    head: str
    loss: str
    pooling: str = "mean"


KINDS = [Settings("cls", loss, pooling) for loss in LOSSES for pooling in POOLING]
KINDS += [Settings(head, loss) for head in HEADS if head != "cls" for loss in LOSSES]
over_heads = pytest.mark.parametrize("settings", KINDS, ids=lambda each: f"{each.head}-{each.loss}-{each.pooling}")
over_encoders = pytest.mark.parametrize("encoder", ENCODERS)


@pytest.fixture
def network_of(encoder_of):
    def make(encoder, settings, n_targets=5, seed=0):
        torch.manual_seed(seed)
        made = encoder_of(encoder)
        return Network(made, [build_head(settings, made.width, n_targets)]).eval()

    return make


@over_encoders
@over_heads
def test_the_loss_is_a_scalar_and_every_weight_gets_a_gradient(network_of, batch_of, three, encoder, settings):
    texts, Y = three
    network = network_of(encoder, settings)
    loss = network(batch_of(network.encoder, texts), [make_targets(Y, np.arange(3), CPU)])
    loss.backward()
    assert loss.shape == ()
    assert loss.item() > 0
    assert all(torch.isfinite(weight.grad).all() for weight in network.parameters())
    assert all(weight.grad.abs().sum() > 0 for name, weight in network.heads.named_parameters())


@over_encoders
@over_heads
def test_the_best_targets_are_in_range_with_scores_falling_from_one_to_zero(network_of, batch_of, three, encoder, settings):
    network = network_of(encoder, settings)
    batch = batch_of(network.encoder, three[0])
    with torch.inference_mode():
        _, [(ids, scores)] = network.answer(batch, 3)
        _, [(every, _)] = network.answer(batch, 50)
    assert ids.shape == scores.shape == (3, 3)
    assert every.sort(1).values.tolist() == [list(range(5))] * 3
    assert ids.tolist() == every[:, :3].tolist()
    assert ((scores >= 0) & (scores <= 1)).all()
    assert (scores.diff(dim=1) <= 0).all()


@over_encoders
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("settings", [each for each in KINDS if each.pooling == "mean"], ids=lambda s: f"{s.head}-{s.loss}")
def test_three_documents_are_learnt_by_heart(network_of, batch_of, three, encoder, settings, seed):
    texts, Y = three
    network = network_of(encoder, settings, seed=seed).train()
    batch, positives = batch_of(network.encoder, texts), make_targets(Y, np.arange(3), CPU)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01 if settings.head == "cls" else 0.002)
    for _ in range(200):
        optimizer.zero_grad()
        loss = network(batch, [positives])
        if loss.item() < 0.2:
            break
        loss.backward()
        optimizer.step()
    with torch.inference_mode():
        _, [(ids, scores)] = network.eval().answer(batch, 5)
    for found, values, row in zip(ids, scores, ([0], [1, 3], [2]), strict=True):
        assert set(found[: len(row)].tolist()) == set(row)
        assert values[len(row) - 1] > 0.5 > values[len(row)]


@over_heads
def test_a_head_can_begin_with_how_frequent_targets_are(network_of, batch_of, three, settings):
    network = network_of("bert", settings)
    network.heads[0].start(torch.tensor([0.01, 0.02, 0.99, 0.03, 0.04]))
    with torch.inference_mode():
        _, [(ids, _)] = network.answer(batch_of(network.encoder, three[0]), 1)
    assert ids.tolist() == [[2]] * 3


def test_several_heads_share_the_loss_evenly(encoder_of, batch_of, three):
    texts, Y = three
    encoder = encoder_of("bert")
    heads = [build_head(Settings("cls", "bce"), encoder.width, 5) for _ in range(2)]
    batch, positives = batch_of(encoder, texts), make_targets(Y, np.arange(3), CPU)
    with torch.inference_mode():
        both = Network(encoder, heads)(batch, [positives, positives])
        each = [Network(encoder, [head])(batch, [positives]) for head in heads]
    assert both.item() == pytest.approx(sum(loss.item() for loss in each) / 2, rel=1e-6)
