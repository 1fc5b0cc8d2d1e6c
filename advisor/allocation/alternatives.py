"""What would be otherwise: with one more unit of a device, or with devices of one kind alone.

Each is solved anew. A price of the linear relaxation would not do: one more accelerator often
brings nothing, and the one after it a whole replica.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from advisor.allocation.problem import Problem, Solution
from advisor.allocation.solve import Clock, solve

LEAST_S = 0.02
"""With less time than this nothing is tried."""

Solver = Callable[[Problem], Solution]


@dataclass(frozen=True)
class Alternative:
    """Another inventory, and what was chosen from it.

    `difference` is its objective less that of the allocation, where both serve the same demands,
    and from `low` to `high` that of the best of each may lie, within their gaps. Each is None where
    it is not known.
    """

    name: str
    solution: Solution
    difference: float | None
    low: float | None
    high: float | None


def one_more_unit(problem: Problem, base: Solution, index: int, solver: Solver) -> Alternative:
    """With one more unit of a device. It cannot be worse, as the extra one may stand idle: where
    the search finds nothing as good in its time, the allocation itself is the answer."""
    device = problem.devices[index]
    found = solver(problem.with_units(index, device.units + 1))
    if base.found and not _as_good(found, base):
        found = Solution(
            "time_limit", base.pools, base.served, base.served_weight, found.weight_bound,
            base.value, found.bound,
        )  # fmt: skip
    compared = _compared(device.name, found, base)
    return replace(compared, high=None if compared.high is None else min(compared.high, 0.0))


def one_kind(problem: Problem, base: Solution, kind: str, solver: Solver) -> Alternative:
    """With the devices of one kind alone, which cannot be better."""
    compared = _compared(kind, solver(problem.only(kind)), base)
    return replace(compared, low=None if compared.low is None else max(compared.low, 0.0))


def sharing(clock: Clock, gap: float, solves: int) -> Solver:
    """A solver that deals out the time that is left to so many problems."""
    left = [solves]

    def run(problem: Problem) -> Solution:
        seconds = clock.left_s / max(left[0], 1)
        left[0] -= 1
        return solve(problem, Clock(seconds), gap) if seconds > LEAST_S else Solution("not_solved")

    return run


def _as_good(found: Solution, base: Solution) -> bool:
    if not found.found:
        return False
    key = (-found.served_weight, found.value or 0.0)
    return key <= (-base.served_weight, base.value or 0.0)


def _compared(name: str, found: Solution, base: Solution) -> Alternative:
    if found.value is None or base.value is None or found.served != base.served:
        return Alternative(name, found, None, None, None)
    low = None if found.bound is None else found.bound - base.value
    high = None if base.bound is None else found.value - base.bound
    return Alternative(name, found, found.value - base.value, low, high)
