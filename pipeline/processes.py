"""Several processes of one run, started by torchrun: the first decides, writes and speaks, the others help where it asks.

They talk through torchrun's key-value store, not through collectives, so that a process can say at any moment that it has
failed. Every process watches for that, also while it waits inside a collective for one that will never come, and ends with the
same exit code: none is left behind, and the reason is told once.
"""

import atexit
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from types import TracebackType
from typing import Any, Protocol, Self

from xbert.artifacts.errors import UsageError, XbertError

_END, _GONE = "end", "gone"  # keys: the exit code of all and whose it was; how many have gone
_POLL = 0.1  # seconds between two looks into the store
_PRECEDENCE = 2.0  # seconds the first process has to tell of a failure that others meet as well
_FAREWELL, _FAREWELL_OF_FEWER = 10.0, 1.0  # seconds the others have to go, where all are there or one is lost
_LONGEST = timedelta(days=1)  # others wait in a collective while the first one validates
_LOST = 3


class Store(Protocol):
    """What all processes see: torch.distributed's key-value store."""

    def set(self, key: str, value: str) -> None:
        """Write."""

    def get(self, key: str) -> bytes:
        """Read; waits until it is there."""

    def check(self, keys: list[str]) -> bool:
        """Whether they are all there."""

    def add(self, key: str, amount: int) -> int:
        """Count; returns the sum."""

    def compare_set(self, key: str, expected: str, desired: str) -> bytes:
        """Write where the key still has that value, "" for none; returns what it has then."""


class Processes:
    """The processes of this run, seen from one of them. A process alone is the first of one."""

    def __init__(self, rank: int = 0, world: int = 1, local: int = 1, store: Store | None = None) -> None:
        self.rank, self.world = rank, world
        self.local = local  # how many of them are on this machine
        self._store, self._orders = store, 0
        self._ended, self._watcher = threading.Event(), threading.Thread()

    @property
    def leads(self) -> bool:
        """Whether this is the first process."""
        return self.rank == 0

    @property
    def alone(self) -> bool:
        """Whether there is no other."""
        return self._store is None

    def order(self, task: str) -> None:
        """Ask the others to help with a task."""
        if self._store is not None:
            self._store.set(_order(self._orders), task)
            self._orders += 1

    def orders(self) -> Iterator[str]:
        """What the first process asks for, one after the other, until it is done."""
        while self._store is not None:
            if self._store.check([_order(self._orders)]):
                self._orders += 1
                yield self._store.get(_order(self._orders - 1)).decode()
            elif self._store.check([_END]):
                return
            else:
                time.sleep(_POLL)

    def __enter__(self) -> Self:
        if self._store is not None:
            self._watcher = threading.Thread(target=self._watch, args=(self._store,), daemon=True)
            self._watcher.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._store is None:
            return
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun ends all once one has failed; this one may have a word to say
        lost = error is not None and _is_loss(error)
        code = _LOST if lost else exit_code(error)
        if code and not self.leads:
            time.sleep(_PRECEDENCE)  # if the first process fails as well, the watcher ends this one meanwhile
        self._ended.set()
        self._watcher.join()
        of_all, mine = self._tell_end(self._store, code, _FAREWELL_OF_FEWER if lost else _FAREWELL)
        if of_all:
            atexit.register(os._exit, of_all)  # a library that takes leave of processes which are gone may wait for ever
        if of_all != code or (code and not mine):
            raise SystemExit(of_all)
        if not code:
            _leave()
        elif lost:
            raise XbertError(
                "another process of this run has ended without a word (its memory may have been too small): "
                "run the same command again, it goes on from the last checkpoint"
            ) from None

    def _tell_end(self, store: Store, code: int, farewell: float) -> tuple[int, bool]:
        """Say how this process ends. Returns the exit code of all, that of the first to end, and whether that is this one."""
        own = f"{code} {self.rank}"
        try:
            told = store.compare_set(_END, "", own).decode()
            if told != own:
                store.add(_GONE, 1)
        except RuntimeError:  # the store is gone, and with it the first process
            return code or _LOST, False
        if told == own:
            self._see_off(store, farewell)
        return _code_in(told), told == own

    def _see_off(self, store: Store, farewell: float) -> None:
        """The store may live in this process: the others have read their exit code before it ends."""
        until = time.monotonic() + farewell
        with suppress(RuntimeError):  # or it lived in one of them
            while store.add(_GONE, 0) < self.world - 1 and time.monotonic() < until:
                time.sleep(_POLL)

    def _watch(self, store: Store) -> None:
        """End this process, wherever it is, when another has failed. What it was writing is as safe as in a crash."""
        while not self._ended.wait(_POLL):
            try:
                code = _code_in(store.get(_END).decode()) if store.check([_END]) else 0
                if code:
                    store.add(_GONE, 1)
                    time.sleep(3 * _POLL)  # the store may live here: whoever waits for this one to go has time to see it
            except RuntimeError:
                code = _LOST
            if code:
                os._exit(code)


def joined() -> Processes:
    """The processes torchrun has started, to be entered as a context; this one alone where there was no torchrun."""
    world = _number("WORLD_SIZE", 1)
    if world <= 1:
        return Processes()
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        if name not in os.environ:
            raise UsageError(
                f"WORLD_SIZE is {world} in the environment, but {name} is not set: start several processes with "
                f"`torchrun --nproc-per-node {world} -m xbert.cli ...`, or unset WORLD_SIZE"
            )
    return _join(world)


def _join(world: int) -> Processes:
    try:
        import torch
        import torch.distributed as dist
    except ImportError:
        raise UsageError(f"WORLD_SIZE is {world}, and several processes need torch: `pip install -e '.[cpu]'`") from None
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    library: Any = dist  # which does not say of all its names that they are for others
    try:
        store, rank, world = next(library.rendezvous("env://"))
        dist.init_process_group(backend, store=store, rank=rank, world_size=world, timeout=_LONGEST)
    except (RuntimeError, ValueError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UsageError(f"the {world} processes that WORLD_SIZE speaks of do not find each other ({reason})") from None
    return Processes(rank, world, _number("LOCAL_WORLD_SIZE", world), library.PrefixStore("xbert", store))


def _leave() -> None:
    import torch.distributed as dist

    dist.destroy_process_group()


def exit_code(error: BaseException | None) -> int:
    """What a process ends with after that error."""
    if error is None:
        return 0
    if isinstance(error, KeyboardInterrupt):
        return 130
    return 3 if isinstance(error, OSError) else int(getattr(error, "exit_code", 1))


def _is_loss(error: BaseException) -> bool:
    """Whether a collective failed because another process is gone."""
    import torch.distributed as dist

    return isinstance(error, dist.DistError) or (isinstance(error, RuntimeError) and "gloo" in str(error))


def _code_in(end: str) -> int:
    return int(end.split(maxsplit=1)[0])


def _order(number: int) -> str:
    return f"order/{number}"


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, str(default))
    if not text.isdecimal():
        raise UsageError(f"{name} = {text!r} in the environment: must be a whole number")
    return int(text)
