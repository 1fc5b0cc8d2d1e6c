"""Latency, throughput and utilization of plans under a load: open, closed or saturated.

Rows are plans (a layout and a number of replicas). Percentiles are tabulated at `LEVELS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from advisor.core.batching import ServiceTable
from advisor.core.queueing import (
    Wait,
    combined_wait_quantile,
    prefill_wait,
    slot_wait,
    stationary,
)
from advisor.core.workload import Length, Workload

Array = NDArray[np.float64]
Index = NDArray[np.int64]

LEVELS = np.array([0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.99, 0.995, 0.999])
"""Quantile levels that every latency is tabulated at."""

LEVEL_OF = {"p50": 4, "p95": 7, "p99": 9}
NEAR_SATURATION = 0.98

_MOST_PROMPTS = 40
"""Prompts in one step are counted up to this; a higher ITL level is the step with so many."""

_Z = np.array([NormalDist().inv_cdf(level) for level in LEVELS])

_MEMORY_OF_STATE = float(np.sqrt(2 * np.exp(-1.0)))
"""Spread of the state averaged over one request, as a share of its spread at an instant: the
number in service forgets itself over about one service time, and the variance of the average of
such a process over that time is 2 (e^-1 - 1 + 1) = 0.736 of it."""


@dataclass(frozen=True)
class Latency:
    """One latency [s]: its mean (rows,) and its quantiles (rows, len(LEVELS)). NaN: not defined."""

    mean: Array
    quantiles: Array

    def at(self, statistic: str) -> Array:
        """`mean`, `p50`, `p95` or `p99`, shape (rows,)."""
        return self.mean if statistic == "mean" else self.quantiles[:, LEVEL_OF[statistic]]

    def share_within(self, limit: float) -> Array:
        """Share of requests at or below `limit` [s], by interpolation between `LEVELS`; 0 where
        the latency is not defined."""
        below = (self.quantiles <= limit).sum(axis=1)
        low = np.clip(below - 1, 0, len(LEVELS) - 2)
        row = np.arange(len(below))
        left, right = self.quantiles[row, low], self.quantiles[row, low + 1]
        with np.errstate(invalid="ignore", divide="ignore"):
            part = np.clip((limit - left) / (right - left), 0.0, 1.0)
        share = LEVELS[low] + np.nan_to_num(part) * (LEVELS[low + 1] - LEVELS[low])
        share = np.where(below == len(LEVELS), 1.0, share)
        return np.where(below == 0, 0.0, share)


@dataclass(frozen=True)
class Served:
    """What plans do under the load; arrays of shape (rows,), rates for the whole plan.

    `in_service` is the mean batch of one replica, `concurrency` the mean number of requests in the
    plan from arrival to last token. `utilization` is the load as a share of saturation.
    """

    verdict: NDArray[np.str_]
    utilization: Array
    saturation: Array
    requests_per_s: Array
    concurrency: Array
    in_service: Array
    latency: Mapping[str, Latency]

    def take(self, rows: Index) -> Served:
        """Some of the rows, in this order."""
        plain = {f.name: getattr(self, f.name)[rows] for f in fields(self) if f.name != "latency"}
        latency = {
            name: Latency(one.mean[rows], one.quantiles[rows]) for name, one in self.latency.items()
        }
        return Served(**plain, latency=latency)

    @staticmethod
    def joined(parts: Sequence[Served]) -> Served:
        """The rows of several evaluations, one after the other."""
        names = [f.name for f in fields(Served) if f.name != "latency"]
        latency = {
            metric: Latency(
                np.concatenate([part.latency[metric].mean for part in parts]),
                np.concatenate([part.latency[metric].quantiles for part in parts]),
            )
            for metric in parts[0].latency
        }
        plain = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        return Served(**plain, latency=latency)


@dataclass(frozen=True)
class Replicas:
    """The rows to evaluate, arrays of shape (rows,): which layout's curves, how many sequences a
    replica serves at once, what it then serves [requests/s], how many replicas serve, and the front
    end's time a request [s]."""

    layout: Index
    slots: Index
    saturation: Array
    count: Index
    front_end: Array
    router_efficiency: float = 1.0

    def within(self, columns: int) -> Replicas:
        """The same rows on curves that stop at n = `columns`, which they need no more of."""
        return replace(self, slots=np.minimum(self.slots, columns))


