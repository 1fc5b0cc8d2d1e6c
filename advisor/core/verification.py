"""Plans simulated under a request's own load, replica by replica.

The closed forms know a steady state. A burst has none, so that its plans are simulated as a
benchmark would run them, from all clients at once to the last answer. Any other load is simulated
to check the closed forms: without its warm-up and its end, which no steady state has.

Requests are drawn from a fixed seed: the same question has the same answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain, zip_longest

import numpy as np
from numpy.typing import NDArray

from advisor.core.candidates import Candidates
from advisor.core.decision import Decision
from advisor.core.evaluation import Evaluator
from advisor.core.latency import LEVELS, Latency
from advisor.core.load import Served
from advisor.core.open_load import split_cv2
from advisor.core.replica import ReplicaModel, replica_model
from advisor.core.requests import Iterations, Requests, Run, sample_requests
from advisor.core.routing import simulate_replicas
from advisor.core.simulator import simulate
from advisor.core.workload import Workload

Array = NDArray[np.float64]
Index = NDArray[np.int64]

MOST_SIMULATED = 20
"""Plans of a burst that are simulated, at most."""

MOST_VERIFIED = 10
"""Plans that are checked by simulation, at most."""

MOST_REPLAYED = 4
"""Plans that a trace is replayed on, at most."""

MEASURED = 2000
"""Requests measured of a steady load: the p95 of exponential waits is then right within 4 %."""

MEASURED_A_REPLICA = 250
"""Requests measured of each of the replicas that share a stream by load, at least."""

MOST_TOGETHER = 16
"""So many of the replicas that share a stream by load are simulated: more level it little more."""

MOST_WORK = 300_000.0
"""Work that the simulations of a request may take, as `Work` counts it: some seconds."""

_SEED = 20_240_601
_SEQUENCES_A_UNIT = 500
_LEAST_WARM_UP = 200


class TooMuchWork(Exception):
    """A simulation takes more work than is left."""


@dataclass
class Work:
    """What is left of the work of a request: a request and a step time count one each, the latter
    more where many sequences run. Counted, not timed, so that an answer never depends on speed."""

    left: float = MOST_WORK

    def take(self, units: float) -> None:
        """Raises TooMuchWork when nothing is left."""
        self.left -= units
        if self.left < 0:
            raise TooMuchWork

    def counting(self, replica: ReplicaModel) -> ReplicaModel:
        """The replica, its step times counted."""

        def step(decode: float, *others: float) -> float:
            self.take(1 + decode / _SEQUENCES_A_UNIT)
            return replica.step(decode, *others)

        return replace(replica, step=step)


@dataclass(frozen=True)
class Simulated:
    """What was measured of so many requests, as one row of an evaluation, and how often a request
    was preempted on average; or the `reason` why nothing was."""

    requests: int = 0
    preemptions: float | None = None
    served: Served | None = None
    reason: str | None = None


@dataclass(frozen=True)
class _Part:
    """A replica's run and how many replicas that the router reaches are alike. Measured are the
    requests of `counted` and the steps between two moments [s], in which `output_tokens` are
    answered."""

    run: Run
    replicas: float
    counted: slice
    start_s: float
    end_s: float
    output_tokens: float


# A burst


class BurstEvaluator(Evaluator):
    """Evaluates plans by simulating the burst: the first of `best`, as (layout, replicas), at least
    one and as many as half of the work allows; the other half is for plans compared with them."""

    def __init__(self, steady: Evaluator, best: Sequence[tuple[int, int]]) -> None:
        super().__init__(steady.request, steady.layouts, steady.settings, steady.memory)
        self.best, self.work = best, Work()
        self._known: dict[tuple[int, int], Served | None] = {}

    def candidates(self) -> Candidates:
        """The best plans. TooMuchWork when there is enough for none."""
        chosen: list[tuple[int, int]] = []
        for plan in self.best:
            if chosen and self.work.left < MOST_WORK / 2:
                break
            if self._simulated(*plan):
                chosen.append(plan)
        if self.best and not chosen:
            raise TooMuchWork
        return self.at(chosen)

    def at(self, plans: Sequence[tuple[int, int]]) -> Candidates:
        """Those of the plans that there is enough work left for, in this order."""
        return super().at([plan for plan in plans if self._simulated(*plan)])

    def serve(self, layout: Index, serving: Index, load: Array | None = None) -> Served:
        """Rows that were simulated before, under the load of the request."""
        spare = self.request.limits.spare_replicas
        pairs = zip(layout.tolist(), serving.tolist(), strict=True)
        rows = [self._known[i, n + spare] for i, n in pairs]
        return (
            Served.joined([row for row in rows if row]) if rows else super().serve(layout, serving)
        )

    def _simulated(self, layout: int, replicas: int) -> Served | None:
        if (layout, replicas) not in self._known:
            serving = replicas - self.request.limits.spare_replicas
            try:
                row = simulate_burst(self, layout, serving, self.work).served
            except TooMuchWork:
                row = None
            self._known[layout, replicas] = row
        return self._known[layout, replicas]


def simulate_burst(evaluator: Evaluator, layout: int, serving: int, work: Work) -> Simulated:
    """A benchmark of `serving` replicas from its first request to its last answer. Clients stay
    with their replica; where lengths vary, each replica draws its own. TooMuchWork."""
    workload = evaluator.request.workload
    assert workload.concurrency is not None
    a_client = workload.burst_requests / workload.concurrency
    varied = workload.input_tokens.squared_cv or workload.output_tokens.squared_cv
    replica, parts = _replica(evaluator, layout), list[_Part]()
    for clients, count in _clients(workload.concurrency, serving):
        copies = count if varied else 1
        for _ in range(copies):
            load = replace(workload, concurrency=clients)
            rng = np.random.default_rng([_SEED, len(parts)])
            total = max(round(a_client * clients), clients)
            work.take(total)
            requests = sample_requests(load, total, rng)
            run = _run(evaluator, replica, requests, work)
            tokens = float(run.requests.output_tokens.sum())
            alike = _effective(evaluator, count) / copies
            parts.append(_Part(run, alike, slice(0, total), 0.0, float(run.done_s.max()), tokens))
    seconds = max(part.end_s for part in parts)
    parts = [replace(part, end_s=seconds) for part in parts]
    in_flight = sum(part.replicas * part.run.e2e.sum() for part in parts) / seconds
    return _measured(evaluator, layout, serving, parts, in_flight)


# A steady load


def simulate_steady(
    evaluator: Evaluator, layout: int, serving: int, closed_form: Served, work: Work
) -> Simulated:
    """`serving` replicas under the load of the request, warm-up and end cut off; `closed_form` is
    what was computed of them. A plan that is unstable, or takes too much work, has a reason."""
    if evaluator.request.serving.speculative.draft_tokens:
        return Simulated(reason="Speculative decoding is not simulated.")
    trace = evaluator.request.workload.trace
    if closed_form.verdict[0] == "unstable" and trace is None:
        return Simulated(reason="The load exceeds what the plan serves: its queue has no end.")
    mode = evaluator.request.workload.mode
    replica = _replica(evaluator, layout)
    levelled = mode == "open" and evaluator.request.serving.routing == "least_loaded"
    drawn = {"open": _open, "closed": _closed, "saturated": _saturated}[mode]
    try:
        if trace is not None:
            requests = trace.requests(evaluator.request.workload.prefix_cache_hit)
            work.take(len(requests))
            parts = _routed(evaluator, replica, requests, serving, work, 0, 0)
        elif levelled and serving > 1:
            parts = _levelled(evaluator, replica, serving, closed_form, work)
        else:
            parts = [
                _steady_part(_run(evaluator, replica, requests, work), replicas, first, last)
                for requests, replicas, first, last in drawn(
                    evaluator, layout, serving, closed_form, work
                )
            ]
    except TooMuchWork:
        return Simulated(reason=f"A simulation takes more than the {MOST_WORK:,.0f} steps allowed.")
    concurrency = float(closed_form.concurrency[0])
    if trace is not None:
        seconds = parts[0].end_s - parts[0].start_s
        concurrency = sum(float(part.run.e2e.sum()) for part in parts) / seconds
    found = _measured(evaluator, layout, serving, parts, concurrency)
    if mode != "saturated" or found.served is None:
        return found
    undefined = Latency(np.full(1, np.nan), np.full((1, len(LEVELS)), np.nan))
    none = {"ttft": undefined, "e2e": undefined}
    classes = {name: {**each, **none} for name, each in found.served.classes.items()}
    latency = {**found.served.latency, **none}
    return replace(found, served=replace(found.served, latency=latency, classes=classes))


Drawn = Iterator[tuple[Requests, float, int, int]]
"""Requests of a replica, how many replicas are alike, and how many requests to leave out at the
beginning and at the end."""


def _open(evaluator: Evaluator, _: int, serving: int, closed_form: Served, work: Work) -> Drawn:
    """Arrivals at one replica: a random split has more of them come at random. The more they vary,
    the longer it takes to see as many busy times as of others."""
    workload, replicas = evaluator.request.workload, _effective(evaluator, serving)
    assert workload.request_rate_per_s is not None
    in_flight = math.ceil(float(closed_form.concurrency[0]) / replicas)
    cv2 = float(split_cv2(workload.arrival_cv, np.array(serving)))
    rate = workload.request_rate_per_s / replicas
    load = replace(workload, request_rate_per_s=rate, arrival_cv=math.sqrt(cv2))
    turns = _turns(in_flight, workload)
    first, last = max(_LEAST_WARM_UP, 3 * turns), 2 * turns
    rng = np.random.default_rng(_SEED)
    total = first + math.ceil(MEASURED * max(cv2, 1.0)) + last
    yield _drawn(load, total, rng, work), replicas, first, last


def _levelled(
    evaluator: Evaluator, replica: ReplicaModel, serving: int, closed_form: Served, work: Work
) -> list[_Part]:
    """Replicas under one stream, whose router knows how many requests each has; of many, a group
    under its share. As in the closed form, a router that reaches a part of them loads each more."""
    workload, count = evaluator.request.workload, min(serving, MOST_TOGETHER)
    assert workload.request_rate_per_s is not None
    share = count / _effective(evaluator, serving)
    load = replace(workload, request_rate_per_s=workload.request_rate_per_s * share)
    turns = _turns(math.ceil(float(closed_form.concurrency[0]) * share), workload)
    first, last = max(_LEAST_WARM_UP, 3 * turns), 2 * turns
    measured = max(MEASURED, MEASURED_A_REPLICA * count) * max(workload.arrival_cv**2, 1.0)
    rng = np.random.default_rng(_SEED)
    requests = _drawn(load, first + math.ceil(measured) + last, rng, work)
    parts = _routed(evaluator, replica, requests, count, work, first, last)
    return [replace(part, replicas=1 / share) for part in parts]


def _routed(
    evaluator: Evaluator, replica: ReplicaModel, requests: Requests, serving: int, work: Work,
    first: int, last: int,
) -> list[_Part]:  # fmt: skip
    """The run of each replica that the router sends any of the requests to; so many of them are
    left out at the beginning and at the end."""
    _refuse_hopeless(requests, replica, work)
    requests = cut_to_cache(requests, replica, _longest(evaluator.request.workload))
    routing, rng = evaluator.request.serving.routing, np.random.default_rng(_SEED + 1)
    runs = simulate_replicas(work.counting(replica), requests, serving, routing, rng)
    done, end = np.sort(np.concatenate([run.done_s for run in runs])), len(requests) - last
    assert requests.sent_s is not None
    sent_s = requests.sent_s
    start_s, end_s = float(done[first - 1] if first else sent_s[0]), float(done[end - 1])
    parts = []
    for run in runs:
        low = int(np.searchsorted(run.sent_s, sent_s[first]))
        high = int(np.searchsorted(run.sent_s, sent_s[end])) if last else len(run.sent_s)
        within = (run.done_s > start_s) & (run.done_s <= end_s)
        tokens = float(run.requests.output_tokens[within].sum())
        parts.append(_Part(run, 1.0, slice(low, high), start_s, end_s, tokens))
    return parts


def _closed(evaluator: Evaluator, _: int, serving: int, __: Served, work: Work) -> Drawn:
    workload = evaluator.request.workload
    assert workload.concurrency is not None
    for clients, count in _clients(workload.concurrency, serving):
        load = replace(workload, concurrency=clients)
        requests, first, last = _loop(load, clients, work)
        yield requests, _effective(evaluator, count), first, last


def _saturated(evaluator: Evaluator, layout: int, serving: int, _: Served, work: Work) -> Drawn:
    """As many requests as will be answered wait from the beginning."""
    slots = int(evaluator.slots[layout])
    requests, first, last = _loop(evaluator.request.workload, slots, work)
    yield requests, _effective(evaluator, serving), first, last


def _loop(load: Workload, at_once: int, work: Work) -> tuple[Requests, int, int]:
    """Requests of a steady loop of so many at once, and how many to leave out at either end."""
    rng = np.random.default_rng(_SEED)
    turns = _turns(at_once, load)
    total = 2 * at_once + max(MEASURED, 3 * turns) + turns
    return _spread(_drawn(load, total, rng, work), at_once, rng), 2 * at_once, turns


def _turns(at_once: int, workload: Workload) -> int:
    """Requests that are answered while the longest of so many at once are: where classes differ,
    more than so many."""
    output = workload.output_tokens
    return math.ceil(at_once * max(one.mean for one in output.components) / output.mean)


def _drawn(workload: Workload, count: int, rng: np.random.Generator, work: Work) -> Requests:
    """Requests of a long run, with exactly the rate and the mean lengths that were asked for."""
    work.take(count)
    requests = sample_requests(workload, count, rng)
    sent_s, inputs, outputs = requests.sent_s, requests.input_tokens, requests.output_tokens
    if sent_s is not None and workload.request_rate_per_s is not None:
        rate = workload.request_rate_per_s * workload.peak_to_mean
        sent_s = sent_s * (count / rate / sent_s[-1])
    new, of = np.empty_like(inputs), requests.request_class
    for number, one in enumerate(workload.mix):
        mine = np.full(count, True) if of is None else of == number
        if mine.any():
            inputs[mine] = _scaled(inputs[mine], one.input_tokens.mean / inputs[mine].mean())
            outputs[mine] = _scaled(outputs[mine], one.output_tokens.mean / outputs[mine].mean())
            new[mine] = _scaled(inputs[mine], 1 - one.prefix_cache_hit)
    return replace(
        requests, input_tokens=inputs, new_input_tokens=new, output_tokens=outputs, sent_s=sent_s
    )


def _scaled(tokens: Index, factor: float) -> Index:
    return np.asarray(np.maximum(np.rint(tokens * factor), 1), dtype=np.int64)


def _spread(requests: Requests, first: int, rng: np.random.Generator) -> Requests:
    """The first requests as a steady loop would be found: long answers more often than they come,
    as they take longer, and of each a random rest. With equal lengths it would stay in step."""
    outputs, count = requests.output_tokens, len(requests)
    found = np.arange(count)
    if (outputs != outputs[0]).any():
        found[:first] = rng.choice(count, first, p=outputs / outputs.sum())
    outputs = outputs[found]
    outputs[:first] = np.ceil(outputs[:first] * (1 - rng.random(first)))
    of = requests.request_class
    return replace(
        requests,
        input_tokens=requests.input_tokens[found],
        new_input_tokens=requests.new_input_tokens[found],
        output_tokens=outputs,
        request_class=None if of is None else of[found],
    )


def _steady_part(run: Run, replicas: float, first: int, last: int) -> _Part:
    end = len(run.requests) - last
    done = np.sort(run.done_s)
    start_s, end_s = float(done[first - 1]), float(done[end - 1])
    within = (run.done_s > start_s) & (run.done_s <= end_s)
    tokens = float(run.requests.output_tokens[within].sum())
    return _Part(run, replicas, slice(first, end), start_s, end_s, tokens)


# Both


def _effective(evaluator: Evaluator, serving: int) -> float:
    """Replicas that the router makes use of."""
    return serving * evaluator.request.serving.router_efficiency


def _clients(concurrency: int, replicas: int) -> list[tuple[int, int]]:
    """Clients of a replica, and how many replicas have so many: none has two more than another."""
    few, extra = divmod(concurrency, replicas)
    groups = [(few, replicas - extra), (few + 1, extra)]
    return [(clients, count) for clients, count in groups if clients and count]


def _replica(evaluator: Evaluator, layout: int) -> ReplicaModel:
    """A replica; one that fits by less than the error of the estimate holds one request."""
    request, on = evaluator.request, evaluator.layouts[layout]
    front_end_s = float(evaluator.front_end[layout])
    replica = replica_model(request.model, on, evaluator.settings[layout], front_end_s)
    room = max(replica.kv_bytes, replica.held_bytes(1, _longest(request.workload), 0))
    return replace(replica, kv_bytes=room)


def _longest(workload: Workload) -> int:
    return math.ceil(workload.longest) + 1


def _run(evaluator: Evaluator, replica: ReplicaModel, requests: Requests, work: Work) -> Run:
    """A run of one replica. Of clients, the router holds back what it does not reach: a request
    waits there before it is sent, as much longer as it is served less."""
    workload = evaluator.request.workload
    _refuse_hopeless(requests, replica, work)
    run = simulate(work.counting(replica), cut_to_cache(requests, replica, _longest(workload)))
    if workload.mode == "open":
        return run
    held_back = run.e2e * (1 / evaluator.request.serving.router_efficiency - 1)
    return replace(run, sent_s=run.sent_s - held_back)


def _refuse_hopeless(requests: Requests, replica: ReplicaModel, work: Work) -> None:
    """TooMuchWork where the prompts alone take more steps than are left."""
    least_steps = float(requests.new_input_tokens.sum()) / replica.max_num_batched_tokens
    if least_steps > work.left:
        raise TooMuchWork


def cut_to_cache(requests: Requests, replica: ReplicaModel, longest: int) -> Requests:
    """The requests, drawn lengths cut to what the KV cache holds, which is `longest` or more."""
    totals = requests.input_tokens + requests.output_tokens
    low, high = longest, int(totals.max()) + 1
    while high - low > 1:
        middle = (low + high) // 2
        fits = replica.held_bytes(1, middle - 1, 0) <= replica.kv_bytes
        low, high = (middle, high) if fits else (low, middle)
    inputs = np.minimum(requests.input_tokens, low - 1)
    return replace(
        requests,
        input_tokens=inputs,
        new_input_tokens=np.minimum(requests.new_input_tokens, inputs),
        output_tokens=np.minimum(requests.output_tokens, low - inputs),
    )


def _measured(
    evaluator: Evaluator, layout: int, serving: int, parts: Sequence[_Part], concurrency: float
) -> Simulated:
    """The row of an evaluation that the parts make together. Throughput is counted in output
    tokens, which drawn lengths move less than requests."""
    tokens = evaluator.request.workload.output_tokens.mean
    saturation = np.array([_effective(evaluator, serving) * evaluator.saturation[layout]])
    rates = [part.replicas * part.output_tokens / (part.end_s - part.start_s) for part in parts]
    rate = np.array([sum(rates) / tokens])
    replicas = [part.replicas for part in parts]
    served = Served(
        verdict=np.array([_VERDICTS[evaluator.request.workload.mode]]),
        utilization=rate / saturation,
        saturation=saturation,
        requests_per_s=rate,
        concurrency=np.array([concurrency]),
        in_service=np.array([np.average([p.run.in_service for p in parts], weights=replicas)]),
        slot_wait=np.full(1, np.nan),
        full=np.full(1, np.nan),
        latency=_latencies(parts) | {"itl": _gaps(parts)},
        classes={
            one.name: _latencies(parts, number)
            for number, one in enumerate(evaluator.request.workload.classes)
        },
    )
    sent = sum(part.replicas * len(part.run.requests) for part in parts)
    preemptions = sum(part.replicas * part.run.evictions for part in parts) / sent
    counted = sum(part.counted.stop - part.counted.start for part in parts)
    return Simulated(counted, preemptions, served)


_VERDICTS = {"open": "stable", "closed": "closed_loop", "saturated": "saturated"}


def _latencies(parts: Sequence[_Part], of: int | None = None) -> dict[str, Latency]:
    """Latencies of the requests measured, or of those of one class."""
    mine = [_of_class(part, of) for part in parts]
    weight = [np.full(len(each), p.replicas) for each, p in zip(mine, parts, strict=True)]
    values = {
        metric: [getattr(p.run, metric)[each] for each, p in zip(mine, parts, strict=True)]
        for metric in ("ttft", "tpot", "e2e")
    }
    return {
        metric: _latency(np.concatenate(each), np.concatenate(weight))
        for metric, each in values.items()
    }


def _of_class(part: _Part, of: int | None) -> Index:
    """Numbers of the requests that were measured, of one class if it is given."""
    counted = np.arange(len(part.run.requests))[part.counted]
    classes = part.run.requests.request_class
    return counted if of is None or classes is None else counted[classes[counted] == of]


def _latency(values: Array, weight: Array) -> Latency:
    """Mean and quantiles of weighted values, those that are defined. With equal weights quantiles
    are interpolated as numpy's."""
    defined = ~np.isnan(values)
    if not defined.any():
        return Latency(np.full(1, np.nan), np.full((1, len(LEVELS)), np.nan))
    values, weight = values[defined], weight[defined]
    order = np.argsort(values)
    values, weight = values[order], weight[order]
    before = np.cumsum(weight) - weight
    position = before / before[-1] if before[-1] else before
    quantiles = np.interp(LEVELS, position, values)
    return Latency(np.array([np.average(values, weights=weight)]), quantiles[None, :])


