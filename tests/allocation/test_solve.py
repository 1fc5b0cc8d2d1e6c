"""Allocations against every other one, and large ones in time."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from advisor.allocation.problem import carried, used_units, value_of
from advisor.allocation.solve import Clock, solve
from tests.allocation.brute_force import best
from tests.allocation.problems import large, small

SMALL = 500


def test_the_allocation_is_the_best_of_all_on_small_random_problems():
    random, outcomes = np.random.default_rng(1), {"infeasible": 0, "optimal": 0}
    for number in range(SMALL):
        problem = small(random)
        found, expected = solve(problem, Clock(60), 0.0), best(problem)
        outcomes[found.status] += 1
        if expected is None:
            assert found.status == "infeasible", (number, problem)
            continue
        assert found.status == "optimal", (number, problem)
        assert (found.served_weight, found.value) == pytest.approx(expected), (number, problem)
        assert found.gap == pytest.approx(0, abs=1e-6)
        assert found.value == pytest.approx(value_of(problem, found.pools))
        used = used_units(problem, found.pools)
        assert all(n <= d.units for n, d in zip(used, problem.devices, strict=True))
        shares = carried(problem, found.pools)
        assert set(shares) == found.served
        assert all(share >= 1 - 1e-6 for share in shares.values())
    assert min(outcomes.values()) > SMALL / 10


@pytest.mark.parametrize("scale", ["0.000000000001", "0.00000001", "1000000000"])
def test_the_size_of_a_currency_does_not_matter(scale: str):
    random = np.random.default_rng(77)
    for number in range(60):
        problem = replace(small(random), objective="cost")
        devices = (replace(d, price=d.price * Decimal(scale)) for d in problem.devices)
        problem = replace(problem, devices=tuple(devices))
        found, expected = solve(problem, Clock(60), 0.0), best(problem)
        if expected is not None:
            assert found.value == pytest.approx(expected[1], rel=1e-6, abs=0), number
            assert found.bound == pytest.approx(expected[1], rel=1e-6, abs=0), number


def test_prices_that_are_far_apart_all_count():
    random, counted = np.random.default_rng(78), 0
    for number in range(100):
        problem = replace(small(random), objective="cost")
        price = (Decimal(10) ** int(random.integers(-5, 6)) for _ in problem.devices)
        devices = (replace(d, price=p) for d, p in zip(problem.devices, price, strict=True))
        problem = replace(problem, devices=tuple(devices))
        found, expected = solve(problem, Clock(60), 0.0), best(problem)
        if expected is not None:
            assert found.value == pytest.approx(expected[1], rel=1e-6, abs=0), number
            counted += 1
    assert counted > 40


def test_forty_demands_on_ten_kinds_of_devices_come_within_a_hundredth():
    """How long it takes is what `benchmarks.allocation_time` measures."""
    found = solve(large(40, 10, 3), Clock(60), 0.01)
    assert found.status == "optimal"
    assert found.gap is not None
    assert found.gap <= 0.01
    assert len(found.served) == 40


def test_without_time_nothing_is_found_and_nothing_is_claimed():
    found = solve(large(40, 10, 3), Clock(0), 0.0)
    assert found.status == "not_solved"
    assert (found.value, found.gap, found.pools) == (None, None, ())