def serve(curves: ServiceTable, rows: Replicas, workload: Workload) -> Served:
    """Evaluate every row under the workload's load."""
    evaluate = {"open": _open, "closed": _closed, "saturated": _saturated}[workload.mode]
    return evaluate(curves, rows, workload)


def split_cv2(arrival_cv: float, replicas: Index) -> Array:
    """Squared variation of arrivals at one of `replicas`: a random split thins a renewal."""
    return np.asarray(1 + (arrival_cv**2 - 1) / replicas)


def _open(curves: ServiceTable, rows: Replicas, workload: Workload) -> Served:
    assert workload.request_rate_per_s is not None
    offered = workload.request_rate_per_s * workload.peak_to_mean
    effective = rows.count * rows.router_efficiency
    one = rows.saturation
    utilization = offered / (effective * one)
    stable = utilization < 1
    arrivals = np.where(stable, offered / effective, one / 2)
    arrivals_cv2 = split_cv2(workload.arrival_cv, rows.count)
    chain = stationary(curves.rate[rows.layout], rows.slots, arrivals, (1 + arrivals_cv2) / 2)
    picked, states = _Picked(curves, rows.layout), _States(chain.found)
    waits = (
        slot_wait(chain, one, arrivals, _variability(curves, rows, workload, arrivals_cv2)),
        _prompt_wait(picked, states, arrivals, arrivals_cv2, workload),
    )
    ttft = _ttft(picked, states, rows.front_end, waits, workload)
    tpot = _tpot(picked, states, workload)
    itl = _itl(picked, states, tpot)
    latency = {"ttft": ttft, "tpot": tpot, "itl": itl, "e2e": _e2e(ttft, tpot, workload)}
    latency = {name: _where(stable, value) for name, value in latency.items()}
    served = np.minimum(offered, effective * one)
    names = np.where(utilization >= NEAR_SATURATION, "near_saturation", "stable")
    return Served(
        verdict=np.where(stable, names, "unstable"),
        utilization=utilization,
        saturation=effective * one,
        requests_per_s=served,
        concurrency=served * latency["e2e"].mean,
        in_service=np.where(stable, chain.mean - chain.queued, rows.slots),
        latency=latency,
    )


def _closed(curves: ServiceTable, rows: Replicas, workload: Workload) -> Served:
    """Clients that send their next request when one is answered, spread evenly over replicas.

    Where they do not divide, some replicas have one client more; requests weigh as they are served.
    """
    assert workload.concurrency is not None
    few, extra = np.divmod(workload.concurrency, rows.count)
    groups = [(few, rows.count - extra), (few + 1, extra)]
    loops = [_loop(curves, rows, workload, np.maximum(clients, 1)) for clients, _ in groups]
    rates = [
        loop.rate * count * (clients > 0)
        for loop, (clients, count) in zip(loops, groups, strict=True)
    ]
    served = (rates[0] + rates[1]) * rows.router_efficiency
    weights = [rate * rows.router_efficiency / served for rate in rates]
    latency = {
        metric: _weighted(weights, [loop.latency[metric] for loop in loops])
        for metric in ("ttft", "tpot", "itl")
    }
    latency["e2e"] = _e2e(latency["ttft"], latency["tpot"], workload)
    saturation = rows.count * rows.router_efficiency * rows.saturation
    batch = sum(w * np.maximum(x.in_service, 1.0) for w, x in zip(weights, loops, strict=True))
    return Served(
        verdict=np.full(len(served), "closed_loop"),
        utilization=served / saturation,
        saturation=saturation,
        requests_per_s=served,
        concurrency=np.full(len(served), float(workload.concurrency)),
        in_service=np.asarray(batch),
        latency=latency,
    )


