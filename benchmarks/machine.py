"""The machine a measurement ran on, and how much of it others were using meanwhile (Linux: read from /proc)."""

import os
import platform
import resource
import time
from pathlib import Path
from typing import Any, Self

_IDLE = (3, 4)  # fields of /proc/stat: idle, and idle while waiting for the disk
_QUIET_FOR = 3  # seconds in a row


def cores() -> int:
    """Cores there are."""
    return os.cpu_count() or 1


def about() -> dict[str, Any]:
    """What a reader needs to judge the figures by."""
    facts = dict(line.split(":", 1) for line in Path("/proc/cpuinfo").read_text().splitlines() if ":" in line)
    names = {key.strip(): value.strip() for key, value in facts.items()}
    memory = int(Path("/proc/meminfo").read_text().split()[1]) / 2**20
    wide = next((flag for flag in ("avx512f", "avx2") if flag in names.get("flags", "").split()), "")
    return {
        "cpu": names.get("model name", platform.machine()), "vectors": wide, "cores": cores(), "ram_gb": round(memory, 1),
        "python": platform.python_version(), "system": f"{platform.system()} {platform.release()}",
    }  # fmt: skip


def busy_seconds() -> float:
    """CPU seconds that all processes have had, and what other machines on the same iron have taken (steal)."""
    ticks = list(map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:9]))
    return (sum(ticks) - sum(ticks[field] for field in _IDLE)) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """CPU seconds of this process and of its children that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


class Noise:
    """The share of all cores that other processes used while a step ran; use as a context around it."""

    def __enter__(self) -> Self:
        self._time, self._busy, self._own, self.share = time.perf_counter(), busy_seconds(), own_seconds(), 0.0
        return self

    def __exit__(self, *_: object) -> None:
        passed = max(time.perf_counter() - self._time, 0.01)
        others = (busy_seconds() - self._busy) - (own_seconds() - self._own)
        self.share = min(max(others / passed / cores(), 0.0), 1.0)


def wait_until_idle(longest: float, share: float) -> bool:
    """Wait until less than `share` of the cores was in use for some seconds in a row; False where that never came."""
    quiet, end = 0, time.monotonic() + longest
    while quiet < _QUIET_FOR and time.monotonic() < end:
        before = busy_seconds()
        time.sleep(1.0)
        quiet = quiet + 1 if (busy_seconds() - before) / cores() < share else 0
    return quiet >= _QUIET_FOR
