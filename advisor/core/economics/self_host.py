"""Self-hosting against an API: the volumes at which each is cheaper.

An API costs a n a month for n requests. Replicas come whole: k of them serve k C requests a month
(C is one's capacity within its SLO, over peak to mean) and cost k F + O. Within step k, from
(k - 1) C to k C, self-hosting wins above (k F + O) / a. So there is not one threshold:

- no volume helps unless a > F / C, the floor that full replicas approach;
- step k has a winning part from k = O / (a C - F) on;
- from k = (F + O) / (a C - F) on every step is won from its beginning: always cheaper.

F / a, which many calculators print, may lie beyond what one replica can serve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from advisor.core.economics.figures import (
    AMOUNT,
    DERIVED,
    POSITIVE,
    Range,
    as_json,
    plain,
    quotient,
    refuse_outside,
    written,
)

MOST_REPLICAS = 10**6
PEAK = Range(Fraction(1), Fraction(1000))
MOST_INTERVALS = 200
"""Intervals that are listed; from where on self-hosting always wins is known however many."""


@dataclass(frozen=True)
class SelfHostInputs:
    """Money of one currency; a replica's capacity in requests a month at a steady rate."""

    api_cost_per_request: Decimal
    replica_cost_per_month: Decimal
    replica_capacity_requests_per_month: Fraction
    overhead_per_month: Decimal = Decimal(0)
    min_replicas: int = 1
    peak_to_mean: Fraction = Fraction(1)
    requests_per_month: Fraction | None = None
    currency: str = "USD"

    def __post_init__(self) -> None:
        refuse_outside(
            self, api_cost_per_request=DERIVED, replica_cost_per_month=DERIVED,
            replica_capacity_requests_per_month=POSITIVE, overhead_per_month=DERIVED,
            min_replicas=Range(Fraction(1), Fraction(MOST_REPLICAS)), requests_per_month=AMOUNT,
            peak_to_mean=PEAK,
        )  # fmt: skip

    @property
    def capacity(self) -> Fraction:
        """C: requests a month that a replica serves on average, its peaks served too."""
        return self.replica_capacity_requests_per_month / self.peak_to_mean

    def cost(self, replicas: int) -> Fraction:
        """k F + O [money a month]."""
        return replicas * Fraction(self.replica_cost_per_month) + Fraction(self.overhead_per_month)

    def replicas(self, requests: Fraction) -> int:
        """Replicas that `requests` a month take."""
        return max(self.min_replicas, math.ceil(requests / self.capacity))


@dataclass(frozen=True)
class Interval:
    """Requests a month between which `winner` is cheaper, up to and with `until`; at `start` of an
    interval of self-hosting both cost the same. `replicas` serve its start, `replicas_at_end` its
    end, `None` where it has none or the API wins."""

    start: Fraction
    until: Fraction | None
    winner: str
    replicas: int | None
    replicas_at_end: int | None

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready: `from` and `to` in place of `start` and `until`."""
        names = {"start": "from", "until": "to"}
        return {names.get(name, name): as_json(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class Volume:
    """Both bills of a month at one volume; `winner` is `tie` where they are the same."""

    requests_per_month: Fraction
    api_cost_per_month: Decimal
    self_host_cost_per_month: Decimal
    replicas: int
    winner: str


@dataclass(frozen=True)
class SelfHost:
    """The answer; volumes are requests a month. `naive_break_even` is (F + O) / a."""

    status: str
    reason: str | None
    api_cost_per_request: Decimal
    self_host_floor_per_request: Decimal
    intervals: tuple[Interval, ...]
    intervals_total: int
    always_cheaper_from: Fraction | None
    naive_break_even: Fraction | None
    naive_within_one_replica: bool | None
    at_volume: Volume | None
    currency: str

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return dict(as_json(vars(self))) | {
            "intervals": [each.as_dict() for each in self.intervals]
        }


def self_host(inputs: SelfHostInputs) -> SelfHost:
    """Where which is cheaper. `status` is `never` when self-hosting is at no volume."""
    api, floor = Fraction(inputs.api_cost_per_request), _floor(inputs)
    naive = inputs.cost(1) / api if api else None
    always = _always_from(inputs)
    intervals, total = _intervals(inputs)
    return SelfHost(
        status="ok" if always is not None else "never",
        reason=None if always is not None else _never(inputs, floor),
        api_cost_per_request=inputs.api_cost_per_request,
        self_host_floor_per_request=quotient(floor),
        intervals=intervals,
        intervals_total=total,
        always_cheaper_from=always,
        naive_break_even=naive,
        naive_within_one_replica=None if naive is None else naive <= inputs.capacity,
        at_volume=_at_volume(inputs),
        currency=inputs.currency,
    )


def _floor(inputs: SelfHostInputs) -> Fraction:
    """F / C, what a request costs when every replica is full."""
    return Fraction(inputs.replica_cost_per_month) / inputs.capacity


def _gain(inputs: SelfHostInputs) -> Fraction:
    """a C - F: what a full replica saves a month. Unless it is positive no volume helps."""
    return Fraction(inputs.api_cost_per_request) * inputs.capacity - Fraction(
        inputs.replica_cost_per_month
    )


def _last_step(inputs: SelfHostInputs) -> int:
    """The step from whose threshold on self-hosting is always cheaper."""
    return max(_first_step(inputs), math.ceil(inputs.cost(1) / _gain(inputs)))


def _always_from(inputs: SelfHostInputs) -> Fraction | None:
    if _gain(inputs) <= 0:
        return None
    return inputs.cost(_last_step(inputs)) / Fraction(inputs.api_cost_per_request)


def _first_step(inputs: SelfHostInputs) -> int:
    """The first step with a winning part: k (a C - F) > O."""
    beyond = math.floor(Fraction(inputs.overhead_per_month) / _gain(inputs)) + 1
    return max(inputs.min_replicas, beyond)


def _intervals(inputs: SelfHostInputs) -> tuple[tuple[Interval, ...], int]:
    """The first intervals from volume 0 on, and how many there are in all."""
    if _gain(inputs) <= 0:
        return (Interval(Fraction(0), None, "api", None, None),), 1
    api, capacity = Fraction(inputs.api_cost_per_request), inputs.capacity
    first, last = _first_step(inputs), _last_step(inputs)
    found: list[Interval] = []
    reached = Fraction(0)
    for step in range(first, min(last, first + MOST_INTERVALS) + 1):
        threshold = inputs.cost(step) / api
        if threshold > reached:
            found.append(Interval(reached, threshold, "api", None, None))
        final = step >= last
        reached = capacity * step
        end, replicas = (None, None) if final else (reached, step)
        found.append(Interval(threshold, end, "self_host", step, replicas))
    total = 2 * (last - first + 1) - (found[0].winner != "api")
    return tuple(found[:MOST_INTERVALS]), total


def _at_volume(inputs: SelfHostInputs) -> Volume | None:
    requests = inputs.requests_per_month
    if requests is None:
        return None
    replicas = inputs.replicas(requests)
    api, own = Fraction(inputs.api_cost_per_request) * requests, inputs.cost(replicas)
    winner = "tie" if api == own else "api" if api < own else "self_host"
    return Volume(requests, written(api), written(own), replicas, winner)


def _never(inputs: SelfHostInputs, floor: Fraction) -> str:
    api, currency = plain(inputs.api_cost_per_request), inputs.currency
    return (
        f"No volume helps: a request costs {api} {currency} at the API, and even full replicas "
        f"cost {plain(quotient(floor))} {currency} a request. The API price must exceed that floor."
    )
