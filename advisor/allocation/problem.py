"""The allocation as data: demands with their options, and devices that there are only so many of.

It knows nothing of models or latencies: what a replica takes and what replicas carry are numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal

from advisor.allocation.capacity import Capacity

OBJECTIVES = ("cost", "accelerators", "energy")
MEASURES = {"cost": "cost_per_hour", "accelerators": "accelerators", "energy": "power_kw"}
"""What each objective makes small."""

W_PER_KW = 1000


@dataclass(frozen=True)
class Device:
    """`units` of one kind to be had, each of `accelerators_per_unit`: 1, or those of a node where
    nodes are taken whole. `price` is that of one accelerator for an hour, `tdp_w` its power [W]
    (None: not known)."""

    name: str
    kind: str
    units: int
    price: Decimal = Decimal(0)
    tdp_w: float | None = None
    accelerators_per_unit: int = 1

    @property
    def accelerators(self) -> int:
        """How many accelerators may be taken."""
        return self.units * self.accelerators_per_unit


@dataclass(frozen=True)
class Option:
    """A layout that may serve a demand: `accelerators` of a device for each replica, and the share
    of the demand that so many replicas carry."""

    device: int
    accelerators: int
    capacity: Capacity

    def units(self, device: Device, replicas: int) -> int:
        """Units of its device that so many replicas take. A replica within a node shares it with
        replicas of the same pool alone; a wider one has its nodes to itself."""
        per_unit, per_replica = self.packing(device)
        return math.ceil(replicas / per_unit) * per_replica

    def packing(self, device: Device) -> tuple[int, int]:
        """Replicas that share a unit, and units that a replica takes: one of the two is 1."""
        per_unit = device.accelerators_per_unit // self.accelerators
        if per_unit >= 1:
            return per_unit, 1
        return 1, math.ceil(self.accelerators / device.accelerators_per_unit)

    def most(self, device: Device) -> int:
        """Most replicas that there are devices for."""
        per_unit, per_replica = self.packing(device)
        return device.units // per_replica * per_unit


@dataclass(frozen=True)
class Demand:
    """What is to be served, wholly or not at all. Without a `weight` it has to be. No more than
    `most_accelerators` may be taken for it, those of whole nodes counted."""

    name: str
    options: tuple[Option, ...]
    weight: float | None = None
    most_accelerators: int | None = None


@dataclass(frozen=True)
class Problem:
    """Demands, devices, and what is to be small."""

    demands: tuple[Demand, ...]
    devices: tuple[Device, ...]
    objective: str = "cost"

    def unit_value(self, device: Device) -> float:
        """What one unit of a device adds to the objective."""
        count = device.accelerators_per_unit
        if self.objective == "accelerators":
            return count
        if self.objective == "energy":
            return (device.tdp_w or 0.0) * count / W_PER_KW
        return float(device.price) * count

    def with_units(self, index: int, units: int) -> Problem:
        """The same with another number of one device."""
        devices = list(self.devices)
        devices[index] = replace(devices[index], units=units)
        return replace(self, devices=tuple(devices))

    def only(self, kind: str) -> Problem:
        """The same with the devices of one kind alone."""
        devices = (d if d.kind == kind else replace(d, units=0) for d in self.devices)
        return replace(self, devices=tuple(devices))


@dataclass(frozen=True)
class Pool:
    """Replicas of one option of one demand, each by its index."""

    demand: int
    option: int
    replicas: int


@dataclass(frozen=True)
class Solution:
    """What was chosen.

    `status`: `optimal` (within the gap asked for), `time_limit` (the best found until then),
    `infeasible` (what has to be served cannot be) or `not_solved` (nothing found in time).
    `value` is the objective of the pools, `bound` what no choice of the same served weight can be
    below, `weight_bound` what no choice can serve more than; both are None where nothing is known.
    """

    status: str
    pools: tuple[Pool, ...] = ()
    served: frozenset[int] = field(default_factory=frozenset)
    served_weight: float = 0.0
    weight_bound: float | None = None
    value: float | None = None
    bound: float | None = None

    @property
    def found(self) -> bool:
        """Whether there is an allocation."""
        return self.value is not None

    @property
    def gap(self) -> float | None:
        """How far the value may lie above the least, as a share of it."""
        if self.value is None or self.bound is None:
            return None
        return max(self.value - self.bound, 0.0) / abs(self.value) if self.value else 0.0


def used_units(problem: Problem, pools: tuple[Pool, ...]) -> list[int]:
    """Units of each device that pools take."""
    used = [0] * len(problem.devices)
    for pool in pools:
        option = problem.demands[pool.demand].options[pool.option]
        used[option.device] += option.units(problem.devices[option.device], pool.replicas)
    return used


def value_of(problem: Problem, pools: tuple[Pool, ...]) -> float:
    """The objective of pools."""
    used = used_units(problem, pools)
    pairs = zip(used, problem.devices, strict=True)
    return math.fsum(count * problem.unit_value(device) for count, device in pairs)


def carried(problem: Problem, pools: tuple[Pool, ...]) -> Mapping[int, float]:
    """The share of each demand that its pools carry, of those that have some."""
    shares: dict[int, float] = {}
    for pool in pools:
        capacity = problem.demands[pool.demand].options[pool.option].capacity
        shares[pool.demand] = shares.get(pool.demand, 0.0) + capacity.share(pool.replicas)
    return shares
