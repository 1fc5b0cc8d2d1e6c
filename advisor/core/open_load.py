"""Requests that arrive whether or not others are answered: two chains of each replica.

How many prompts wait at the start of a step changes from step to step (`prompts`), the number of
sequences in service over many of them (`queueing`). The first is solved near the mean of the
second, and says how long a request decodes; that, at every number of sequences, drives the second.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advisor.core.batching import ServiceCurves, ServiceTable
from advisor.core.latency import (
    LEVELS,
    Latency,
    end_to_end,
    length_deviation,
    root_sum,
    skewed_quantiles,
    step_levels,
    undefined,
)
from advisor.core.load import NEAR_SATURATION, Replicas, Served
from advisor.core.occupancy import States
from advisor.core.pooling import levelled_cv2, met_in_service, pooled, pooled_wait
from advisor.core.prompts import MOST_BUSY, PromptChain, Prompts, solve, states_needed
from advisor.core.queueing import Stationary, Wait, slot_wait, stationary
from advisor.core.renewal import met
from advisor.core.workload import BURSTIEST_MODELLED, METRICS, Speculation, Workload

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_SHARES_OF_ROOM = (0.02, 0.06, 0.2, 0.5, 1.0)
"""Steps are evaluated with no prompt, with one, and at these shares of their room for prompts; and
interpolated between."""

_MEMORY_OF_STATE = float(np.sqrt(2 * np.exp(-1.0)))
"""Spread of the state averaged over one request, as a share of its spread at an instant: the
number in service forgets itself over about one service time, and the variance of the average of
such a process over that time is 2 (e^-1 - 1 + 1) = 0.736 of it."""

_MOST_CV2 = BURSTIEST_MODELLED**2
"""Squared variation of arrivals that both chains are solved with at most. Of burstier ones TTFT has
the queue that a burst makes; that they fill a replica more for a while is left out."""

_SHORT = 1.645
"""A prompt so many deviations below the mean, of which 5 % are shorter, is the least looked at."""


@dataclass(frozen=True)
class _Arriving:
    """The rows, arrays of shape (rows,) or (rows, N): their curves at n = 1 ... N, how many
    sequences fit, arrivals at one replica [1/s] and the squared variation of the times between (as
    the chains have it, and in truth), what it serves at most [1/s], how many sequences decode on
    average; and the replicas that share the stream by load, whose times between arrivals have
    `stream_cv2`, or None where each has a random part of it."""

    rate: Array
    decode_step: Array
    mixed_step: Array
    slots: Index
    arrivals: Array
    arrivals_cv2: Array
    burst_cv2: Array
    saturation: Array
    decoding: Array
    shared_by: Index | None
    stream_cv2: float


def split_cv2(arrival_cv: float, replicas: Index) -> Array:
    """Squared variation of arrivals at one of `replicas`: a random split thins a renewal."""
    return np.asarray(1 + (arrival_cv**2 - 1) / replicas)


def open_load(curves: ServiceCurves, rows: Replicas, columns: int, workload: Workload) -> Served:
    """Evaluate rows under an open load, with no more than `columns` sequences in service."""
    offered, count = rows.load * workload.peak_to_mean, len(rows.slots)
    saturation = rows.count * rows.router_efficiency * rows.saturation
    utilization, served = offered / saturation, np.minimum(offered, saturation)
    stable = np.flatnonzero(utilization < 1)
    latency, slot_wait = dict.fromkeys(METRICS, undefined(count)), np.full(count, np.nan)
    in_service, full = rows.slots.astype(np.float64), np.ones(count)
    if len(stable):
        few = rows.take(stable).within(columns)
        arrivals = np.asarray(offered[stable] / (few.count * few.router_efficiency))
        number, slot_wait[stable], found = _below_saturation(
            curves, few, arrivals, columns, workload
        )
        in_service[stable], full[stable] = number.mean - number.queued, number.wait_probability
        latency = found
        if len(stable) < count:
            latency = {name: each.among(stable, count) for name, each in found.items()}
    names = np.where(utilization >= NEAR_SATURATION, "near_saturation", "stable")
    return Served(
        verdict=np.where(utilization < 1, names, "unstable"),
        utilization=utilization,
        saturation=saturation,
        requests_per_s=served,
        concurrency=served * latency["e2e"].mean,
        in_service=in_service,
        slot_wait=slot_wait,
        full=full,
        latency=latency,
    )


def _below_saturation(
    curves: ServiceCurves, rows: Replicas, arrivals: Array, columns: int, workload: Workload
) -> tuple[Stationary, Array, dict[str, Latency]]:
    """The number in replicas with these arrivals each [1/s], the mean wait for a place in the batch
    [s], and the latencies."""
    used = np.bincount(rows.layout) > 0
    local = (np.cumsum(used) - 1)[rows.layout]
    table = curves.table(columns, np.flatnonzero(used))
    rate = table.rate[local]
    steps = rows.speculation.steps(workload.gaps)
    decoding = _mean_decoding(table, local, arrivals, workload.gaps, steps)
    arrivals_cv2 = split_cv2(workload.arrival_cv, rows.count)
    if rows.routing == "least_loaded":
        arrivals_cv2 = levelled_cv2(arrivals_cv2, table, local, decoding, arrivals, rows.count)
    arriving = _Arriving(
        rate=rate,
        decode_step=table.decode_step[local],
        mixed_step=table.mixed_step[local],
        slots=rows.slots,
        arrivals=arrivals,
        arrivals_cv2=np.minimum(arrivals_cv2, _MOST_CV2),
        burst_cv2=arrivals_cv2,
        saturation=rows.saturation,
        decoding=decoding,
        shared_by=rows.count if rows.routing == "least_loaded" else None,
        stream_cv2=workload.arrival_cv**2,
    )
    prompts = _prompt_chain(curves, rows.layout, arriving, workload)
    own = prompts.own()
    mean_longer, mixed_longer = _longer(prompts, arriving)
    decode = _decode_seconds(prompts, arriving, steps, mean_longer)
    number = _occupancy(own[:, None] + decode, prompts, arriving)
    states = States(number.found)
    share = steps * prompts.gap / (own + steps * prompts.gap)
    slot = _slot_wait(number, arriving, workload.work_cv2(share))
    slower = mean_longer / 2 + mixed_longer
    ttft = _ttft(prompts, slot, states, own, slower, rows.front_end, arriving, workload)
    tpot = _tpot(prompts, states, decode, workload, rows.speculation)
    itl = _itl(prompts, states, arriving.decode_step, tpot, rows.speculation)
    latency = {"ttft": ttft, "tpot": tpot, "itl": itl, "e2e": end_to_end(ttft, tpot, workload)}
    return number, slot.mean, latency


def _mean_decoding(
    table: ServiceTable, local: Index, arrivals: Array, gaps: float, steps: float
) -> Array:
    """Sequences that decode if n of them take as long as n take to arrive, (rows,): their decode
    steps, and what the prompts add that come in that time.

    Where as many come as depart, the mean step is longer than the decode step by what they add.
    """
    if not gaps:
        return np.zeros_like(arrivals)
    step, mean = table.decode_step[local], table.tpot[local] * (gaps / steps)
    busy = np.maximum(arrivals[:, None] * (mean - step) / (table.rate[local] * mean), 0.0)
    needed = arrivals[:, None] * steps * step / (1 - np.minimum(busy, MOST_BUSY))
    n = np.arange(1, step.shape[1] + 1)
    row, high = np.arange(len(step)), np.argmax((n >= needed) | (n == n[-1]), axis=1)
    low = np.maximum(high - 1, 0)
    rise = (n[high] - needed[row, high]) - (n[low] - needed[row, low])
    part = (needed[row, low] - n[low]) / np.where(rise > 0, rise, 1.0)
    part = np.minimum(np.maximum(part, 0.0), 1.0)
    between = n[low] + part * (n[high] - n[low])
    return np.asarray(np.where(high == 0, needed[row, 0], between))


def _prompt_chain(
    curves: ServiceCurves, layout: Index, arriving: _Arriving, workload: Workload
) -> PromptChain:
    """The chain of prompts beside as many sequences as a decoding one sees: itself and the mean."""
    decode, arrivals = arriving.decoding + 1, arriving.arrivals
    chunks, room = curves.room(layout, decode)
    numbers = _numbers(room)
    steps = curves.step_times(layout, decode, numbers)
    # Where the first prompt of a step takes longest, as in a pipeline, prompts that come one by one
    # would slow the others down; regular arrivals are taken as random ones there.
    lone = steps[:, 1] - steps[:, 0] > 1.01 * (steps[:, -1] - steps[:, 1]) / np.maximum(room - 1, 1)
    lone &= room > 1
    cv2 = workload.input_tokens.squared_cv
    added = chunks * (steps[:, 1] - steps[:, 0])
    at_once = arrivals * steps[:, 0] / np.maximum(1 - arrivals * added, 0.1)
    at_once = np.minimum(at_once, room)
    full = steps[:, -1] * chunks / room
    ahead, variability = arrivals * full * chunks, (np.maximum(arriving.arrivals_cv2, 1) + cv2) / 2
    burst = met(ahead, arriving.arrivals_cv2) - ahead
    states, group = states_needed(arrivals * full, at_once, burst, variability)
    taken = np.minimum(np.arange(states.max(initial=2)) * group[:, None], room[:, None])
    prompts = Prompts(
        arrivals=arrivals,
        arrivals_cv2=np.where(lone, np.maximum(arriving.arrivals_cv2, 1.0), arriving.arrivals_cv2),
        chunks=chunks,
        room=np.maximum(room // group, 1),
        group=group,
        full=steps[:, -1],
        load=np.minimum(full, 1 / arriving.saturation) * arrivals,
        idle=np.exp(-arriving.decoding),
        length_cv2=cv2,
    )
    return solve(_between(numbers, steps, taken), prompts, states)


def _numbers(room: Index) -> Array:
    """Numbers of prompts to evaluate steps with, none falling, (rows, numbers)."""
    shares = [np.maximum(room * share, 1.0) for share in _SHARES_OF_ROOM]
    return np.stack([0.0 * room, 1.0 + 0.0 * room, *shares], axis=1)


def _between(numbers: Array, values: Array, wanted: Index) -> Array:
    """Each row interpolated between its own numbers, none beyond the last."""
    row = np.arange(len(wanted))[:, None]
    high = (numbers[:, None, 1:-1] < wanted[:, :, None]).sum(axis=2) + 1
    low, first = numbers[row, high - 1], values[row, high - 1]
    part = (wanted - low) / np.maximum(numbers[row, high] - low, 1e-12)
    return np.asarray(first + part * (values[row, high] - first))


def _decode_seconds(
    prompts: PromptChain, arriving: _Arriving, steps: float, longer: Array
) -> Array:
    """Mean time that a request decodes beside n - 1 others [s], (rows, N): as the chain has it, and
    at other numbers each step `longer`, by its decode part and the prompts that come in this."""
    if not steps:
        return np.zeros_like(arriving.decode_step)
    mean = prompts.decode(steps)
    if arriving.shared_by is not None:
        in_service = arriving.decoding + arriving.arrivals * prompts.own()
        plain = steps * prompts.step[:, 0]
        mean = plain + met_in_service(in_service, arriving.shared_by) * (mean - plain)
    seconds = mean[:, None] + steps * longer
    full = np.maximum(prompts.prompts.full[:, None], arriving.mixed_step)
    seconds = np.maximum(seconds, steps * arriving.decode_step)
    return np.asarray(np.minimum(seconds, steps * full))


def _longer(prompts: PromptChain, arriving: _Arriving) -> tuple[Array, Array]:
    """How much longer the mean step and a mixed one are with n in service than as the chain has
    them [s], (rows, N)."""
    row, at = np.arange(len(arriving.slots)), arriving.decoding.astype(np.int64)
    beside = np.minimum(at, arriving.decode_step.shape[1] - 1)
    plain = arriving.decode_step - prompts.step[:, :1]
    mixed = arriving.mixed_step - arriving.mixed_step[row, beside][:, None]
    # With prompts a step is longer by no more: it may have read all experts anyway.
    mixed = np.where(np.abs(mixed) < np.abs(plain), mixed, plain)
    share, stretch = prompts.share[:, :1], prompts.stretch()[:, None]
    return stretch * (share * plain + (1 - share) * mixed), stretch * mixed


def _occupancy(service: Array, prompts: PromptChain, arriving: _Arriving) -> Stationary:
    """The number in service. With all slots taken a replica serves what it does at saturation.

    A burst is as many at once as have their prompts computed in the time that a request is served.
    """
    rate = np.arange(1, service.shape[1] + 1) / service
    row, last = np.arange(len(rate)), arriving.slots - 1
    rate[row, last] = np.maximum(rate[row, last], arriving.rate[row, last])
    alone = service[row, np.minimum(arriving.decoding.astype(np.int64), last)]
    at_once, replicas = alone / prompts.prompts.pace, arriving.shared_by
    if replicas is not None:
        cv2 = min(arriving.stream_cv2, _MOST_CV2)
        peakedness = np.minimum((1 + cv2) / 2, 1 + replicas * at_once)
        return pooled(rate, arriving.slots, arriving.arrivals, replicas, peakedness)
    peakedness = np.minimum((1 + arriving.arrivals_cv2) / 2, 1 + at_once)
    return stationary(rate, arriving.slots, arriving.arrivals, peakedness)


def _slot_wait(number: Stationary, arriving: _Arriving, work_cv2: Array) -> Wait:
    replicas, saturation, arrivals = arriving.shared_by, arriving.saturation, arriving.arrivals
    if replicas is not None:
        variability = np.maximum((arriving.stream_cv2 + work_cv2) / 2, 1e-3)
        return pooled_wait(number, saturation, arrivals, replicas, variability)
    variability = np.maximum((arriving.burst_cv2 + work_cv2) / 2, 1e-3)
    return slot_wait(number, saturation, arrivals, variability)


def _ttft(
    prompts: PromptChain,
    slot: Wait,
    states: States,
    own: Array,
    slower: Array,
    front_end: Array,
    arriving: _Arriving,
    workload: Workload,
) -> Latency:
    """Front end, wait for a slot, and what the chain of prompts says of the rest, `slower` where
    more decode than on average. The least is that of an empty replica; above it quantiles are
    those of a time of this mean and variance, and of the length of one's own prompt."""
    inputs = workload.input_tokens
    queue = np.maximum(prompts.queue(arriving.burst_cv2) + own - prompts.wait, 0.0)
    mean, variance = prompts.wait + queue, prompts.wait_variance + queue**2
    average = states.mean(slower)
    of_state = states.quantiles(slower) - average[:, None]
    more = np.maximum(average, 0.0)
    shortest = np.exp(-_SHORT * inputs.sigma)
    least = np.minimum(prompts.own(shortest), mean + more)
    mean = mean + more
    excess = mean - least
    of_wait = skewed_quantiles(excess, variance) - excess[:, None]
    of_length = length_deviation(inputs) * (own - prompts.step[:, 0])[:, None]
    quantiles = mean[:, None] + root_sum(of_wait, of_state, of_length)
    quantiles = np.maximum(quantiles, least[:, None]) + slot.quantiles(LEVELS)
    return Latency(front_end + mean + slot.mean, front_end[:, None] + quantiles)


