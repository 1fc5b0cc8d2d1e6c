"""Clients that wait for their answers, and replicas that are never short of requests."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from advisor.core.batching import ServiceTable
from advisor.core.class_latency import OfAnswer, OfPrompt, latencies, mean_gap
from advisor.core.latency import (
    LEVELS,
    Latency,
    Z,
    length_deviation,
    root_sum,
    shifted,
    step_levels,
    weighted,
)
from advisor.core.lengths import Component, RequestClass
from advisor.core.load import Replicas, Served
from advisor.core.occupancy import PickedCurves, States, standing_at
from advisor.core.queueing import Wait, prefill_wait
from advisor.core.workload import Speculation, Workload

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_MOST_PROMPTS = 40
"""Prompts in one step are counted up to this; a higher ITL level is the step with so many."""


def closed(curves: ServiceTable, rows: Replicas, workload: Workload) -> Served:
    """Clients that send their next request when one is answered, spread evenly over replicas.

    Where they do not divide, some replicas have one client more; requests weigh as they are served.
    """
    few, extra = np.divmod(rows.load.astype(np.int64), rows.count)
    groups = [(few, rows.count - extra), (few + 1, extra)]
    loops = [_loop(curves, rows, workload, np.maximum(clients, 1)) for clients, _ in groups]
    rates = [
        loop.rate * count * (clients > 0)
        for loop, (clients, count) in zip(loops, groups, strict=True)
    ]
    served = (rates[0] + rates[1]) * rows.router_efficiency
    weights = [rate * rows.router_efficiency / served for rate in rates]
    saturation = rows.count * rows.router_efficiency * rows.saturation
    batch = sum(w * np.maximum(x.in_service, 1.0) for w, x in zip(weights, loops, strict=True))
    latency, classes = latencies(
        workload, len(served),
        lambda one: weighted(weights, [loop.ttft(one) for loop in loops]),
        lambda one, answer: weighted(weights, [loop.tpot(one, answer) for loop in loops]),
        lambda _: weighted(weights, [loop.itl for loop in loops]),
    )  # fmt: skip
    return Served(
        verdict=np.full(len(served), "closed_loop"),
        utilization=served / saturation,
        saturation=saturation,
        requests_per_s=served,
        concurrency=rows.load,
        in_service=np.asarray(batch),
        slot_wait=np.asarray(sum(w * x.slot_wait for w, x in zip(weights, loops, strict=True))),
        full=np.asarray(rows.slots <= rows.load / rows.count, dtype=np.float64),
        latency=latency,
        classes=classes,
    )


@dataclass(frozen=True)
class _Loop:
    """One replica with a fixed number of clients: requests per second, and what they see."""

    in_service: Array
    rate: Array
    slot_wait: Array
    ttft: OfPrompt
    tpot: OfAnswer
    itl: Latency


def _loop(curves: ServiceTable, rows: Replicas, workload: Workload, clients: Index) -> _Loop:
    point = _closed_replica(curves, rows, workload, clients)
    picked = PickedCurves(curves, rows.layout)
    states = standing_at(point.in_service, curves.service.shape[1])
    tpot = _answers(picked, states, workload, rows.speculation)
    total = clients / (point.rate * rows.router_efficiency)
    gap = mean_gap(workload, len(total), tpot)
    decoding = workload.gaps * gap if workload.gaps else 0.0
    queue = _queue_spread(point, curves, rows, workload)

    def ttft(one: RequestClass) -> Latency:
        (prompt,) = one.prompt_tokens.components
        found, longer = _ttft(picked, states, rows.front_end, point.prompt_wait, prompt, workload)
        return shifted(found, total - decoding + longer, queue)

    itl = _itl(picked, states, gap, rows.speculation)
    return _Loop(point.in_service, point.rate, point.slot_wait, ttft, tpot, itl)


def _answers(
    picked: PickedCurves, states: States, workload: Workload, speculation: Speculation
) -> OfAnswer:
    """TPOT of answers by their length, each computed once."""

    @cache
    def of_length(answer: Component) -> Latency:
        return _tpot(picked, states, answer, workload, speculation)

    return lambda _, answer: of_length(answer)


def saturated(curves: ServiceTable, rows: Replicas, workload: Workload) -> Served:
    """Replicas that have a request for every slot: the queue has no end, so TTFT and E2E have no
    value."""
    picked = PickedCurves(curves, rows.layout)
    states = standing_at(rows.slots.astype(np.float64), curves.service.shape[1])
    total = rows.count * rows.router_efficiency * rows.saturation
    latency, classes = latencies(
        workload, len(total), None, _answers(picked, states, workload, rows.speculation),
        lambda mean: _itl(picked, states, mean, rows.speculation),
    )  # fmt: skip
    return Served(
        verdict=np.full(len(total), "saturated"),
        utilization=np.ones(len(total)),
        saturation=total,
        requests_per_s=total,
        concurrency=(rows.count * rows.slots).astype(np.float64),
        in_service=rows.slots.astype(np.float64),
        slot_wait=np.full(len(total), np.nan),
        full=np.ones(len(total)),
        latency=latency,
        classes=classes,
    )


@dataclass(frozen=True)
class _ClosedPoint:
    """One replica with a fixed number of clients; `slot_wait` is what those wait for whom there is
    no slot [s]."""

    clients: Index
    in_service: Array
    rate: Array
    slot_wait: Array
    prompt_wait: Wait


def _closed_replica(
    curves: ServiceTable, rows: Replicas, workload: Workload, clients: Index
) -> _ClosedPoint:
    """Solve clients = mu(n) * (front end + waits before service + S(n)) for n, at most the slots.

    Beside more others no request is answered sooner, although a wait may be shorter: where a batch
    reads all experts anyway, a prompt adds less to a step.
    """
    picked, rate = PickedCurves(curves, rows.layout), curves.rate[rows.layout]
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
    full = needed[row, np.minimum(slots, n[-1]) - 1]
    slot_wait = np.maximum(clients - full, 0.0) / (served * scale)
    return _ClosedPoint(clients, in_service, served * scale, slot_wait, wait)


def _behind_prompts(picked: PickedCurves, rate: Array, workload: Workload) -> tuple[Array, Wait]:
    """Wait behind others' prompts with n in service, and its mean: never more than half the
    others' prompts take."""
    n = np.arange(1, rate.shape[1] + 1)
    arrivals = rate * (n - 1) / n
    busy = np.minimum(arrivals * picked.prompt_time, 0.999)
    rest = picked.own_prefill / 2 * (1 + workload.prompt_tokens.squared_cv)
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
    service = curves.service[rows.layout, rows.slots - 1]
    decode = workload.gaps * curves.tpot[rows.layout, rows.slots - 1] / service
    spread = np.sqrt(workload.work_cv2(decode) * waiting) / rows.saturation
    return np.asarray(spread[:, None] * Z)