@dataclass(frozen=True)
class _Loop:
    """One replica with a fixed number of clients: requests per second, and what they see."""

    in_service: Array
    rate: Array
    latency: Mapping[str, Latency]


def _loop(curves: ServiceTable, rows: Replicas, workload: Workload, clients: Index) -> _Loop:
    point = _closed_replica(curves, rows, workload, clients)
    picked = _Picked(curves, rows.layout)
    states = _at(point.in_service, curves.service.shape[1])
    tpot = _tpot(picked, states, workload)
    no_slot_wait = Wait(np.zeros_like(point.rate), np.full_like(point.rate, np.inf))
    waits = (no_slot_wait, point.prompt_wait)
    ttft = _ttft(picked, states, rows.front_end, waits, workload)
    total = clients / (point.rate * rows.router_efficiency)
    decoding = workload.gaps * tpot.mean if workload.gaps else 0.0
    queue = _queue_spread(point, curves, rows, workload)
    latency = {
        "ttft": _shift(ttft, total - decoding, queue),
        "tpot": tpot,
        "itl": _itl(picked, states, tpot),
    }
    return _Loop(point.in_service, point.rate, latency)


def _weighted(weights: Sequence[Array], parts: Sequence[Latency]) -> Latency:
    """The latency of requests of which each part has its share."""
    mean = sum(w * part.mean for w, part in zip(weights, parts, strict=True))
    quantiles = sum(w[:, None] * part.quantiles for w, part in zip(weights, parts, strict=True))
    return Latency(np.asarray(mean), np.asarray(quantiles))


def _saturated(curves: ServiceTable, rows: Replicas, workload: Workload) -> Served:
    picked = _Picked(curves, rows.layout)
    states = _at(rows.slots.astype(np.float64), curves.service.shape[1])
    tpot = _tpot(picked, states, workload)
    undefined = Latency(
        np.full(len(rows.slots), np.nan), np.full((len(rows.slots), len(LEVELS)), np.nan)
    )
    total = rows.count * rows.router_efficiency * rows.saturation
    return Served(
        verdict=np.full(len(total), "saturated"),
        utilization=np.ones(len(total)),
        saturation=total,
        requests_per_s=total,
        concurrency=(rows.count * rows.slots).astype(np.float64),
        in_service=rows.slots.astype(np.float64),
        latency={
            "ttft": undefined,
            "tpot": tpot,
            "itl": _itl(picked, states, tpot),
            "e2e": undefined,
        },
    )


class _Picked:
    """The curves of each row's layout."""

    def __init__(self, curves: ServiceTable, layout: Index) -> None:
        self.own_prefill = curves.own_prefill[layout]
        self.decode_step = curves.decode_step[layout]
        self.mixed_step = curves.mixed_step[layout]
        self.tpot = curves.tpot[layout]
        self.mixed_share = curves.mixed_share[layout]
        self.prompt_time = curves.prompt_time[layout]
        self.prompt_load = curves.prompt_load[layout]
        self.room = curves.room[layout]

    @cached_property
    def decode_rest(self) -> Array:
        """Mean rest of the decode step under way when a request arrives, half of it; 0 when the
        replica is empty (n = 1 counts the arrival itself)."""
        rest = self.decode_step / 2
        rest[:, 0] = 0.0
        return np.asarray(rest)


