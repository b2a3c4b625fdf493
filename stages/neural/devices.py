"""Where a network runs, and in which precision: chosen by measuring once, and then kept."""

import ctypes
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from xbert.artifacts.errors import InputError
from xbert.stages.neural.names import AUTO, BF16, CPU, CUDA, MPS


def choose_device(wanted: str, rank: int = 0, processes: int = 1) -> torch.device:
    """The device of that name, or the best there is; a GPU asked for where there is none is an error.

    Several `processes` of one machine each have a GPU of their own.
    """
    has = {CPU: True, CUDA: torch.cuda.is_available(), MPS: torch.backends.mps.is_available()}
    if wanted == AUTO:
        wanted = next(name for name in (CUDA, MPS, CPU) if has[name])
    if not has[wanted]:
        there = ", ".join(name for name, there in has.items() if there)
        raise InputError(
            f"device = {wanted!r}, but torch {torch.__version__} finds no such device here (there is {there}): "
            f"set device = 'auto', or install a torch for it, `pip install -e '.[gpu]'`"
        )
    if wanted != CUDA:
        return torch.device(wanted)
    count = torch.cuda.device_count()
    if processes > count:
        raise InputError(
            f"{processes} processes on a machine with {count} GPUs: each needs one of its own, so start at most "
            f"`torchrun --nproc-per-node {count}`, or set [match] device = 'cpu'"
        )
    return torch.device(wanted, rank % count)


def bf16_is_native(device: torch.device) -> bool:
    """Whether the device multiplies bf16 itself; where it is emulated there is nothing to gain by it."""
    if device.type == CUDA:
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type == CPU:
        onednn: Any = torch.backends.mkldnn  # which has no annotations
        return bool(onednn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return False


@dataclass(frozen=True)
class Arithmetic:
    """A precision and a way to compute attention."""

    precision: str
    attention: str

    def context(self, device: torch.device) -> AbstractContextManager[object]:
        """Inside, matrices are multiplied in this precision; weights and sums stay in fp32."""
        return torch.autocast(device.type, dtype=torch.bfloat16, enabled=self.precision == BF16)


def fastest(candidates: list[Arithmetic], step: Callable[[Arithmetic], None], rounds: int = 4) -> Arithmetic:
    """The candidate whose step takes the least time. In turns, and the best of each: other work on the machine hits all."""
    best = [float("inf")] * len(candidates)
    for turn in range(rounds + 1):
        for place, candidate in enumerate(candidates):
            started = time.perf_counter()
            step(candidate)
            if turn:  # the first turn only warms up
                best[place] = min(best[place], time.perf_counter() - started)
    return candidates[best.index(min(best))]


@contextmanager
def out_of_memory_errors(advice: str) -> Iterator[None]:
    """Say which setting to lower instead of failing in the middle of a library."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise InputError(f"the GPU's memory is too small: {advice}") from None
    except MemoryError:
        raise InputError(f"memory is too small: {advice}") from None
    except RuntimeError as error:
        if "alloc" in str(error).lower() and "memory" in str(error).lower():
            raise InputError(f"memory is too small: {advice}") from None
        raise


@contextmanager
def torch_threads(threads: int) -> Iterator[None]:
    """As many threads as the run may use, and as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


# glibc's numbers for mallopt, and what it starts with.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
_KEPT, _USUAL = {_MMAP_MAX: 0, _TRIM_THRESHOLD: 2**31 - 1}, {_MMAP_MAX: 65536, _TRIM_THRESHOLD: 128 * 1024}


@contextmanager
def memory_kept() -> Iterator[None]:
    """Memory that is freed stays with the process until the end, where the C library can do that.

    Every step of learning asks for the same large arrays (gradients of all embeddings and heads) and frees them again. glibc
    hands those back to the system each time, which then clears every page anew: a tenth of the time where texts are short.
    """
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallopt") or not hasattr(library, "malloc_trim"):
        yield
        return
    for setting, value in _KEPT.items():
        library.mallopt(setting, value)
    try:
        yield
    finally:
        for setting, value in _USUAL.items():
            library.mallopt(setting, value)
        give_back()


def give_back() -> None:
    """Hand what is free back to the system after all, which a program that keeps its memory must do now and then.

    Batches of ever other lengths leave ever other holes between the pieces in use.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(0)
