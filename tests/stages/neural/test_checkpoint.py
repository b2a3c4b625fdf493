"""A training can be taken up as if nothing had happened, and by no other network."""

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from xbert.artifacts.errors import ArtifactError
from xbert.stages.neural import checkpoint
from xbert.stages.neural.heads.cls import Cls
from xbert.stages.neural.heads.self_attention import SelfAttention
from xbert.stages.neural.names import BCE, MEAN
from xbert.stages.neural.network import Network
from xbert.stages.neural.states import make_targets


@pytest.fixture(params=["bert", "bilstm"])
def training_of(request, encoder_of, batch_of, three):
    """A network, its optimizer, and a function that makes a step with dropout."""

    def make(seed, n_targets=5):
        torch.manual_seed(seed)
        encoder = encoder_of(request.param, dropout=0.2)
        network = Network(encoder, [Cls(encoder.width, n_targets, BCE, MEAN)]).train()
        optimizer = torch.optim.AdamW(network.parameters(), lr=0.01, fused=True)
        batch, positives = batch_of(encoder, three[0]), make_targets(three[1], np.arange(3), torch.device("cpu"))

        def step():
            optimizer.zero_grad()
            loss = network(batch, [positives])
            loss.backward()
            optimizer.step()
            return loss.item()

        return network, optimizer, step

    return make


def test_a_training_goes_on_where_it_was(training_of):
    network, optimizer, step = training_of(0)
    for _ in range(3):
        step()
    kept = checkpoint.take(network, optimizer, {"step": 3, "best": 0.5})
    expected = [step() for _ in range(3)]
    other, its_optimizer, its_step = training_of(1)
    its_step()
    checkpoint.restore(other, its_optimizer, kept)
    assert checkpoint.facts_of(kept) == {"step": 3, "best": 0.5}
    assert [its_step() for _ in range(3)] == expected
    assert all(torch.equal(one, two) for one, two in zip(network.parameters(), other.parameters(), strict=True))


def test_what_is_kept_are_plain_arrays_that_later_steps_leave_alone(training_of):
    network, optimizer, step = training_of(0)
    step()
    kept = checkpoint.take(network, optimizer, {})
    before = {name: array.copy() for name, array in kept.items()}
    step()
    assert all(array.dtype.hasobject is False for array in kept.values())
    assert all(np.array_equal(before[name], array) for name, array in kept.items())


def test_weights_of_another_size_are_refused(training_of):
    network, optimizer, _ = training_of(0)
    other, its_optimizer, _ = training_of(0, n_targets=6)
    with pytest.raises(ArtifactError, match=r"heads.0.output.weight is \(5, 16\) in the checkpoint, \(6, 16\) in the network"):
        checkpoint.restore(other, its_optimizer, checkpoint.take(network, optimizer, {}))


def test_weights_of_another_head_are_refused(training_of):
    network, _, _ = training_of(0)
    weights = checkpoint.weights_of(network)
    before = {name: array.copy() for name, array in weights.items()}
    other = Network(network.encoder, [SelfAttention(16, 5, BCE, 2, 2, 2)])
    with pytest.raises(ArtifactError, match=r"the checkpoint lacks 'heads.0.hidden.bias': the weights are of another"):
        checkpoint.load_weights(other, weights)
    with pytest.raises(ArtifactError, match=r"the network has no 'heads.0.hidden.bias'"):
        checkpoint.load_weights(network, checkpoint.weights_of(other))
    assert all(np.array_equal(before[name], array) for name, array in checkpoint.weights_of(network).items())


def test_weights_are_read_from_a_file(tmp_path):
    save_file({"a": np.ones(3, np.float32)}, tmp_path / "weights.safetensors")
    assert checkpoint.read_weights(tmp_path / "weights.safetensors")["a"].tolist() == [1, 1, 1]
    (tmp_path / "cut").write_bytes((tmp_path / "weights.safetensors").read_bytes()[:-4])
    with pytest.raises(ArtifactError, match="cut holds no weights"):
        checkpoint.read_weights(tmp_path / "cut")
    with pytest.raises(ArtifactError, match="none is missing"):
        checkpoint.read_weights(tmp_path / "none")
