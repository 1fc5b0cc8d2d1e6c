"""What would be otherwise, and what conflicts, against trying everything."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from itertools import combinations

import numpy as np
import pytest

from advisor.allocation.alternatives import one_kind, one_more_unit, sharing
from advisor.allocation.capacity import Capacity
from advisor.allocation.conflicts import conflict
from advisor.allocation.packing import unpacked
from advisor.allocation.problem import Demand, Device, Option, Problem
from advisor.allocation.solve import Clock, solve
from tests.allocation.brute_force import best
from tests.allocation.problems import large, small


def test_one_more_unit_and_one_kind_alone_are_solved_anew_as_everything_tried_says():
    random, changed = np.random.default_rng(2), 0
    for number in range(100):
        problem = small(random)
        base = solve(problem, Clock(60), 0.0)
        solver = sharing(Clock(600), 0.0, 20)
        asked = [
            (one_more_unit(problem, base, i, solver), problem.with_units(i, device.units + 1))
            for i, device in enumerate(problem.devices)
        ] + [(one_kind(problem, base, kind, solver), problem.only(kind)) for kind in ("k0", "k1")]
        for found, other in asked:
            expected = best(other)
            if expected is None:
                assert found.solution.status == "infeasible", number
                continue
            served = found.solution.served_weight, found.solution.value
            assert served == pytest.approx(expected), number
            changed += base.value is None or served != (base.served_weight, base.value)
            if found.difference is not None:
                assert base.value is not None
                assert found.low is not None
                assert found.high is not None
                assert found.difference == pytest.approx(expected[1] - base.value)
                assert found.low - 1e-6 <= found.difference <= found.high + 1e-6
    assert changed > 30


def test_with_one_more_and_no_time_the_allocation_itself_is_the_answer():
    problem = large(10, 4, 1)
    base = solve(problem, Clock(10), 0.05)
    found = one_more_unit(problem, base, 0, sharing(Clock(0), 0.05, 1))
    assert (found.solution.status, found.solution.pools) == ("time_limit", base.pools)
    assert found.difference == 0
    alone = one_kind(problem, base, "d0", sharing(Clock(0), 0.05, 1))
    assert (alone.solution.status, alone.difference) == ("not_solved", None)


def test_a_conflict_is_a_smallest_set_of_demands_that_cannot_all_be_served():
    random, found = np.random.default_rng(3), 0
    while found < 40:
        problem = small(random)
        must = [i for i, demand in enumerate(problem.demands) if demand.weight is None]
        if best(problem) is not None:
            continue
        found += 1
        clash = conflict(problem, Clock(60))
        assert clash.minimal
        assert set(clash.demands) <= set(must)

        def feasible(places: tuple[int, ...], of: Problem = problem) -> bool:
            return best(replace(of, demands=tuple(of.demands[i] for i in places))) is not None

        assert not feasible(clash.demands)
        assert all(feasible(some) for some in combinations(clash.demands, len(clash.demands) - 1))


def test_without_time_a_conflict_says_that_it_may_not_be_the_smallest():
    device = Device("d", "d", 1)
    needy = (Option(0, 1, Capacity.linear(1.0)),)
    demands = tuple(Demand(name, needy) for name in "abc")
    problem = Problem(demands, (device,))
    assert conflict(problem, Clock(0)).minimal is False
    assert len(conflict(problem, Clock(10)).demands) == 2


def test_owned_devices_that_cost_nothing_are_not_taken_without_need():
    device = Device("own", "own", 50, Decimal(0))
    demand = Demand("q", (Option(0, 2, Capacity.linear(0.3)), Option(0, 1, Capacity.linear(0.2))))
    found = solve(Problem((demand,), (device,)), Clock(10), 0.0)
    assert sum(demand.options[p.option].accelerators * p.replicas for p in found.pools) == 5


@pytest.mark.parametrize(
    ("sizes", "accelerators", "per_node", "left_out"),
    [
        ([4, 4, 8], 16, 8, 0),
        ([3, 3, 3, 3], 12, 8, 1),
        ([6, 6, 4], 16, 8, 1),
        ([16, 8], 24, 8, 0),
        ([12], 16, 8, 0),
        ([1] * 12, 12, 8, 0),
        ([8], 12, 8, 0),
        ([4, 8], 12, 8, 0),
        ([2], 1, 8, 1),
    ],
)
def test_replicas_that_find_no_node_with_room_are_counted(
    sizes: list[int], accelerators: int, per_node: int, left_out: int
):
    assert unpacked(sizes, accelerators, per_node) == left_out
