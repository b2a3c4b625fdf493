"""How much memory a run may use: as given by a person, or what is free."""

import os
import re
from pathlib import Path

from xbert.artifacts.errors import InputError

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_LEAST = 200 * 10**6  # the interpreter and the compiled kernels alone take most of this
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*", re.IGNORECASE)
OWN = 150 * 10**6  # what the interpreter, its libraries and the compiled kernels take


def parse(text: str) -> int:
    """Bytes of a size like 8G, 500M, 1.5GiB."""
    found = _SIZE.fullmatch(text)
    if found is None:
        raise InputError(f"memory = {text!r}: must be a size like 8G or 500M, or 'auto' for what is free")
    number, unit, binary = found.groups()
    size = int(float(number) * (1024 ** " KMGT".index(unit.upper()) if binary and unit else _UNITS[unit.upper()]))
    if size < _LEAST:
        raise InputError(f"memory = {text!r}: must be at least {_LEAST // 10**6}M")
    return size


def free() -> int:
    """Bytes free on this machine, or in the container it runs in."""
    found = [_available(), *_left_in_container()]
    return max(min(found), _LEAST)


def _available() -> int:
    try:
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass  # no Linux: all memory there is, as what is free of it cannot be asked in one way everywhere
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _left_in_container() -> list[int]:
    """What the limit of a control group leaves, where there is one."""
    for limit, used in (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes")):
        try:
            most = Path("/sys/fs/cgroup", limit).read_text("ascii").strip()
            return [int(most) - int(Path("/sys/fs/cgroup", used).read_text("ascii"))] if most.isdigit() else []
        except OSError:
            continue
    return []


def show(size: float) -> str:
    """A size for people."""
    for unit, worth in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if size >= worth:
            return f"{size / worth:.1f} {unit}" if size < 10 * worth else f"{size / worth:.0f} {unit}"
    return f"{max(size, 0) / 1e3:.0f} kB"
