"""Options that no best allocation needs."""

from __future__ import annotations

from dataclasses import replace

from advisor.allocation.capacity import NEARLY
from advisor.allocation.problem import Demand, Device, Option, Problem

_COMPARED = 64
"""Numbers of replicas that two options are compared at. Past what is known of a capacity each
replica adds the same, so that a longer comparison would say the same."""


def without_dominated(problem: Problem) -> tuple[Problem, list[list[int]]]:
    """The problem without options that another one on the same device does the work of with no more
    units, whatever the number of replicas; and for each demand the places of those that are left.
    """
    kept = [_kept(demand, problem.devices) for demand in problem.demands]
    demands = (
        replace(demand, options=tuple(demand.options[i] for i in places))
        for demand, places in zip(problem.demands, kept, strict=True)
    )
    return replace(problem, demands=tuple(demands)), kept


def _kept(demand: Demand, devices: tuple[Device, ...]) -> list[int]:
    kept: list[int] = []
    # Those that take fewest accelerators first: of equals, the finer one stays.
    order = sorted(range(len(demand.options)), key=lambda i: demand.options[i].accelerators)
    for place in order:
        option = demand.options[place]
        device = devices[option.device]
        rivals = (demand.options[i] for i in kept if demand.options[i].device == option.device)
        if not any(_dominates(rival, option, device) for rival in rivals):
            kept.append(place)
    return sorted(kept)


def _dominates(better: Option, option: Option, device: Device) -> bool:
    """Whether `better` carries as much with the units that any number of replicas of `option`
    takes. Pools of it put together carry no less than apart, so that it may take the place of
    `option` beside a pool of its own."""
    if better.accelerators > option.accelerators or not _adds_up(better):
        return False
    most = min(option.capacity.fewest() or _COMPARED, _COMPARED)
    if len(option.capacity.known) > _COMPARED or len(better.capacity.known) > _COMPARED:
        return False
    for replicas in range(1, most + 1):
        units = option.units(device, replicas)
        per_unit, per_replica = better.packing(device)
        others = units // per_replica * per_unit
        needed = min(option.capacity.share(replicas), 1.0)
        if better.capacity.share(others) < needed - NEARLY:
            return False
    return most < _COMPARED or _rate(better, device) >= _rate(option, device)


def _rate(option: Option, device: Device) -> float:
    """What each unit adds to a large pool."""
    per_unit, per_replica = option.packing(device)
    return option.capacity.each * per_unit / per_replica


def _adds_up(option: Option) -> bool:
    """Whether pools put together carry no less than they do apart."""
    known = len(option.capacity.known)
    shares = [option.capacity.share(k) for k in range(2 * known + 1)]
    return all(
        shares[a + b] >= min(shares[a] + shares[b], 1.0) - NEARLY
        for a in range(1, known + 1)
        for b in range(a, known + 1)
    )
