"""What runs already, under the figures of now: whether it still does what was asked, and what
moving to a new allocation would save."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from advisor.allocation.allocate import Allocation
from advisor.allocation.capacity import NEARLY, Capacity
from advisor.allocation.checking import alone
from advisor.allocation.problem import Option, Problem, Solution
from advisor.core.layouts import Layout, Split
from advisor.core.plans import Plan, plan

VERDICTS = ("fails", "serve_more", "move", "keep")
"""Of what runs beside a new allocation: it fails; it serves less weight; it takes more of the
objective; or nothing better was found than what a new one might be itself."""


@dataclass(frozen=True)
class Running:
    """A pool of an earlier allocation, its demand and entry by their places, and the `share` of its
    demand's rate that it had."""

    demand: int
    entry: int
    split: Split
    replicas: int
    share: float


@dataclass(frozen=True)
class KeptPool:
    """The same pool at its share of now, as the planner finds it, and the units of its entry that
    it takes. `capacity` is the share of the demand's rate that it carries; None where its layout is
    no option any more."""

    running: Running
    share: float
    capacity: float | None
    plan: Plan
    units: int

    @property
    def met(self) -> bool:
        """Whether the planner would recommend it."""
        return self.plan.recommended is not None


@dataclass(frozen=True)
class Kept:
    """All that runs, and the problem of now."""

    problem: Problem
    pools: tuple[KeptPool, ...]

    def of(self, demand: int) -> list[KeptPool]:
        """What runs for a demand."""
        return [each for each in self.pools if each.running.demand == demand]

    @property
    def ran(self) -> list[int]:
        """Places of the demands that something runs for."""
        return sorted({each.running.demand for each in self.pools})

    @property
    def taken(self) -> list[int]:
        """Accelerators of each entry, those of whole nodes counted."""
        used = [0] * len(self.problem.devices)
        for each in self.pools:
            used[each.running.entry] += self.accelerators(each)
        return used

    @property
    def value(self) -> float:
        """Its objective."""
        devices = self.problem.devices
        return math.fsum(
            each.units * self.problem.unit_value(devices[each.running.entry]) for each in self.pools
        )

    @property
    def served(self) -> frozenset[int]:
        """Places of the demands that are served within every limit."""
        return frozenset(
            i for i in self.ran if all(each.met for each in self.of(i)) and not self.too_many(i)
        )

    @property
    def served_weight(self) -> float:
        """Weight of those."""
        return sum(self.problem.demands[i].weight or 0.0 for i in sorted(self.served))

    @property
    def overbooked(self) -> list[int]:
        """Places of the entries that have fewer accelerators than run."""
        pairs = enumerate(zip(self.taken, self.problem.devices, strict=True))
        return [i for i, (used, device) in pairs if used > device.accelerators]

    @property
    def feasible(self) -> bool:
        """Whether everything that runs still does what was asked."""
        return len(self.served) == len(self.ran) and not self.overbooked

    def accelerators(self, each: KeptPool) -> int:
        """Those of a pool, those of whole nodes counted."""
        return each.units * self.problem.devices[each.running.entry].accelerators_per_unit

    def too_many(self, demand: int) -> bool:
        """Whether more accelerators run for a demand than it may have."""
        most = self.problem.demands[demand].most_accelerators
        return most is not None and sum(map(self.accelerators, self.of(demand))) > most


@dataclass(frozen=True)
class Compared:
    """What runs beside a new allocation. `saving` is what its objective is less, and `at_most` what
    that of any allocation can be less; None where they are not known, or weigh differently. `near`:
    within the gap asked for it is the best itself."""

    verdict: str
    saving: float | None = None
    at_most: float | None = None
    near: bool = False


def running(answer: Mapping[str, Any]) -> tuple[Running, ...]:
    """The pools of an allocation as it was answered."""
    names = [entry["name"] for entry in answer["inputs"]["inventory"]]
    demands = [demand["name"] for demand in answer["inputs"]["demands"]]
    return tuple(
        Running(
            demands.index(served["demand"]), names.index(pool["inventory"]), _split(pool),
            pool["replicas"], pool["share_of_rate"],
        )
        for served in answer["allocation"]
        for pool in served["pools"]
    )  # fmt: skip


def kept(found: Allocation, pools: Sequence[Running]) -> Kept:
    """Pools that run under the figures that a new allocation was found with. Those of a demand
    share its rate in proportion to what they carry now, as a new allocation's do; where that is not
    known of one of them, as they did."""
    carries = [_carries(found, each) for each in pools]
    shares = _shares(pools, carries)
    judged = (_kept(found, *each) for each in zip(pools, carries, shares, strict=True))
    return Kept(found.chosen.problem, tuple(judged))


def compared(runs: Kept, now: Solution, max_gap: float) -> Compared:
    """What runs beside a new allocation. Where it lies within `max_gap` of the bound, a share of
    its objective, it might have been the new allocation itself: nothing is gained by moving."""
    if not runs.feasible:
        return Compared("fails")
    weight, value = runs.served_weight, runs.value
    more = now.served_weight - weight
    if now.value is None or more < -NEARLY * weight:
        return Compared("keep")
    if more > NEARLY * weight:
        return Compared("serve_more")
    saving = value - now.value
    at_most = None if now.bound is None else max(value - now.bound, saving)
    near = at_most is not None and at_most <= (max_gap + NEARLY) * value
    verdict = "keep" if near or saving <= NEARLY * abs(value) else "move"
    return Compared(verdict, saving, at_most, near)


def _split(pool: Mapping[str, Any]) -> Split:
    return Split(
        tensor_parallel=pool["tensor_parallel"],
        pipeline_parallel=pool["pipeline_parallel"],
        expert_parallel=pool["expert_parallel"],
        attention_data_parallel=pool["attention_data_parallel"],
        decode_context_parallel=pool["decode_context_parallel"],
        weights=pool["precision"]["weights"],
        kv_cache=pool["precision"]["kv_cache"],
    )


def _carries(found: Allocation, pool: Running) -> float | None:
    """The share of its demand that a pool carries, where its layout is an option now."""
    options = found.chosen.problem.demands[pool.demand].options
    for offer, option in zip(found.plans[pool.demand].offers, options, strict=True):
        # The stages of a pipeline are those of the request, in all its layouts.
        split = replace(offer.layout.split, pipeline_layers=())
        if offer.entry == pool.entry and split == pool.split:
            return option.capacity.share(pool.replicas)
    return None


def _shares(pools: Sequence[Running], carries: Sequence[float | None]) -> list[float]:
    """Of its demand's rate, for each pool."""
    shares = []
    for pool, own in zip(pools, carries, strict=True):
        pairs = zip(pools, carries, strict=True)
        alike = [other for each, other in pairs if each.demand == pool.demand]
        known = [other for other in alike if other is not None]
        whole = own is not None and len(known) == len(alike)
        shares.append(own / sum(known) if whole and own is not None else pool.share)
    return shares


def _kept(found: Allocation, pool: Running, carries: float | None, share: float) -> KeptPool:
    request = found.plans[pool.demand].wanted.request
    entry = found.request.inventory[pool.entry]
    (device,) = (each for each in request.hardware if each.name == entry.hardware.name)
    decided = plan(alone(request, Layout(device, pool.split), pool.replicas, share))
    option = Option(pool.entry, pool.split.accelerators, Capacity.linear(0.0))
    return KeptPool(pool, share, carries, decided, option.units(entry.device, pool.replicas))
