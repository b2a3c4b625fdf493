"""How a kernel is compiled: without the GIL, cached on disk, so that a person waits for the compiler once."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile on first call; exact float arithmetic, so that the same input gives the same bytes."""
    return cast(F, numba.njit(nogil=True, cache=True)(function))


def fast_kernel(function: F) -> F:
    """As `kernel`, with sums reordered for SIMD: still the same bytes on the same machine."""
    return cast(F, numba.njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})(function))
