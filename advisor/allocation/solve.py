"""The best allocation: as much weight served as can be, then the least objective."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import numpy as np

from advisor.allocation.capacity import NEARLY
from advisor.allocation.dominance import without_dominated
from advisor.allocation.problem import (
    Pool,
    Problem,
    Solution,
    carried,
    used_units,
    value_of,
)
from advisor.allocation.program import Array, Found, Program

_ROUNDED = 1e-6
"""How far HiGHS may be off in a row."""


@dataclass(frozen=True)
class Clock:
    """The time that is left [s]."""

    seconds: float
    began: float = field(default_factory=time.monotonic)

    @property
    def left_s(self) -> float:
        """Seconds until the end; 0 past it."""
        return max(self.seconds - self.spent_s, 0.0)

    @property
    def spent_s(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.began


def solve(problem: Problem, clock: Clock, gap: float) -> Solution:
    """The allocation that serves the most weight and, of those, has the least objective: each
    within a `gap`, a share of it. Where devices cost nothing, the one with fewest accelerators of
    equals. Raises `SolverMissing`."""
    reduced, kept = without_dominated(problem)
    program = Program(reduced)
    most: Found | None = None
    if program.served:
        weight = program.weight()
        # An exact answer where there is time for one: weight goes before everything.
        most = program.minimize(-weight, clock.left_s / 2, 0.0)
        if most.columns is None:
            return Solution(most.outcome)
        reached = float(weight @ np.rint(most.columns))
        program.limited(weight, reached - NEARLY * reached, np.inf)
    best = program.minimize(program.value(), clock.left_s, gap)
    if best.columns is None:
        if most is None or most.columns is None:
            return Solution(best.outcome)
        best = Found("time_limit", most.columns, float(program.value() @ np.rint(most.columns)),
                     best.bound)  # fmt: skip
    columns = _with_fewest(program, best, clock)
    pools = tuple(
        Pool(p.demand, kept[p.demand][p.option], p.replicas) for p in program.pools(columns)
    )
    late = most is not None and most.outcome == "time_limit"
    if best.bound is not None:
        best = replace(best, bound=best.bound / program.scale)
    return _solution(problem, pools, "time_limit" if late else best.outcome, best, most)


def _with_fewest(program: Program, best: Found, clock: Clock) -> Array:
    """The columns of the best answer; where some devices cost nothing, those of its equal with the
    fewest accelerators, if that is found in time."""
    assert best.columns is not None
    assert best.value is not None
    value = program.value()
    free = any(program.problem.unit_value(device) == 0 for device in program.problem.devices)
    if not free:
        return best.columns
    program.limited(value, -np.inf, best.value + NEARLY * abs(best.value))
    fewest = program.minimize(program.accelerators(), clock.left_s / 2, 0.0)
    if fewest.columns is None or float(value @ np.rint(fewest.columns)) > best.value + _ROUNDED:
        return best.columns
    return fewest.columns


def _solution(
    problem: Problem, pools: tuple[Pool, ...], status: str, best: Found, most: Found | None
) -> Solution:
    """The pools that were chosen, their sums taken anew from the problem itself."""
    shares = carried(problem, pools)
    whole = {demand for demand, share in shares.items() if share >= 1 - _ROUNDED}
    # A part of a demand serves nobody: HiGHS may leave some where devices cost nothing.
    pools = tuple(pool for pool in pools if pool.demand in whole)
    over = [
        used > device.units
        for used, device in zip(used_units(problem, pools), problem.devices, strict=True)
    ]
    must = {i for i, demand in enumerate(problem.demands) if demand.weight is None}
    if any(over) or not must <= whole:
        raise RuntimeError("HiGHS returned an allocation that breaks its own constraints")
    value = value_of(problem, pools)
    return Solution(
        status=status,
        pools=pools,
        served=frozenset(whole),
        served_weight=sum(problem.demands[i].weight or 0.0 for i in sorted(whole)),
        weight_bound=None if most is None or most.bound is None else -most.bound,
        value=value,
        bound=None if best.bound is None else min(best.bound, value),
    )
