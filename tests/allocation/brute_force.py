"""Small allocations by trying every one, from the same numbers and none of the same code."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

from advisor.allocation.problem import Demand, Device, Option, Problem

Counts = tuple[int, ...]


def units_of(option: Option, device: Device, replicas: int) -> int:
    """Node by node: replicas are put into a node as long as it has room."""
    room = units = 0
    for _ in range(replicas):
        missing = option.accelerators
        if room >= missing:
            room -= missing
            continue
        room = 0
        while missing > 0:
            units += 1
            room = device.accelerators_per_unit - missing
            missing -= device.accelerators_per_unit
        if option.accelerators > device.accelerators_per_unit:
            room = 0
    return units


def share_of(option: Option, replicas: int) -> float:
    known = option.capacity.known
    if replicas <= len(known):
        return known[replicas - 1] if replicas else 0.0
    return known[-1] + (replicas - len(known)) * option.capacity.each


def ways(demand: Demand, devices: tuple[Device, ...]) -> Iterator[tuple[Counts, bool]]:
    """Every number of replicas of each option within the devices: units taken, and whether the
    demand is served so."""
    ranges = []
    for option in demand.options:
        device, most = devices[option.device], 0
        while units_of(option, device, most + 1) <= device.units:
            most += 1
        ranges.append(range(most + 1))
    for counts in product(*ranges):
        taken = [0] * len(devices)
        share = 0.0
        for option, replicas in zip(demand.options, counts, strict=True):
            taken[option.device] += units_of(option, devices[option.device], replicas)
            share += share_of(option, replicas)
        pairs = zip(taken, devices, strict=True)
        accelerators = sum(units * device.accelerators_per_unit for units, device in pairs)
        most_accelerators = demand.most_accelerators or math.inf
        if accelerators <= most_accelerators:
            yield tuple(taken), share >= 1 - 1e-9


def best(problem: Problem) -> tuple[float, float] | None:
    """The most weight served, and the least objective of that; None where what has to be served
    cannot be. Demand by demand, of the same units taken only the best is remembered."""
    nothing = tuple(0 for _ in problem.devices)
    reached: dict[Counts, float] = {nothing: 0.0}
    for demand in problem.demands:
        serving = {taken for taken, served in ways(demand, problem.devices) if served}
        following: dict[Counts, float] = {}
        for used, weight in reached.items():
            steps = [(taken, demand.weight or 0.0) for taken in serving]
            if demand.weight is not None:
                steps.append((nothing, 0.0))
            for taken, more in steps:
                total = tuple(a + b for a, b in zip(used, taken, strict=True))
                if any(n > d.units for n, d in zip(total, problem.devices, strict=True)):
                    continue
                following[total] = max(following.get(total, -1.0), weight + more)
        reached = following
    if not reached:
        return None
    most = max(reached.values())
    values = [
        sum(n * problem.unit_value(d) for n, d in zip(used, problem.devices, strict=True))
        for used, weight in reached.items()
        if weight >= most - 1e-9
    ]
    return most, min(values)
