"""Which limit binds: what keeps a plan that the objective likes better from being recommended."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING

import numpy as np
from numpy.typing import NDArray

from advisor.core.candidates import Candidates
from advisor.core.choice import TIE, pareto_front
from advisor.core.comparison import in_short, way
from advisor.core.decision import Decision, Verdicts, most_utilized
from advisor.core.evaluation import PLATEAU, hourly_cost
from advisor.core.misses import missed, misses, overload

_GAINS = {
    "cost": "would cost less",
    "latency": "would answer sooner",
    "throughput": "would give more tokens for each accelerator",
    "balanced": "would answer sooner",
}


def room(plan: Decision, layout: int) -> tuple[int, str]:
    """The most replicas of a layout, spares included, that a request allows, and the limit that
    says so."""
    limits, accelerators = plan.request.limits, int(plan.evaluator.accelerators[layout])
    most = {"max_accelerators": limits.max_accelerators // accelerators}
    one = hourly_cost(plan.evaluator.layouts[layout], accelerators)
    if limits.max_cost_per_hour is not None and one:
        most["max_cost_per_hour"] = int(limits.max_cost_per_hour / one)
    if plan.request.workload.concurrency is not None:
        most["concurrency"] = plan.request.workload.concurrency + limits.spare_replicas
    if limits.replicas:
        most["replicas"] = max(limits.replicas)
    return min((count, limit) for limit, count in most.items())


def what_binds(plan: Decision, row: int) -> list[str]:
    """Sentences on the recommended plan, of that row."""
    objective = plan.request.objective
    workload = plan.request.workload
    if objective == "throughput" or workload.mode == "saturated" or workload.start == "burst":
        return _better_candidate(plan, row)
    if objective == "cost":
        return [*_cheaper_plan(plan, row), *_too_small(plan, row)] or [
            "No limit binds: no plan that the request allows costs less."
        ]
    if objective == "latency":
        return _better_candidate(plan, row) or _no_more_replicas(plan, row)
    return _neighbours(plan, row)


def _better_candidate(plan: Decision, row: int) -> list[str]:
    """Of the candidates that are better by the objective, the one nearest to its limits."""
    score, rows, verdicts = plan.score, plan.candidates, plan.verdicts
    better = np.flatnonzero(score < score[row] / (1 + TIE))
    if not len(better):
        return []
    nearest = int(better[np.argmin(_worst(verdicts)[better])])
    return [_why_not(plan, rows, verdicts, nearest)]


def _why_not(plan: Decision, rows: Candidates, verdicts: Verdicts, row: int) -> str:
    gain = _GAINS[plan.request.objective]
    name = in_short(way(plan, int(rows.layout[row]), int(rows.replicas[row])))
    limits = list(missed(verdicts, row))
    if not limits:
        return f"What binds is the memory: {name} {gain}, but fits by less than the error of that."
    return f"What binds is {limits[0]}: {name} {gain}, but {misses(plan, rows, verdicts, row)}."


def _worst(verdicts: Verdicts) -> NDArray[np.float64]:
    """What each plan has over the limit that it misses most, (rows,)."""
    return np.asarray(np.maximum.reduce(list(verdicts.excess.values())))


def _cheaper_plan(plan: Decision, row: int) -> list[str]:
    """Of the largest plan of each layout that costs less, the one nearest to its limits."""
    evaluator, spare = plan.evaluator, plan.request.limits.spare_replicas
    cheaper, fewest = _cheaper(plan, row), evaluator.smallest_counts() + spare
    rows = evaluator.at([(i, n) for i, n in cheaper if n >= fewest[i]])
    found = [_overloaded(plan, i, n, int(fewest[i])) for i, n in cheaper if n < fewest[i]]
    if len(rows):
        verdicts = plan.judged(rows)
        worst = _worst(verdicts)
        nearest = int(np.argmin(worst))
        found.append((float(worst[nearest]), 0.0, _why_not(plan, rows, verdicts, nearest)))
    return [min(found)[2]] if found else []


def _overloaded(
    plan: Decision, layout: int, replicas: int, fewest: int
) -> tuple[float, float, str]:
    """Of a plan that does not carry the load by how much it misses its limits, its utilization, and
    that in words. It needs no evaluation: above saturation it has no latency, and below it misses
    the SLOs by no less than the fewest replicas that carry the load, where these are known."""
    workload, limits = plan.request.workload, plan.request.limits
    serving = replicas - limits.spare_replicas
    most = serving * plan.evaluator.saturation[layout] * plan.request.serving.router_efficiency
    utilization = float((workload.request_rate_per_s or 0.0) * workload.peak_to_mean / most)
    over = {"max_utilization": utilization / most_utilized(limits) if utilization < 1 else math.inf}
    why = [overload(plan, utilization, replicas)]
    if (layout, fewest) in plan.evaluator.known.rows:
        held = plan.judged(plan.evaluator.at([(layout, fewest)]))
        late = {slo: float(ratio[0]) for slo, ratio in held.ratios.items() if ratio[0] > 1}
        over |= late
        why += [f"{slo} is more than {times:.2f} times its limit" for slo, times in late.items()]
    limit, name = max(over, key=lambda each: over[each]), in_short(way(plan, layout, replicas))
    words = f"What binds is {limit}: {name} would cost less, but {', '.join(why)}."
    return over[limit], utilization, words


def _cheaper(plan: Decision, row: int) -> list[tuple[int, int]]:
    """Of each layout the most replicas, spares included, that cost less than the plan of a row."""
    evaluator, spare = plan.evaluator, plan.request.limits.spare_replicas
    chosen = evaluator.layouts[plan.candidates.layout[row]]
    bill = hourly_cost(chosen, int(plan.candidates.accelerators[row]))
    found = []
    for i, layout in enumerate(evaluator.layouts):
        one = hourly_cost(layout, int(evaluator.accelerators[i]))
        if bill and one:
            count = int((bill / one).to_integral_value(ROUND_CEILING)) - 1
            found.append((i, allowed(plan, i, count)))
    return [(i, count) for i, count in found if count > spare]


def allowed(plan: Decision, layout: int, count: int) -> int:
    """The most replicas of a layout up to `count` that the request leaves to choose; 0: none."""
    asked = plan.request.limits.replicas
    count = min(count, room(plan, layout)[0])
    return count if asked is None else max((n for n in asked if n <= count), default=0)


def _too_small(plan: Decision, row: int) -> list[str]:
    """Where fewer of the same accelerators do not hold the model in the same formats."""
    layout = plan.evaluator.layouts[plan.candidates.layout[row]]
    name, split = layout.hardware.name, layout.split
    fewer = [
        one.split.accelerators
        for one in plan.rejected
        if (one.code, one.hardware) == ("does_not_fit", name)
        and (one.split.weights, one.split.kv_cache) == (split.weights, split.kv_cache)
        and one.split.accelerators < split.accelerators
    ]
    if not fewer:
        return []
    ranks = max(fewer)
    return [f"A replica of {ranks} x {name} is capacity-bound: it does not hold the model."]


def _no_more_replicas(plan: Decision, row: int) -> list[str]:
    """Why the fastest plan has no more replicas."""
    layout, replicas = int(plan.candidates.layout[row]), int(plan.candidates.replicas[row])
    most, limit = room(plan, layout)
    if replicas >= most:
        return [f"What binds is {limit}: it leaves no more replicas than {most}."]
    if plan.request.limits.replicas:
        return []
    more = plan.evaluator.at([(layout, replicas), (layout, replicas + 1)])
    times = more.served.latency["e2e"].at("p95")
    gain = 1 - float(times[1] / times[0])
    if not gain < 1 - 1 / PLATEAU:
        return []
    return [
        f"What binds is the plateau: another replica would shorten p95 end-to-end latency by "
        f"{max(gain, 0):.2%}, and is not worth it below 1 %."
    ]


def _neighbours(plan: Decision, row: int) -> list[str]:
    """Where the knee lies between the plans that may be recommended."""
    eligible, costs = plan.verdicts.eligible, plan.verdicts.cost
    times = plan.verdicts.slowness
    front = pareto_front(np.where(eligible, times, math.nan), np.where(eligible, costs, math.nan))
    place, words = front.tolist().index(row), []
    for name, other in (("cheaper", place - 1), ("faster", place + 1)):
        if 0 <= other < len(front):
            cost, time = costs[front[other]] / costs[row], times[front[other]] / times[row]
            words.append(f"the next {name} has {cost:.2f} times its cost and {time:.2f} its p95")
    if not words:
        return ["What binds are the limits: one plan within them is on the front."]
    return [f"No limit binds: of {len(front)} plans on the front, {' and '.join(words)}."]
