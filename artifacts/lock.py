"""One writer per artifact: a lock the kernel releases when its holder dies, with the holder's name in it."""

import fcntl
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from xbert.artifacts.errors import BusyError


@contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Hold the lock while the block runs, or raise BusyError saying who has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(f"{what} is being made by {_holder(path)}: wait for it to end, or stop it") from None
        me = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])[:200],
            "since": time.strftime("%Y-%m-%d %H:%M:%S"),
        }
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(me).encode(), 0)
        yield
    finally:
        os.close(descriptor)  # which also releases the lock


def _holder(path: Path) -> str:
    try:
        who = json.loads(path.read_text("utf-8"))
        return f"process {who['pid']} on {who['host']} since {who['since']} ({who['command']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