class _States:
    """The distribution of the number in service that requests are served in, (rows, columns)."""

    def __init__(self, found: Array) -> None:
        self.found = found
        rows, columns = found.shape
        self._row = np.arange(rows)[:, None]
        reached = np.minimum(np.cumsum(found, axis=1), 1.0) + 2.0 * self._row
        self._reached, self._columns = reached.ravel(), columns

    def mean(self, curve: Array) -> Array:
        """Mean of a function of the number in service, (rows,)."""
        return np.asarray(np.einsum("ij,ij->i", self.found, curve))

    def quantiles(self, curve: Array, level: Array | None = None) -> Array:
        """Values of a rising function at the states of each level (of `LEVELS` if None)."""
        index = self._at_levels if level is None else self._index(level)
        return np.asarray(curve[self._row, index])

    @cached_property
    def _at_levels(self) -> Index:
        return self._index(np.broadcast_to(LEVELS, (len(self.found), len(LEVELS))))

    def _index(self, level: Array) -> Index:
        wanted = (level + 2.0 * self._row).ravel()
        index = np.searchsorted(self._reached, wanted).reshape(level.shape)
        return np.asarray(np.clip(index - self._row * self._columns, 0, self._columns - 1))


@dataclass(frozen=True)
class _ClosedPoint:
    """One replica with a fixed number of clients."""

    clients: Index
    in_service: Array
    rate: Array
    prompt_wait: Wait


def _closed_replica(
    curves: ServiceTable, rows: Replicas, workload: Workload, clients: Index
) -> _ClosedPoint:
    """Solve clients = mu(n) * (front end + waits before service + S(n)) for n, at most the slots.

    Beside more others no request is answered sooner, although a wait may be shorter: where a batch
    reads all experts anyway, a prompt adds less to a step.
    """
    picked, rate = _Picked(curves, rows.layout), curves.rate[rows.layout]
    n = np.arange(1, rate.shape[1] + 1)
    behind, prompt_wait = _behind_prompts(picked, rate, workload)
    rest = picked.decode_rest * (1 - prompt_wait.probability)
    before = rows.front_end[:, None] + rest + behind
    answered = np.maximum.accumulate(n / rate + before, axis=1)
    needed = np.maximum.accumulate(rate * answered, axis=1)
    inside = n <= rows.slots[:, None]
    reached = ((needed <= clients[:, None]) & inside).sum(axis=1)
    row, slots = np.arange(len(reached)), rows.slots
    low, high = np.maximum(reached - 1, 0), np.minimum(np.minimum(reached, slots - 1), n[-1] - 1)
    width = np.maximum(needed[row, high] - needed[row, low], 1e-12)
    part = np.clip((clients - needed[row, low]) / width, 0.0, 1.0) * (high > low)
    served = rate[row, low] * (1 - part) + rate[row, high] * part
    alone = clients / needed[row, 0]  # fewer clients than one request in service needs
    scale = np.where(reached == 0, np.minimum(alone, 1.0), 1.0)
    in_service = (low + 1 + part) * scale
    column = np.minimum(np.round(np.maximum(in_service, 1)).astype(int), n[-1]) - 1
    wait = Wait(prompt_wait.probability[row, column], prompt_wait.decay[row, column])
    return _ClosedPoint(clients, in_service, served * scale, wait)


def _behind_prompts(picked: _Picked, rate: Array, workload: Workload) -> tuple[Array, Wait]:
    """Wait behind others' prompts with n in service, and its mean: never more than half the
    others' prompts take."""
    n = np.arange(1, rate.shape[1] + 1)
    arrivals = rate * (n - 1) / n
    busy = np.minimum(arrivals * picked.prompt_time, 0.999)
    rest = picked.own_prefill / 2 * (1 + workload.input_tokens.squared_cv)
    wait = prefill_wait(busy, rest, arrivals * picked.prompt_load, 1.0)
    mean = np.minimum(wait.mean, (n - 1) / 2 * picked.prompt_time)
    with np.errstate(divide="ignore", invalid="ignore"):
        decay = np.where(mean > 0, wait.probability / mean, np.inf)
    return mean, Wait(wait.probability, decay)


def _queue_spread(
    point: _ClosedPoint, curves: ServiceTable, rows: Replicas, workload: Workload
) -> Array:
    """Deviation of a full replica's slot wait from its mean [s], (rows, levels): the sum of as
    many departures as clients wait before one."""
    waiting = np.maximum(point.clients - rows.slots, 0)
    spread = np.sqrt(_work_cv2(curves, rows, workload) * waiting) / rows.saturation
    return np.asarray(spread[:, None] * _Z)


