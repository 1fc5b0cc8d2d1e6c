"""Time of a call, as the smallest of many; that of its CPU repeats within a few percent."""

from __future__ import annotations

import time
from collections.abc import Callable


def least_cpu_ms(call: Callable[[], object], rounds: int) -> float:
    """The smallest CPU time of `rounds` calls in this process [ms]."""
    return _least_ms(call, rounds, time.process_time)


def least_ms(call: Callable[[], object], rounds: int) -> float:
    """The smallest wall time of `rounds` calls [ms]: what waits for another process has no CPU."""
    return _least_ms(call, rounds, time.perf_counter)


def _least_ms(call: Callable[[], object], rounds: int, clock: Callable[[], float]) -> float:
    least = float("inf")
    for _ in range(rounds):
        start = clock()
        call()
        least = min(least, clock() - start)
    return least * 1e3
