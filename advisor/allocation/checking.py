"""The planner's verdict on every pool that was chosen, at the share of the rate that it gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

from advisor.allocation.pools import Offer, Planned
from advisor.allocation.problem import Pool, Problem, Solution, carried
from advisor.core.answer import CandidateWriter
from advisor.core.layouts import Layout
from advisor.core.plans import Plan, plan
from advisor.core.workload import PlanRequest

Solver = Callable[[Problem], Solution]

_LESS = 0.97
"""What is left of the capacity of a layout that the planner refuses in its place."""
_ROUNDS = 3


@dataclass(frozen=True)
class Checked:
    """A pool, the share of its demand's rate that it gets, and the plan that it is: a candidate as
    plans answer it. `met`: the planner would recommend it."""

    pool: Pool
    share: float
    candidate: dict[str, Any]
    met: bool


@dataclass(frozen=True)
class Chosen:
    """A solution with its pools checked; `corrected` names what was found too small on the way."""

    problem: Problem
    solution: Solution
    checked: tuple[Checked, ...]
    corrected: tuple[str, ...]


def chosen(problem: Problem, plans: Sequence[Planned], solver: Solver) -> Chosen:
    """The solution of a problem, solved again with less capacity where the planner refuses a pool
    as it was chosen. The last that was found is answered as it is, where the rounds or the solver's
    time run out."""
    corrected: list[str] = []
    found = _checked_solution(problem, plans, solver(problem), corrected)
    for _ in range(_ROUNDS):
        failed = [each.pool for each in found.checked if not each.met]
        if not failed:
            break
        corrected += [_named(plans, pool) for pool in failed]
        problem = _smaller(problem, failed)
        solution = solver(problem)
        if solution.status == "not_solved":
            break
        found = _checked_solution(problem, plans, solution, corrected)
    return found


def _checked_solution(
    problem: Problem, plans: Sequence[Planned], solution: Solution, corrected: Sequence[str]
) -> Chosen:
    checked = check(problem, solution, plans)
    return Chosen(problem, solution, tuple(checked), tuple(dict.fromkeys(corrected)))


def check(problem: Problem, solution: Solution, plans: Sequence[Planned]) -> list[Checked]:
    """Every pool as a plan of its own. The pools of a demand share its rate in proportion to what
    they carry, so that each has the same room."""
    carries, found = carried(problem, solution.pools), []
    for pool in solution.pools:
        capacity = problem.demands[pool.demand].options[pool.option].capacity
        share = capacity.share(pool.replicas) / carries[pool.demand]
        planned = plans[pool.demand]
        found.append(_checked(pool, share, planned.wanted.request, planned.offers[pool.option]))
    return found


def _checked(pool: Pool, share: float, request: PlanRequest, offer: Offer) -> Checked:
    decided = plan(alone(request, offer.layout, pool.replicas, share))
    row = decided.recommended if decided.recommended is not None else decided.nearest
    assert row is not None
    return Checked(pool, share, candidate(decided, row), decided.recommended is not None)


def candidate(decided: Plan, row: int) -> dict[str, Any]:
    """A row of a plan as plans answer it."""
    return CandidateWriter(
        decided.request, decided.evaluator, decided.candidates, decided.verdicts, {}
    ).one(row)


def alone(request: PlanRequest, layout: Layout, replicas: int, share: float) -> PlanRequest:
    """A pool as a plan request: its layout and replicas, and its part of the stream. A renewal
    stream of which each request is taken by chance keeps that share of its excess variation."""
    split, workload = layout.split, request.workload
    assert workload.request_rate_per_s is not None
    cv2 = 1 + share * (workload.arrival_cv**2 - 1)
    return replace(
        request,
        hardware=(layout.hardware,),
        workload=replace(
            workload, request_rate_per_s=share * workload.request_rate_per_s, arrival_cv=sqrt(cv2)
        ),
        weights=(split.weights,),
        kv_cache=(split.kv_cache,),
        limits=replace(
            request.limits,
            max_accelerators=replicas * split.accelerators,
            tensor_parallel=(split.tensor_parallel,),
            pipeline_parallel=(split.pipeline_parallel,),
            expert_parallel=(split.expert_parallel,),
            attention_data_parallel=(split.attention_data_parallel,),
            decode_context_parallel=(split.decode_context_parallel,),
            replicas=(replicas,),
        ),
    )


def _smaller(problem: Problem, failed: Sequence[Pool]) -> Problem:
    demands = list(problem.demands)
    for pool in failed:
        options = list(demands[pool.demand].options)
        option = options[pool.option]
        options[pool.option] = replace(option, capacity=option.capacity.scaled(_LESS))
        demands[pool.demand] = replace(demands[pool.demand], options=tuple(options))
    return replace(problem, demands=tuple(demands))


def _named(plans: Sequence[Planned], pool: Pool) -> str:
    planned = plans[pool.demand]
    layout = planned.offers[pool.option].layout
    return f"{planned.wanted.name} on {layout.hardware.name}, TP{layout.split.tensor_parallel}"