def _at(in_service: Array, columns: int) -> _States:
    """The distribution that stands at one, possibly fractional, number in service."""
    n = np.maximum(in_service, 1.0)
    low = np.floor(n).astype(int)
    part = n - low
    row = np.arange(len(n))
    found = np.zeros((len(n), columns))
    found[row, low - 1] = 1 - part
    found[row, np.minimum(low, columns - 1)] += part
    return _States(found)


def _work_cv2(curves: ServiceTable, rows: Replicas, workload: Workload) -> Array:
    """Squared variation of the work of a request: prompt and decode in their shares of service."""
    service = curves.service[rows.layout, rows.slots - 1]
    decode = workload.gaps * curves.tpot[rows.layout, rows.slots - 1] / service
    inputs, outputs = workload.input_tokens.squared_cv, workload.output_tokens.squared_cv
    return decode**2 * outputs + (1 - decode) ** 2 * inputs


def _variability(
    curves: ServiceTable, rows: Replicas, workload: Workload, arrivals_cv2: Array
) -> Array:
    return np.maximum((arrivals_cv2 + _work_cv2(curves, rows, workload)) / 2, 1e-3)


def _prompt_wait(
    picked: _Picked, states: _States, arrivals: Array, arrivals_cv2: Array, workload: Workload
) -> Wait:
    cv2 = workload.input_tokens.squared_cv
    busy = np.minimum(arrivals * states.mean(picked.prompt_time), 0.999)
    rest = states.mean(picked.own_prefill) / 2 * (1 + cv2)
    load = arrivals * states.mean(picked.prompt_load)
    return prefill_wait(busy, rest, load, (arrivals_cv2 + cv2) / (1 + cv2))


def _ttft(
    picked: _Picked, states: _States, front_end: Array, waits: tuple[Wait, Wait], workload: Workload
) -> Latency:
    """Front end, rest of the step under way, waits for a slot and behind prompts, own prompt.

    Who waits behind prompts finds no plain step under way: a quantile has the longer of the two.
    """
    own = states.mean(picked.own_prefill)
    of_state = states.quantiles(picked.own_prefill) - own[:, None]
    by_length = np.maximum(picked.own_prefill - picked.decode_step, 0.0)
    of_length = _length_deviation(workload.input_tokens) * states.mean(by_length)[:, None]
    mean_wait = waits[0].mean + waits[1].mean
    of_step = states.mean(picked.decode_rest)
    rest = of_step * (1 - waits[1].probability)
    waited = combined_wait_quantile(*waits, LEVELS)
    of_wait = np.maximum(waited, (of_step - rest)[:, None]) - mean_wait[:, None]
    mean = front_end + rest + own + mean_wait
    quantiles = mean[:, None] + _root_sum(of_state + of_wait, of_length)
    if workload.input_tokens.sigma == 0:
        least = np.minimum(front_end + picked.own_prefill[:, 0], mean)
        quantiles = np.maximum(quantiles, least[:, None])
    return Latency(mean, quantiles)


def _tpot(picked: _Picked, states: _States, workload: Workload) -> Latency:
    """Mean gap of a request: over the states it lives through, and the prompts it meets."""
    gaps = workload.gaps
    if gaps == 0:
        rows = len(states.found)
        return Latency(np.full(rows, np.nan), np.full((rows, len(LEVELS)), np.nan))
    mean = states.mean(picked.tpot)
    rising = np.maximum.accumulate(picked.tpot, axis=1)
    of_state = states.quantiles(rising) - mean[:, None]
    share = np.clip(states.mean(picked.mixed_share), 0.0, 1.0)
    longer = np.maximum(states.mean(picked.mixed_step - picked.decode_step), 0.0)
    of_prompts = (np.sqrt(share * (1 - share) / gaps) * longer)[:, None] * _Z
    quantiles = mean[:, None] + _root_sum(_MEMORY_OF_STATE * of_state, of_prompts)
    least = np.minimum(picked.tpot[:, 0], mean)
    return Latency(mean, np.maximum(quantiles, least[:, None]))


