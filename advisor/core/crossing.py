"""Crossing loads: where another way to spend the same accelerators becomes the better one.

The ways are evaluated over a grid of loads, all at once. The best one stays so until another is
better by more than a tie; where the other overtook it is then narrowed down. Changes closer
together than the grid are taken as one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.core.answer import rounded
from advisor.core.choice import TIE
from advisor.core.comparison import in_short, same_accelerators, way
from advisor.core.decision import Decision, most_utilized
from advisor.core.units import rounded_plain

Array = NDArray[np.float64]
Index = NDArray[np.int64]

METRICS = ("e2e_p95_ms", "slo")
"""What is better: the way with the least p95 E2E, or that with the least that meets every SLO."""

_LOADS = 24
_PARTS = 8
_PRECISION = 0.002
"""Width, as a share of the load, that a change is narrowed down to."""

_FULL = 4
"""Clients looked at, in multiples of what runs at once: with more of them the way that serves most
is the fastest."""

_NEVER = 1e300
"""Seconds that stand for no way at all: less than the infinite time of one that is no choice."""


@dataclass(frozen=True)
class _Change:
    """Between two loads the way `after` overtakes `before`; by their place among the ways, with
    none of them as the last one."""

    low: float
    high: float
    before: int
    after: int


def crossing_loads(plan: Decision, subject: int) -> list[dict[str, Any]]:
    """For each metric the loads at which the best way to spend the accelerators of a candidate
    changes, and which is best below and above; or why there is none. Empty where there is one way.
    """
    ways = same_accelerators(plan, subject)
    if len(ways) < 2:
        return []
    workload = plan.request.workload
    if workload.mode == "saturated":
        return [_unchanged(METRICS[0], None, "A saturating load is no load that could change.")]
    if workload.start == "burst":
        return [_unchanged(METRICS[0], None, "A burst is simulated: ask of a steady load.")]
    named = [*(way(plan, *one) for one in ways), None]
    loads = _grid(plan, ways)
    times = _times(plan, ways, loads)
    entries: list[dict[str, Any]] = []
    for metric, name in enumerate(METRICS if plan.request.slo else METRICS[:1]):
        changes = list(_changes(plan, ways, metric, loads, times[metric]))
        entries += [_entry(plan, name, change, named) for change in changes]
        if not changes:
            best = named[int(times[metric, 0].argmin())]
            entries.append(_unchanged(name, best, _why_not(best)))
    return entries


def in_words(entries: list[dict[str, Any]] | None) -> list[str]:
    """The changes, in sentences."""
    return [
        _WORDS[one["metric"]].format(*map(_named, _sides(one)), _load(one))
        for one in entries or ()
        if one["reason"] is None
    ]


_WORDS = {
    "e2e_p95_ms": "Of the ways to spend the accelerators, the fastest is {0} up to {2}, then {1}.",
    "slo": "Of those that meet every SLO, the fastest is {0} up to {2}, then {1}.",
}


def _sides(one: dict[str, Any]) -> list[dict[str, Any] | None]:
    return [one["better_below"], one["better_above"]]


def _named(best: dict[str, Any] | None) -> str:
    return "none" if best is None else in_short(best)


def _load(one: dict[str, Any]) -> str:
    if one["request_rate_per_s"] is None:
        return f"{one['concurrency']} requests in flight"
    return f"{rounded_plain(one['request_rate_per_s'])} requests/s"


def _why_not(best: dict[str, Any] | None) -> str:
    if best is None:
        return "No way meets every SLO, at any load."
    return "One way is better at every load that these accelerators carry."


def _unchanged(metric: str, best: dict[str, Any] | None, reason: str) -> dict[str, Any]:
    loads = dict.fromkeys(("request_rate_per_s", "concurrency"))
    return {"metric": metric, **loads, "better_below": best, "better_above": best, "reason": reason}


def _entry(
    plan: Decision, metric: str, change: _Change, named: list[dict[str, Any] | None]
) -> dict[str, Any]:
    closed = plan.request.workload.mode == "closed"
    return {
        "metric": metric,
        "request_rate_per_s": None if closed else rounded((change.low + change.high) / 2),
        "concurrency": int(change.high) if closed else None,
        "better_below": named[change.before],
        "better_above": named[change.after],
        "reason": None,
    }


def _grid(plan: Decision, ways: list[tuple[int, int]]) -> Array:
    """Loads up to the most that any way carries, or to a queue in front of each [requests/s or
    clients]."""
    evaluator, workload = plan.evaluator, plan.request.workload
    layout, serving = _rows(plan, ways)
    if workload.mode == "closed":
        most = _FULL * int((evaluator.slots[layout] * serving).max())
        return np.unique(np.geomspace(1, most, _LOADS).round())
    efficiency = plan.request.serving.router_efficiency / workload.peak_to_mean
    most = (evaluator.saturation[layout] * serving).max() * efficiency
    shares = np.linspace(0, most_utilized(plan.request.limits), _LOADS + 1)[1:]
    return np.asarray(most * shares * (1 - 1e-12))


def _rows(plan: Decision, ways: list[tuple[int, int]]) -> tuple[Index, Index]:
    layout, replicas = np.array(ways, dtype=np.int64).T
    return layout, replicas - plan.request.limits.spare_replicas


def _times(plan: Decision, ways: list[tuple[int, int]], loads: Array) -> Array:
    """By each metric the p95 E2E of each way at each load [s], and `_NEVER` for none of them,
    (metrics, loads, ways + 1); infinite where a way does not carry the load or meet the SLOs."""
    layout, serving = (np.tile(each, len(loads)) for each in _rows(plan, ways))
    served = plan.evaluator.serve(layout, serving, np.repeat(loads, len(ways)))
    found = served.latency["e2e"].at("p95")
    carried = np.isfinite(found)
    if plan.request.workload.mode == "open":
        carried &= served.utilization <= most_utilized(plan.request.limits)
    times = np.full((len(METRICS), len(loads), len(ways) + 1), _NEVER)
    for metric, usable in enumerate((carried, carried & plan.evaluator.meets(layout, served))):
        times[metric, :, :-1] = np.where(usable, found, np.inf).reshape(len(loads), len(ways))
    return times


def _changes(
    plan: Decision, ways: list[tuple[int, int]], metric: int, loads: Array, times: Array
) -> Iterator[_Change]:
    """The changes of the best way along the grid, by rising load."""
    best, start = int(times[0].argmin()), 0
    while True:
        worse = times[start:, best] > times[start:].min(axis=1) * (1 + TIE)
        if not worse.any():
            return
        end = start + int(worse.argmax())
        high, there, after = float(loads[end]), times[end], best
        while there[after] > there.min() * (1 + TIE):
            # Where the best way ends between two loads of the grid, another may come first.
            after = int(there.argmin())
            ahead = np.flatnonzero(times[start:end, best] <= times[start:end, after])
            last = start + (int(ahead[-1]) if len(ahead) else 0)
            if last + 1 < end:
                high, there = float(loads[last + 1]), times[last + 1]
            change = _Change(float(loads[last]), high, best, after)
            change, there = _narrowed(plan, ways, metric, change, there)
            high = change.high
        yield change
        best, start = after, int(np.searchsorted(loads, high))
        if loads[start] != high:
            loads, times = np.insert(loads, start, high), np.insert(times, start, there, axis=0)


def _narrowed(
    plan: Decision, ways: list[tuple[int, int]], metric: int, change: _Change, there: Array
) -> tuple[_Change, Array]:
    """The change between two loads close to each other, of clients next to each other; and the
    times at the higher one, which are `there` at first."""
    closed = plan.request.workload.mode == "closed"
    low, high = change.low, change.high
    while high - low > (1 if closed else _PRECISION * high):
        loads = np.linspace(low, high, _PARTS + 1)[1:-1]
        if closed:
            loads = np.unique(np.clip(loads.round(), low + 1, high - 1))
        times = np.concatenate([_times(plan, ways, loads)[metric], there[None, :]])
        edges = [low, *loads.tolist(), high]
        ahead = np.flatnonzero(times[:-1, change.before] <= times[:-1, change.after])
        last = int(ahead[-1]) + 1 if len(ahead) else 0
        low, high, there = edges[last], edges[last + 1], times[last]
    return replace(change, low=low, high=high), there