def _ttft(
    picked: PickedCurves,
    states: States,
    front_end: Array,
    wait: Wait,
    prompt: Component,
    workload: Workload,
) -> tuple[Latency, Array]:
    """Front end, rest of the step under way, wait behind prompts, own prompt; and how much longer
    than a mean prompt's that is.

    Who waits behind prompts finds no plain step under way: a quantile has the longer of the two.
    """
    length = prompt.mean / workload.prompt_tokens.mean
    own = states.mean(picked.own_prefill)
    of_state = states.quantiles(picked.own_prefill) - own[:, None]
    by_length = states.mean(np.maximum(picked.own_prefill - picked.decode_step, 0.0))
    longer = (length - 1) * by_length
    of_length = length_deviation(prompt) * (length * by_length)[:, None]
    of_step = states.mean(picked.decode_rest)
    rest = of_step * (1 - wait.probability)
    waited = wait.quantiles(LEVELS)
    of_wait = np.maximum(waited, (of_step - rest)[:, None]) - wait.mean[:, None]
    mean = front_end + rest + own + longer + wait.mean
    quantiles = mean[:, None] + root_sum(of_state + of_wait, of_length)
    if prompt.sigma == 0:
        least = np.minimum(front_end + picked.own_prefill[:, 0] + longer, mean)
        quantiles = np.maximum(quantiles, least[:, None])
    return Latency(mean, quantiles), longer