def _tpot(
    prompts: PromptChain,
    states: States,
    decode: Array,
    workload: Workload,
    speculation: Speculation,
) -> Latency:
    """Mean gap of a request: over the states it lives through, and the prompts it meets."""
    gaps = workload.gaps
    if not gaps:
        return undefined(len(decode))
    curve = decode / gaps
    mean = states.mean(curve)
    of_state = states.quantiles(curve) - mean[:, None]
    steps = speculation.steps(gaps)
    few = steps / (1 + workload.output_tokens.squared_cv)  # short answers average over less
    drift, single = (np.maximum(x, 1e-300) for x in (prompts.drift, prompts.gap_variance))
    variance = (steps / gaps) ** 2 / (few / drift + 1 / single)
    variance = variance + speculation.squared_cv / few * mean**2
    excess = np.maximum(mean - prompts.step[:, 0] * steps / gaps, 0.0)
    of_prompts = skewed_quantiles(excess, variance) - excess[:, None]
    quantiles = mean[:, None] + root_sum(_MEMORY_OF_STATE * of_state, of_prompts)
    least = np.minimum(curve[:, 0], mean)
    return Latency(mean, np.maximum(quantiles, least[:, None]))


def _itl(
    prompts: PromptChain,
    states: States,
    decode_step: Array,
    tpot: Latency,
    speculation: Speculation,
) -> Latency:
    """Single gaps: below the share of plain steps those of the number in service, above it steps
    with as many prompts as the chain has at that level."""
    plain, levels = prompts.share[:, :1], step_levels(speculation)
    of_plain = np.minimum(np.maximum(levels / np.maximum(plain, 1e-9), 0.0), 1.0)
    few = states.quantiles(decode_step, of_plain)
    slower = states.mean(decode_step) - prompts.step[:, 0]
    longer = prompts.gap_quantiles(levels) + slower[:, None]
    quantiles = np.where(levels > 0, np.where(plain < levels, longer, few), 0.0)
    quantiles = np.where(np.isnan(tpot.mean)[:, None], np.nan, quantiles)
    return Latency(tpot.mean, np.maximum.accumulate(quantiles, axis=1))
