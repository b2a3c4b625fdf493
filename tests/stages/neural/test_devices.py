"""Devices, arithmetic, and what is said where memory is short."""

import ctypes
import resource
from pathlib import Path

import numpy as np
import pytest
import torch

from xbert.artifacts.errors import InputError
from xbert.stages.neural.arithmetic import choose_arithmetic
from xbert.stages.neural.devices import Arithmetic, choose_device, give_back, memory_kept, out_of_memory_errors, torch_threads
from xbert.stages.neural.heads.cls import Cls
from xbert.stages.neural.heads.self_attention import SelfAttention
from xbert.stages.neural.names import AUTO, BCE, BF16, EAGER, FP32, MEAN, SDPA
from xbert.stages.neural.network import Network
from xbert.stages.neural.ranks import Ranks

CPU = torch.device("cpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_asked_for_where_there_is_none_is_an_error():
    with pytest.raises(InputError, match=r"device = 'cuda', but torch .* finds no such device here \(there is cpu"):
        choose_device("cuda")


def test_the_processor_is_always_there_and_auto_finds_something():
    assert choose_device("cpu", rank=3) == CPU
    assert choose_device(AUTO).type in ("cpu", "cuda", "mps")


@pytest.mark.parametrize(
    "error",
    [torch.OutOfMemoryError("CUDA out of memory"), MemoryError(), RuntimeError("DefaultCPUAllocator: not enough memory")],
)
def test_too_little_memory_is_said_with_what_to_do(error):
    with pytest.raises(InputError, match="memory is too small: lower at_once"), out_of_memory_errors("lower at_once"):
        raise error


def test_more_processes_than_gpus_is_one_sentence(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [choose_device("cuda", rank, 2).index for rank in (0, 1, 2, 3)] == [0, 1, 0, 1]
    with pytest.raises(InputError, match="3 processes on a machine with 2 GPUs: each needs one of its own"):
        choose_device("cuda", 2, 3)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the C library has no malloc_trim")
def test_holes_between_what_is_in_use_are_given_back():
    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    with memory_kept():
        pieces = [np.ones(2_000_000, np.uint8) for _ in range(100)]
        del pieces[::2]
        before = resident()
        give_back()
        assert before - resident() > 80_000_000
        assert sum(map(len, pieces)) == 100_000_000


def test_other_errors_pass():
    with pytest.raises(RuntimeError, match="something else"), out_of_memory_errors("lower at_once"):
        raise RuntimeError("something else")


def test_threads_are_as_before_afterwards():
    before = torch.get_num_threads()
    with torch_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


def _new_pages(rounds=8, size=48_000_000):
    """Pages the system had to clear while an array was made and freed again and again."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(rounds):
        np.ones(size, np.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library has no mallopt")
def test_freed_memory_is_kept_only_inside():
    given_back = _new_pages()
    with memory_kept():
        kept = _new_pages()
    assert kept < given_back / 3
    assert _new_pages() > given_back / 2


@pytest.fixture(params=["bert", "bilstm", "xlnet"])
def network(request, encoder_of):
    encoder = encoder_of(request.param, dropout=0.1)
    heads = [Cls(encoder.width, 3, BCE, MEAN), SelfAttention(encoder.width, 3, BCE, 4, 2, 8)]
    return Network(encoder, heads)


@pytest.mark.parametrize("precision", [AUTO, FP32, BF16])
def test_measuring_changes_nothing_but_the_choice_which_is_kept(network, work, precision):
    before = {name: weight.clone() for name, weight in network.state_dict().items()}
    random = torch.get_rng_state()
    chosen = choose_arithmetic(network, precision, CPU, 12, work, Ranks())
    assert chosen.precision == precision or (precision == AUTO and chosen.precision in (FP32, BF16))
    assert chosen.attention in (EAGER, SDPA)
    assert all(torch.equal(weight, before[name]) for name, weight in network.state_dict().items())
    assert all(weight.grad is None for weight in network.parameters())
    assert torch.equal(torch.get_rng_state(), random)
    work.pieces["arithmetic"]["choice"] = work.pieces["arithmetic"]["choice"].copy()
    assert choose_arithmetic(network, precision, CPU, 12, work, Ranks()) == chosen


@pytest.mark.parametrize("kind", ["bert", "bilstm"])
def test_half_precision_is_near(encoder_of, batch_of, kind):
    encoder = encoder_of(kind)
    head = SelfAttention(encoder.width, 3, BCE, 4, 2, 8)
    batch = batch_of(encoder, ["w1 w2 w3", "w4"])
    with torch.inference_mode():
        plain = head.margins(head.read(encoder(batch)))
        with Arithmetic(BF16, EAGER).context(CPU):
            near = head.margins(head.read(encoder(batch)))
    torch.testing.assert_close(near.float(), plain, atol=0.05, rtol=0.05)