def _tpot(
    picked: PickedCurves,
    states: States,
    answer: Component,
    workload: Workload,
    speculation: Speculation,
) -> Latency:
    """Mean gap of a request: over the states it lives through, and the prompts it meets."""
    steps = speculation.steps(answer.gaps)
    each = steps / answer.gaps
    curve = picked.tpot * (each * workload.gaps / speculation.steps(workload.gaps))
    mean = states.mean(curve)
    rising = np.maximum.accumulate(curve, axis=1)
    of_state = states.quantiles(rising) - mean[:, None]
    share = np.clip(states.mean(picked.mixed_share), 0.0, 1.0)
    longer = np.maximum(states.mean(picked.mixed_step - picked.decode_step), 0.0)
    variance = share * (1 - share) / steps * (longer * each) ** 2
    variance = variance + speculation.squared_cv / steps * mean**2
    of_prompts = np.sqrt(variance)[:, None] * Z
    quantiles = mean[:, None] + root_sum(of_state, of_prompts)
    least = np.minimum(curve[:, 0], mean)
    return Latency(mean, np.maximum(quantiles, least[:, None]))


def _itl(picked: PickedCurves, states: States, mean: Array, speculation: Speculation) -> Latency:
    """Single gaps: above the share of plain steps they are steps with prompts, a Poisson number.

    If a share s of the steps has any, a = -ln(1 - s) come in one on average, and a step that has
    some has a / s. The gap of a level grows with the prompts at that level, at most what fits.
    """
    levels = step_levels(speculation)
    mixed = np.clip(states.mean(picked.mixed_share), 0.0, 1.0 - 1e-9)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        in_mixed = np.where(mixed > 0, (levels - (1 - mixed)) / mixed, 0.0)
    plain = states.quantiles(picked.decode_step, np.clip(levels / (1 - mixed), 0, 1))
    longer = states.quantiles(picked.mixed_step, np.clip(in_mixed, 0, 1))
    arriving = -np.log1p(-mixed)
    with np.errstate(divide="ignore", invalid="ignore"):
        average = np.where(mixed > 0, arriving / mixed, 1.0)
    room = np.maximum(states.mean(picked.room)[:, None], average)
    prompts = np.clip(_poisson_quantiles(arriving, levels), 1.0, room)
    base = states.mean(picked.decode_step)[:, None]
    longer = longer + np.maximum(prompts / average - 1, 0.0) * np.maximum(longer - base, 0.0)
    quantiles = np.where(1 - mixed < levels, longer, plain)
    quantiles = np.where(levels > 0, quantiles, 0.0)
    quantiles = np.where(np.isnan(mean)[:, None], np.nan, quantiles)
    return Latency(mean, np.maximum.accumulate(quantiles, axis=1))


def _poisson_quantiles(mean: Array, levels: Array) -> Array:
    """Poisson quantiles at the levels for means of shape (rows, 1), none above `_MOST_PROMPTS`."""
    count = np.arange(1, _MOST_PROMPTS + 1)
    terms = np.cumsum(np.log(np.maximum(mean, 1e-300)) - np.log(count), axis=1)
    reached = np.cumsum(np.exp(np.concatenate([0 * mean, terms], axis=1) - mean), axis=1)
    return np.asarray((reached[:, :, None] < levels).sum(axis=1), dtype=np.float64)
