"""Requests that arrive whether or not others are answered: two chains of each replica.

How many prompts wait at the start of a step changes from step to step (`prompts`), the number of
sequences in service over many of them (`queueing`). The first is solved near the mean of the
second, and says how long a request decodes; that, at every number of sequences, drives the second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from advisor.core.batching import ServiceCurves, ServiceTable
from advisor.core.class_latency import CLASS_METRICS, Latencies, latencies
from advisor.core.latency import (
    LEVELS,
    Latency,
    length_deviation,
    root_sum,
    skewed_quantiles,
    step_levels,
    undefined,
)
from advisor.core.lengths import Component, RequestClass
from advisor.core.load import Replicas, Served, open_verdict
from advisor.core.occupancy import States
from advisor.core.pooling import levelled_cv2, met_in_service, pooled, pooled_wait
from advisor.core.prompts import MOST_BUSY, Kind, PromptChain, Prompts, solve, states_needed
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

_FEW = 4
"""Where a step has room for so many prompts, a part of one more is not looked at."""

_MOST_STALLED = 1.5
"""How much arrivals count for more than one at most, by the departures that their prompts hold up:
where these fill most steps, more of them wait before they are served; as simulated."""

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
    latency: Latencies = dict.fromkeys(METRICS, undefined(count))
    classes: Mapping[str, Latencies] = {
        one.name: dict.fromkeys(CLASS_METRICS, undefined(count)) for one in workload.classes
    }
    slot_wait = np.full(count, np.nan)
    in_service, full = rows.slots.astype(np.float64), np.ones(count)
    if len(stable):
        few = rows.take(stable).within(columns)
        arrivals = np.asarray(offered[stable] / (few.count * few.router_efficiency))
        number, slot_wait[stable], latency, classes = _below_saturation(
            curves, few, arrivals, columns, workload
        )
        in_service[stable], full[stable] = number.mean - number.queued, number.wait_probability
        if len(stable) < count:
            latency = _among(latency, stable, count)
            classes = {name: _among(each, stable, count) for name, each in classes.items()}
    return Served(
        verdict=open_verdict(utilization),
        utilization=utilization,
        saturation=saturation,
        requests_per_s=served,
        concurrency=served * latency["e2e"].mean,
        in_service=in_service,
        slot_wait=slot_wait,
        full=full,
        latency=latency,
        classes=classes,
    )


def _among(latency: Latencies, rows: Index, count: int) -> Latencies:
    return {name: each.among(rows, count) for name, each in latency.items()}


def _below_saturation(
    curves: ServiceCurves, rows: Replicas, arrivals: Array, columns: int, workload: Workload
) -> tuple[Stationary, Array, Latencies, Mapping[str, Latencies]]:
    """The number in replicas with these arrivals each [1/s], the mean wait for a place in the batch
    [s], and the latencies of all requests and of each class."""
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
    prompts = _prompt_chain(curves, rows.layout, arriving, workload, rows.speculation)
    own = _own(curves, rows.layout, arriving, prompts, workload)
    mean_own = _mean_own(own, workload)
    share = steps * prompts.gap / (mean_own + steps * prompts.gap)
    arriving = _beside(arriving, share)
    mean_longer, mixed_longer = _longer(prompts, arriving, share)
    answers = _answers(prompts, arriving, mean_own, workload, rows.speculation)
    alone = _mean_answer(answers, workload, np.zeros_like(arrivals))
    decode = _decode_seconds(prompts, arriving, alone, steps, mean_longer)
    number = _occupancy(mean_own[:, None] + decode, prompts, arriving)
    states = States(number.found)
    slot = _slot_wait(number, arriving, workload.work_cv2(share))
    waits = _waits(prompts, slot, states, mean_longer / 2 + mixed_longer, arriving)
    seen = _steps_seen(states, decode, alone, steps)
    latency, classes = latencies(
        workload, len(alone),
        lambda one: _ttft(waits, prompts, own[one], rows.front_end, one),
        lambda one, answer: _tpot(seen, prompts, answers[one, answer], answer, rows.speculation),
        lambda mean: _itl(prompts, states, arriving.decode_step, mean, rows.speculation),
    )  # fmt: skip
    return number, slot.mean, latency, classes


def _mean_decoding(
    table: ServiceTable, local: Index, arrivals: Array, gaps: float, steps: float
) -> Array:
    """Sequences that decode if n of them take as long as n take to arrive, (rows,): their decode
    steps, and what the prompts add that come in that time.

    With n in service the mean step is longer than the decode step by the prompts of the n - 1
    others; those that arrive come from all.
    """
    if not gaps:
        return np.zeros_like(arrivals)
    step, mean = table.decode_step[local], table.tpot[local] * (gaps / steps)
    n = np.arange(1, step.shape[1] + 1)
    prompt = (mean - step) / (table.rate[local] * mean) * n / np.maximum(n - 1, 1)
    prompt[:, 0] = table.own_prefill[local, 0] * (1 - step[:, 0] / table.mixed_step[local, 0])
    busy = np.maximum(arrivals[:, None] * prompt, 0.0)
    needed = arrivals[:, None] * steps * step / (1 - np.minimum(busy, MOST_BUSY))
    row, high = np.arange(len(step)), np.argmax((n >= needed) | (n == n[-1]), axis=1)
    low = np.maximum(high - 1, 0)
    rise = (n[high] - needed[row, high]) - (n[low] - needed[row, low])
    part = (needed[row, low] - n[low]) / np.where(rise > 0, rise, 1.0)
    part = np.minimum(np.maximum(part, 0.0), 1.0)
    between = n[low] + part * (n[high] - n[low])
    return np.asarray(np.where(high == 0, needed[row, 0], between))


def _prompt_chain(
    curves: ServiceCurves, layout: Index, arriving: _Arriving, workload: Workload,
    speculation: Speculation,
) -> PromptChain:  # fmt: skip
    """The chain of prompts beside as many sequences as a decoding one sees: itself and the mean."""
    decode, arrivals = arriving.decoding + 1, arriving.arrivals
    chunks, room = curves.room(layout, decode, workload)
    numbers = _numbers(room)
    steps = curves.step_times(layout, decode, numbers, workload)
    # Where the first prompt of a step takes longest, as in a pipeline, prompts that come one by one
    # would slow the others down; regular arrivals are taken as random ones there.
    lone = (steps[:, 1] - steps[:, 0]) * (room - 1) > 1.01 * (steps[:, -1] - steps[:, 1])
    lone &= room > 1
    lengths = workload.prompt_tokens
    cv2 = lengths.squared_cv
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
        room=np.where(room < _FEW * group, np.maximum(room / group, 1.0), np.rint(room / group)),
        group=group,
        full=steps[:, -1],
        load=np.minimum(full, 1 / arriving.saturation) * arrivals,
        idle=np.exp(-arriving.decoding),
        length_cv2=cv2,
        lengths=lengths if lengths.mixture else None,
        kinds=_kinds(workload, speculation),
    )
    return solve(_between(numbers, steps, taken), prompts, states)


def _kinds(workload: Workload, speculation: Speculation) -> tuple[Kind, ...]:
    """The classes as the chain of prompts tells them apart."""
    mix, mean = workload.mix, workload.prompt_tokens.mean
    return tuple(
        Kind(
            one.prompt_tokens.mean / mean if mix[1:] else 1.0,
            tuple(
                (one.share * each.share, speculation.steps(each.gaps))
                for each in one.output_tokens.grouped
                if each.gaps
            ),
        )
        for one in mix
    )


def _numbers(room: Array) -> Array:
    """Numbers of prompts to evaluate steps with, none falling, (rows, numbers)."""
    shares = [np.maximum(room * share, 1.0) for share in _SHARES_OF_ROOM]
    return np.stack([0.0 * room, 1.0 + 0.0 * room, *shares], axis=1)


def _between(numbers: Array, values: Array, wanted: Array) -> Array:
    """Each row interpolated between its own numbers, none beyond the last."""
    row = np.arange(len(wanted))[:, None]
    high = (numbers[:, None, 1:-1] < wanted[:, :, None]).sum(axis=2) + 1
    low, first = numbers[row, high - 1], values[row, high - 1]
    part = (wanted - low) / np.maximum(numbers[row, high] - low, 1e-12)
    return np.asarray(first + part * (values[row, high] - first))


def _own(
    curves: ServiceCurves, layout: Index, arriving: _Arriving, prompts: PromptChain,
    workload: Workload,
) -> dict[RequestClass, Array]:  # fmt: skip
    """Time that prompts of each class and length take alone beside the mean number that decode
    [s], (rows,)."""
    each = [part for one in workload.mix for part in one.by_prompt]
    if len(each) == 1:
        return {each[0]: prompts.own()}
    return {one: curves.own_prompt(layout, arriving.decoding + 1, one) for one in each}


def _mean_own(own: Mapping[RequestClass, Array], workload: Workload) -> Array:
    if len(own) == 1:
        return next(iter(own.values()))
    terms = [one.share * each.share * own[each] for one in workload.mix for each in one.by_prompt]
    return np.asarray(sum(terms))


def _answers(
    prompts: PromptChain, arriving: _Arriving, own: Array, workload: Workload,
    speculation: Speculation,
) -> dict[tuple[RequestClass, Component], Array]:  # fmt: skip
    """Mean time that the answers of each class and length that have gaps decode [s], (rows,), as
    the chain has it, those of log-normal lengths also in parts; of replicas that share the stream
    by load, with as many prompts as they meet."""
    replicas, met_here = arriving.shared_by, None
    if replicas is not None:
        met_here = met_in_service(arriving.decoding + arriving.arrivals * own, replicas)
    found = {}
    for kind, one in enumerate(workload.mix):
        for answer in {*one.output_tokens.grouped, *one.output_tokens.parts}:
            if answer.gaps:
                steps = speculation.steps(answer.gaps)
                seconds, plain = prompts.decode(steps, kind), steps * prompts.step[:, 0]
                if met_here is not None:
                    seconds = plain + met_here * (seconds - plain)
                found[one, answer] = seconds
    return found


def _mean_answer(
    answers: Mapping[tuple[RequestClass, Component], Array], workload: Workload, none: Array
) -> Array:
    """Mean time that requests decode [s], (rows,): 0 of those of one token."""
    each = ((one, answer) for one in workload.mix for answer in one.output_tokens.grouped)
    terms = (one.share * a.share * answers[one, a] for one, a in each if a.gaps)
    return sum(terms, none)


def _decode_seconds(
    prompts: PromptChain, arriving: _Arriving, alone: Array, steps: float, longer: Array
) -> Array:
    """Mean time that a request decodes beside n - 1 others [s], (rows, N): as the chain has it, and
    at other numbers each step `longer`, by its decode part and the prompts that come in this."""
    if not steps:
        return np.zeros_like(arriving.decode_step)
    seconds = alone[:, None] + steps * longer
    full = np.maximum(prompts.prompts.full[:, None], arriving.mixed_step)
    seconds = np.maximum(seconds, steps * arriving.decode_step)
    return np.asarray(np.minimum(seconds, steps * full))


def _beside(arriving: _Arriving, share: Array) -> _Arriving:
    """The same with the steps that a decoding sequence sees with n in service: of the n - 1 others
    only a `share` decodes."""
    last = arriving.decode_step.shape[1] - 1
    others = np.arange(last + 1) * share[:, None]
    low = np.minimum(others.astype(np.int64), max(last - 1, 0))
    high, part = np.minimum(low + 1, last), others - low

    def between(curve: Array) -> Array:
        below, above = (np.take_along_axis(curve, at, axis=1) for at in (low, high))
        return np.asarray(below + part * (above - below))

    decode, mixed = between(arriving.decode_step), between(arriving.mixed_step)
    return replace(arriving, decode_step=decode, mixed_step=mixed)


def _longer(prompts: PromptChain, arriving: _Arriving, share: Array) -> tuple[Array, Array]:
    """How much longer the mean step and a mixed one are with n in service, of which a `share`
    decodes, than as the chain has them [s], (rows, N)."""
    row, at = np.arange(len(arriving.slots)), arriving.decoding / np.maximum(share, 1e-9)
    at = np.minimum(at, arriving.decode_step.shape[1]).astype(np.int64)
    beside = np.minimum(at, arriving.decode_step.shape[1] - 1)
    plain = arriving.decode_step - prompts.step[:, :1]
    mixed = arriving.mixed_step - arriving.mixed_step[row, beside][:, None]
    # With prompts a step is longer by no more: it may have read all experts anyway.
    mixed = np.where(np.abs(mixed) < np.abs(plain), mixed, plain)
    alone, stretch = prompts.share[:, :1], prompts.stretch()[:, None]
    return stretch * (alone * plain + (1 - alone) * mixed), stretch * mixed


def _occupancy(service: Array, prompts: PromptChain, arriving: _Arriving) -> Stationary:
    """The number in service. With all slots taken a replica serves what it does at saturation.

    A burst is as many at once as have their prompts computed in the time that a request is served.
    An arrival is one more, and its prompt keeps others from departing: of any number of them more
    than their part of the time would tell.
    """
    rate = np.arange(1, service.shape[1] + 1) / service
    row, last = np.arange(len(rate)), arriving.slots - 1
    rate[row, last] = np.maximum(rate[row, last], arriving.rate[row, last])
    alone = service[row, np.minimum(arriving.decoding.astype(np.int64), last)]
    at_once, replicas = alone / prompts.prompts.pace, arriving.shared_by
    stalls = np.minimum(prompts.stretch(), _MOST_STALLED) ** 2
    if replicas is not None:
        cv2 = min(arriving.stream_cv2, _MOST_CV2)
        peakedness = np.minimum((1 + stalls * cv2) / 2, 1 + replicas * at_once)
        return pooled(rate, arriving.slots, arriving.arrivals, replicas, peakedness)
    peakedness = np.minimum((1 + stalls * arriving.arrivals_cv2) / 2, 1 + at_once)
    return stationary(rate, arriving.slots, arriving.arrivals, peakedness)


def _slot_wait(number: Stationary, arriving: _Arriving, work_cv2: Array) -> Wait:
    replicas, saturation, arrivals = arriving.shared_by, arriving.saturation, arriving.arrivals
    if replicas is not None:
        variability = np.maximum((arriving.stream_cv2 + work_cv2) / 2, 1e-3)
        return pooled_wait(number, saturation, arrivals, replicas, variability)
    variability = np.maximum((arriving.burst_cv2 + work_cv2) / 2, 1e-3)
    return slot_wait(number, saturation, arrivals, variability)


@dataclass(frozen=True)
class _Waits:
    """What every prompt waits for, arrays of shape (rows,) or (rows, levels) [s]: mean time to the
    first token of a mean prompt, the deviations of the number in service from it, the variance of
    the waits, and the wait for a slot."""

    mean: Array
    of_state: Array
    variance: Array
    slot: Wait


def _waits(
    prompts: PromptChain, slot: Wait, states: States, slower: Array, arriving: _Arriving
) -> _Waits:
    """What the chain of prompts says, `slower` where more decode than on average."""
    queue = np.maximum(prompts.queue(arriving.burst_cv2) + prompts.own() - prompts.wait, 0.0)
    average = states.mean(slower)
    of_state = states.quantiles(slower) - average[:, None]
    mean = prompts.wait + queue + np.maximum(average, 0.0)
    return _Waits(mean, of_state, prompts.wait_variance + queue**2, slot)


def _ttft(
    waits: _Waits, prompts: PromptChain, own: Array, front_end: Array, one: RequestClass
) -> Latency:
    """Front end, waits and one's own prompt. The least is that of an empty replica; above it
    quantiles are those of a time of this mean and variance, and of the length of the prompt."""
    (prompt,) = one.prompt_tokens.components
    mean, by_length = waits.mean + (own - prompts.own()), own - prompts.step[:, 0]
    least = np.minimum(prompts.step[:, 0] + by_length * np.exp(-_SHORT * prompt.sigma), mean)
    excess = mean - least
    of_wait = skewed_quantiles(excess, waits.variance) - excess[:, None]
    of_length = length_deviation(prompt) * by_length[:, None]
    quantiles = mean[:, None] + root_sum(of_wait, waits.of_state, of_length)
    quantiles = np.maximum(quantiles, least[:, None]) + waits.slot.quantiles(LEVELS)
    return Latency(front_end + mean + waits.slot.mean, front_end[:, None] + quantiles)


@dataclass(frozen=True)
class _Steps:
    """The step that a decoding sequence sees on average [s], by the number in service (rows, N);
    its mean over these, its quantiles' deviations, and the mean that the chain of prompts has, for
    answers of a mean length."""

    curve: Array
    mean: Array
    of_state: Array
    alone: Array


def _steps_seen(states: States, decode: Array, alone: Array, steps: float) -> _Steps:
    each = 1 / max(steps, 1e-300)  # of answers that are all one token no step is seen
    curve = decode * each
    mean = states.mean(curve)
    return _Steps(curve, mean, states.quantiles(curve) - mean[:, None], alone * each)


def _tpot(
    seen: _Steps, prompts: PromptChain, alone: Array, answer: Component, speculation: Speculation
) -> Latency:
    """Mean gap of a request: over the states it lives through, and the prompts it meets, of which
    short answers meet more, close behind their own prompt. `alone` is how long it decodes as the
    chain of prompts has it [s]."""
    steps = speculation.steps(answer.gaps)
    each = steps / answer.gaps
    mean = each * (seen.mean + alone / steps - seen.alone)
    few = steps / (1 + answer.squared_cv)  # short answers average over less
    drift, single = (np.maximum(x, 1e-300) for x in (prompts.drift, prompts.gap_variance))
    variance = each**2 / (max(few - 1, 0.0) / drift + 1 / single)
    variance = variance + speculation.squared_cv / few * mean**2
    excess = np.maximum(mean - prompts.step[:, 0] * each, 0.0)
    of_prompts = skewed_quantiles(excess, variance) - excess[:, None]
    quantiles = mean[:, None] + root_sum(_MEMORY_OF_STATE * each * seen.of_state, of_prompts)
    least = np.minimum(each * seen.curve[:, 0], mean)
    return Latency(mean, np.maximum(quantiles, least[:, None]))


def _itl(
    prompts: PromptChain,
    states: States,
    decode_step: Array,
    mean: Array,
    speculation: Speculation,
) -> Latency:
    """Single gaps: below the share of plain steps those of the number in service, above it steps
    with as many prompts as the chain has at that level."""
    plain, levels = prompts.seen[:, :1], step_levels(speculation)
    of_plain = np.minimum(np.maximum(levels / np.maximum(plain, 1e-9), 0.0), 1.0)
    few = states.quantiles(decode_step, of_plain)
    slower = states.mean(decode_step) - prompts.step[:, 0]
    longer = prompts.gap_quantiles(levels) + slower[:, None]
    quantiles = np.where(levels > 0, np.where(plain < levels, longer, few), 0.0)
    quantiles = np.where(np.isnan(mean)[:, None], np.nan, quantiles)
    return Latency(mean, np.maximum.accumulate(quantiles, axis=1))
