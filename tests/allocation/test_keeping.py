"""What runs beside a new allocation, against trying every one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from advisor.allocation.keeping import VERDICTS, Compared, Kept, KeptPool, Running, compared
from advisor.allocation.problem import Problem, Solution
from advisor.allocation.solve import Clock, solve
from advisor.core.layouts import Split
from tests.allocation.brute_force import best, share_of, units_of
from tests.allocation.problems import small


def changed(problem: Problem, random: np.random.Generator) -> Problem:
    """The same with other prices, powers and capacities, and sometimes fewer units."""
    devices = tuple(
        replace(
            device, price=Decimal(int(random.integers(0, 30))) / 10,
            tdp_w=float(random.integers(50, 900)),
            units=max(device.units - int(random.integers(8) == 0), 0),
        )
        for device in problem.devices
    )  # fmt: skip
    demands = tuple(
        replace(demand, options=tuple(
            replace(option, capacity=option.capacity.scaled(float(random.choice([0.7, 1, 1, 1.4]))))
            for option in demand.options
        ))
        for demand in problem.demands
    )  # fmt: skip
    return replace(problem, demands=demands, devices=devices)


def runs(problem: Problem, solution: Solution) -> Kept:
    """The pools of a solution in another problem: a demand is met where they still carry it."""
    carried = Counter[int]()
    for pool in solution.pools:
        option = problem.demands[pool.demand].options[pool.option]
        carried[pool.demand] += share_of(option, pool.replicas)  # type: ignore[assignment]
    kept = []
    for pool in solution.pools:
        option = problem.demands[pool.demand].options[pool.option]
        units = units_of(option, problem.devices[option.device], pool.replicas)
        met = carried[pool.demand] >= 1 - 1e-9
        plan: Any = SimpleNamespace(recommended=0 if met else None)
        running = Running(pool.demand, option.device, Split(), pool.replicas, 1.0)
        kept.append(KeptPool(running, 1.0, None, plan, units))
    return Kept(problem, tuple(kept))


def tried(problem: Problem, kept: Kept) -> tuple[str, float | None]:
    """The verdict and the saving, by trying every allocation and adding up by hand."""
    taken = [0] * len(problem.devices)
    by_demand = Counter[int]()
    for each in kept.pools:
        taken[each.running.entry] += each.units
        device = problem.devices[each.running.entry]
        by_demand[each.running.demand] += each.units * device.accelerators_per_unit
    limits = {i: problem.demands[i].most_accelerators or 10**9 for i in by_demand}
    if (
        any(n > d.units for n, d in zip(taken, problem.devices, strict=True))
        or any(by_demand[i] > limits[i] for i in by_demand)
        or not all(each.met for each in kept.pools)
    ):
        return "fails", None
    weight = sum(problem.demands[i].weight or 0 for i in by_demand)
    value = sum(n * problem.unit_value(d) for n, d in zip(taken, problem.devices, strict=True))
    expected = best(problem)
    assert expected is not None
    if expected[0] > weight + 1e-9:
        return "serve_more", None
    saving = value - expected[1]
    return ("move" if saving > 1e-9 else "keep"), saving


def test_verdict_and_saving_are_those_of_everything_tried():
    random, verdicts = np.random.default_rng(4), Counter[str]()
    for number in range(500):
        problem = small(random)
        before = solve(problem, Clock(60), 0.0)
        if not before.found:
            continue
        now = changed(problem, random)
        kept = runs(now, before)
        found = compared(kept, solve(now, Clock(60), 0.0), 0.0)
        verdict, saving = tried(now, kept)
        assert found.verdict == verdict, (number, now)
        assert found.saving == (None if saving is None else pytest.approx(saving)), (number, now)
        verdicts[verdict] += 1
    assert min(verdicts[each] for each in VERDICTS) > 5, verdicts


def solution(value: float | None, bound: float | None, weight: float = 0.0) -> Solution:
    return Solution("time_limit", served_weight=weight, value=value, bound=bound)


@pytest.fixture(scope="module")
def ten() -> Kept:
    """Something that runs, is met and has the objective 10."""
    problem = small(np.random.default_rng(1))
    device = replace(problem.devices[0], units=10, price=Decimal(1), accelerators_per_unit=1)
    demand = replace(problem.demands[0], weight=None, most_accelerators=None)
    plan: Any = SimpleNamespace(recommended=0)
    pool = KeptPool(Running(0, 0, Split(), 10, 1.0), 1.0, None, plan, 10)
    return Kept(Problem((demand,), (device,)), (pool,))


@pytest.mark.parametrize(
    ("now", "max_gap", "expected"),
    [
        (solution(9.95, 9.95), 0.01, Compared("keep", 0.05, 0.05, True)),
        (solution(9.95, 9.95), 0.001, Compared("move", 0.05, 0.05, False)),
        (solution(9.95, 8.0), 0.01, Compared("move", 0.05, 2.0, False)),
        (solution(10.5, 9.0), 0.01, Compared("keep", -0.5, 1.0, False)),
        (solution(10.5, 10.2), 0.01, Compared("keep", -0.5, -0.2, True)),
        (solution(10.5, None), 0.01, Compared("keep", -0.5, None, False)),
        (solution(None, 9.0), 0.01, Compared("keep")),
        (solution(9.0, 9.0, 1.0), 0.01, Compared("serve_more")),
    ],
)
def test_what_the_search_left_open_is_no_saving(
    ten: Kept, now: Solution, max_gap: float, expected: Compared
):
    found = compared(ten, now, max_gap)
    assert (found.verdict, found.near) == (expected.verdict, expected.near)
    assert found.saving == pytest.approx(expected.saving)
    assert found.at_most == pytest.approx(expected.at_most)