def _itl(picked: _Picked, states: _States, tpot: Latency) -> Latency:
    """Single gaps: above the share of plain steps they are steps with prompts, a Poisson number.

    If a share s of the steps has any, a = -ln(1 - s) come in one on average, and a step that has
    some has a / s. The gap of a level grows with the prompts at that level, at most what fits.
    """
    mixed = np.clip(states.mean(picked.mixed_share), 0.0, 1.0 - 1e-9)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        in_mixed = np.where(mixed > 0, (LEVELS - (1 - mixed)) / mixed, 0.0)
    plain = states.quantiles(picked.decode_step, np.clip(LEVELS / (1 - mixed), 0, 1))
    longer = states.quantiles(picked.mixed_step, np.clip(in_mixed, 0, 1))
    arriving = -np.log1p(-mixed)
    with np.errstate(divide="ignore", invalid="ignore"):
        average = np.where(mixed > 0, arriving / mixed, 1.0)
    room = np.maximum(states.mean(picked.room)[:, None], average)
    prompts = np.clip(_poisson_quantiles(arriving), 1.0, room)
    base = states.mean(picked.decode_step)[:, None]
    longer = longer + np.maximum(prompts / average - 1, 0.0) * np.maximum(longer - base, 0.0)
    quantiles = np.where(1 - mixed < LEVELS, longer, plain)
    quantiles = np.where(np.isnan(tpot.mean)[:, None], np.nan, quantiles)
    return Latency(tpot.mean, np.maximum.accumulate(quantiles, axis=1))


def _poisson_quantiles(mean: Array) -> Array:
    """Poisson quantiles at `LEVELS` for means of shape (rows, 1), none above `_MOST_PROMPTS`."""
    count = np.arange(1, _MOST_PROMPTS + 1)
    terms = np.cumsum(np.log(np.maximum(mean, 1e-300)) - np.log(count), axis=1)
    reached = np.cumsum(np.exp(np.concatenate([0 * mean, terms], axis=1) - mean), axis=1)
    return np.asarray((reached[:, :, None] < LEVELS).sum(axis=1), dtype=np.float64)


def _e2e(ttft: Latency, tpot: Latency, workload: Workload) -> Latency:
    """TTFT + (OSL - 1) TPOT: means add; deviations add as squares, with the output's length."""
    gaps = workload.gaps
    if gaps == 0:
        return ttft
    mean = ttft.mean + gaps * tpot.mean
    of_ttft = ttft.quantiles - ttft.mean[:, None]
    of_tpot = gaps * (tpot.quantiles - tpot.mean[:, None])
    of_length = _length_deviation(workload.output_tokens) * (gaps * tpot.mean)[:, None]
    return Latency(mean, mean[:, None] + _root_sum(of_ttft, of_tpot, of_length))


def _length_deviation(length: Length) -> Array:
    """Relative deviation of a length's quantiles from its mean, (1, levels)."""
    sigma = length.sigma
    return np.asarray(np.expm1(_Z * sigma - sigma**2 / 2))[None, :]


def _root_sum(*deviations: Array) -> Array:
    """Add independent deviations as signed squares: exact for normal ones, and monotone."""
    total = sum(np.sign(d) * d**2 for d in deviations)
    return np.asarray(np.sign(total) * np.sqrt(np.abs(total)))


def _shift(latency: Latency, mean: Array, deviation: Array) -> Latency:
    """The latency moved to a new mean, with one more deviation."""
    own = latency.quantiles - latency.mean[:, None]
    return Latency(mean, np.maximum(mean[:, None] + _root_sum(own, deviation), 0.0))


def _where(defined: NDArray[np.bool_], latency: Latency) -> Latency:
    return Latency(
        np.where(defined, latency.mean, np.nan),
        np.where(defined[:, None], latency.quantiles, np.nan),
    )
