"""CPU time of a call, as the smallest of many: it repeats within a few percent."""

from __future__ import annotations

import time
from collections.abc import Callable


def least_cpu_ms(call: Callable[[], object], rounds: int) -> float:
    """The smallest CPU time of `rounds` calls in this process [ms]."""
    least = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        call()
        least = min(least, time.process_time() - start)
    return least * 1e3
