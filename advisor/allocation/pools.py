"""What the planner says of a demand: which layouts may serve it, and how much replicas carry.

Pools of one demand share its requests by chance, each a part of the stream. A part of a stream is
no burstier than the whole where that is burstier than chance, and no more regular than chance
where it is not: so capacities are those at the larger of `arrival_cv` and 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from advisor.allocation.capacity import Capacity
from advisor.allocation.problem import Option
from advisor.allocation.request import Entry, Wanted
from advisor.core import fitting
from advisor.core.engines import version_warnings
from advisor.core.enumeration import Rejection, enumerate_layouts
from advisor.core.errors import FieldError, InvalidInput, between
from advisor.core.evaluation import Evaluator
from advisor.core.layouts import Layout
from advisor.core.plans import validate
from advisor.core.slo import slo_ratios
from advisor.core.units import rounded_plain
from advisor.core.workload import PlanRequest

Array = NDArray[np.float64]
Index = NDArray[np.int64]

COUNTED = (1, 2, 4, 8, 16)
"""Replicas at which a capacity that does not rise in proportion is computed. Any other number is
taken to carry as much a replica as the next smaller of these: replicas of a larger pool carry no
less."""

MOST_ROWS = 6_000
"""Layouts times numbers of replicas whose capacity one request may ask for."""

_HALVINGS = 14
_ROOM = 0.9995
"""What is taken of a rate at which an SLO is just met: the planner's latencies jump by about a part
in ten thousand with the other rows that they are computed beside."""
_IDLE = 1e-3
"""A share of saturation at which a pool has next to nothing to do."""


@dataclass(frozen=True)
class Offer:
    """A layout on an entry of the inventory, by its place, and the option that it is."""

    entry: int
    layout: Layout
    option: Option


@dataclass(frozen=True)
class Planned:
    """A demand with what may serve it, and why other layouts do not."""

    wanted: Wanted
    offers: tuple[Offer, ...]
    rejected: tuple[Rejection, ...]
    warnings: tuple[dict[str, str], ...]


@dataclass(frozen=True)
class Asked:
    """A demand with the layouts that the model and the devices allow. `request` is the demand's as
    a part of its stream is planned; with `linear`, replicas share that at random, so that each is a
    queue of its own."""

    wanted: Wanted
    request: PlanRequest
    layouts: tuple[Layout, ...]
    rejected: tuple[Rejection, ...]
    linear: bool

    @property
    def rows(self) -> int:
        """Capacities to compute."""
        return len(self.layouts) * (1 if self.linear else len(COUNTED))


def asked(wanted: Wanted) -> Asked:
    """The layouts of a demand. InvalidInput for what the planner refuses."""
    request = wanted.request
    burstiest = max(request.workload.arrival_cv, 1.0)
    request = replace(request, workload=replace(request.workload, arrival_cv=burstiest))
    validate(request)
    layouts, rejected = enumerate_layouts(request)
    linear = request.serving.routing == "random" and burstiest == 1
    return Asked(wanted, request, tuple(layouts), tuple(rejected), linear)


def refuse_too_many(demands: Sequence[Asked]) -> None:
    """InvalidInput where demands span more than MOST_ROWS in all."""
    rows = sum(each.rows for each in demands)
    if rows > MOST_ROWS:
        detail = "The demands span too many layouts: narrow their inventory or degrees."
        raise InvalidInput(
            FieldError("/demands", detail, given=rows, allowed=between(1, MOST_ROWS))
        )


def planned(demand: Asked, inventory: Sequence[Entry]) -> Planned:
    """What may serve a demand."""
    request = demand.request
    evaluator, unfit = fitting.evaluator(request, demand.layouts)
    found = capacities(evaluator, demand.linear)
    late = [
        _late(evaluator, i) for i, each in enumerate(found) if each is not None and not each.each
    ]
    unsure = [_unsure(evaluator, i) for i, each in enumerate(found) if each is None]
    return Planned(
        demand.wanted,
        tuple(_offers(demand.wanted, inventory, evaluator, found)),
        (*demand.rejected, *unfit, *late, *unsure),
        (*(dict(each) for each in request.model.warnings), *version_warnings(request.serving)),
    )


def _offers(
    wanted: Wanted, inventory: Sequence[Entry], evaluator: Evaluator,
    found: Sequence[Capacity | None],
) -> list[Offer]:  # fmt: skip
    pairs = list(zip(evaluator.layouts, found, strict=True))
    return [
        Offer(i, layout, Option(i, layout.split.accelerators, capacity))
        for i in wanted.entries
        for layout, capacity in pairs
        if capacity is not None
        and capacity.each
        and layout.hardware.name == inventory[i].hardware.name
    ]


def capacities(evaluator: Evaluator, linear: bool) -> list[Capacity | None]:
    """The capacity of each layout, spares counted as replicas; None of those that may not fit,
    where others fit for sure. That of a layout which meets the SLOs at no rate adds nothing.
    """
    counts = COUNTED[:1] if linear else COUNTED
    layouts = np.arange(len(evaluator.layouts))
    layout = np.repeat(layouts, len(counts))
    serving = np.tile(np.array(counts, dtype=np.int64), len(layouts))
    rate = evaluator.request.workload.request_rate_per_s
    assert rate is not None
    shares = largest_rates(evaluator, layout, serving, rate) / rate
    uncertain = evaluator.memory.uncertain
    spare = evaluator.request.limits.spare_replicas
    return [
        None if uncertain[i] and not uncertain.all() else _capacity(counts, each.tolist(), spare)
        for i, each in zip(layouts, shares.reshape(-1, len(counts)), strict=True)
    ]


def largest_rates(evaluator: Evaluator, layout: Index, serving: Index, most: float) -> Array:
    """The largest mean rate [1/s] up to `most` at which so many serving replicas of each layout
    meet every SLO within the utilization limit, to a part in a thousand from below; 0 for none."""
    workload, limits = evaluator.request.workload, evaluator.request.limits
    efficiency = evaluator.request.serving.router_efficiency
    full = serving * efficiency * evaluator.saturation[layout]
    high = np.minimum(full * limits.max_utilization / workload.peak_to_mean, most)
    found = np.where(_holds(evaluator, layout, serving, high), high, 0.0)
    open_ = np.flatnonzero(found == 0)
    low, high = np.zeros(len(open_)), high[open_]
    for _ in range(_HALVINGS if len(open_) else 0):
        middle = (low + high) / 2
        holds = _holds(evaluator, layout[open_], serving[open_], middle)
        low, high = np.where(holds, middle, low), np.where(holds, high, middle)
    found[open_] = _ROOM * low
    return found


def _holds(evaluator: Evaluator, layout: Index, serving: Index, rate: Array) -> NDArray[np.bool_]:
    served = evaluator.serve(layout, serving, rate)
    stable = served.verdict == "stable"
    return np.asarray(evaluator.meets(layout, served) & stable)


def _capacity(counts: Sequence[int], shares: Sequence[float], spare: int) -> Capacity:
    """The capacity through shares that were computed at some numbers of serving replicas. Shares
    stop at the whole demand; past it there is nothing more to know."""
    known: list[float] = []
    each = 0.0
    for replicas in range(1, counts[-1] + 1):
        if replicas in counts:
            share = shares[counts.index(replicas)]
            each = max(each, share / replicas)
        else:
            share = replicas * each
        known.append(max(share, known[-1] if known else 0.0))
        if share >= 1:
            break
    return Capacity((*[0.0] * spare, *known), each)


def _late(evaluator: Evaluator, index: int) -> Rejection:
    """Why a layout serves nothing: the SLO it misses most with next to nothing to do."""
    request, layout = evaluator.request, evaluator.layouts[index]
    one, serving = np.array([index]), np.array([1])
    served = evaluator.serve(one, serving, _IDLE * evaluator.saturation[one])
    ratios = slo_ratios(served, request.slo, request.workload.gaps)
    sure = {key: float(ratio[0] * evaluator.margin(key)[index]) for key, ratio in ratios.items()}
    worst = max(sure, key=lambda key: sure[key])
    times = rounded_plain(sure[worst])
    detail = f"Next to idle, {worst} is {times} times its limit of {request.slo[worst]:g} ms."
    remedy = f"Loosen {worst}, or take a faster device, more accelerators or fewer bits."
    return Rejection(layout.hardware.name, layout.split, "slo_missed", detail, remedy)


def _unsure(evaluator: Evaluator, index: int) -> Rejection:
    layout = evaluator.layouts[index]
    detail = "Whether it fits is within the error of the estimate, and other layouts fit for sure."
    return Rejection(layout.hardware.name, layout.split, "fit_uncertain", detail)