def _gaps(parts: Sequence[_Part]) -> Latency:
    """Single gaps between tokens, over the steps measured of all replicas."""
    gaps = seconds = 0.0
    steps, interrupted = [], []
    for part in parts:
        run, counted = part.run, part.counted
        gaps += part.replicas * float((run.requests.output_tokens[counted] - 1).sum())
        seconds += part.replicas * float((run.done_s - run.first_token_s)[counted].sum())
        rows = run.iterations
        seen = (rows.start_s >= part.start_s) & (rows.start_s < part.end_s)
        columns = {each.name: getattr(rows, each.name)[seen] for each in fields(Iterations)}
        steps.append(columns | {"decode": columns["decode"] * part.replicas})
        interrupted.append(np.repeat(run.interrupted_s, max(round(part.replicas), 1)))
    joined = Iterations(**{key: np.concatenate([each[key] for each in steps]) for key in steps[0]})
    run = replace(parts[0].run, iterations=joined, interrupted_s=np.concatenate(interrupted))
    quantiles = [run.itl(level) if gaps else np.nan for level in LEVELS]
    return Latency(np.array([seconds / gaps if gaps else np.nan]), np.array([quantiles]))


# Which plans


def best_plans(decided: Decision) -> list[tuple[int, int]]:
    """Plans worth simulating, as (layout, replicas): the one chosen, then the next best and those
    along the front by turns, since what a burst asks of a plan no steady state shows."""
    front = _along(decided.pareto.tolist(), MOST_SIMULATED // 2)
    turns = chain.from_iterable(zip_longest(decided.ranking, front))
    rows = [decided.recommended, *turns]
    chosen = list(dict.fromkeys(row for row in rows if row is not None))[:MOST_SIMULATED]
    table = decided.candidates
    return [(int(table.layout[row]), int(table.replicas[row])) for row in chosen]


def verified(decided: Decision) -> dict[int, Simulated]:
    """The plan recommended, or the nearest, and those along the front, simulated; by row."""
    subject = decided.recommended if decided.recommended is not None else decided.nearest
    most = MOST_VERIFIED if decided.request.workload.trace is None else MOST_REPLAYED
    front = _along(decided.pareto[: decided.request.max_candidates].tolist(), most - 1)
    rows = list(dict.fromkeys(row for row in (subject, *front) if row is not None))
    table, spare, work = decided.candidates, decided.request.limits.spare_replicas, Work()
    return {
        row: simulate_steady(
            decided.evaluator,
            int(table.layout[row]),
            int(table.replicas[row]) - spare,
            table.served.take(np.array([row])),
            work,
        )
        for row in rows
    }


def _along(rows: list[int], most: int) -> list[int]:
    """Some of the rows, evenly apart, the first and the last among them."""
    if len(rows) <= most:
        return rows
    return [rows[i] for i in np.linspace(0, len(rows) - 1, most).round().astype(int)]
