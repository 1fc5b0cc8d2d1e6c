"""From a question to its answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from advisor.allocation.alternatives import Alternative, one_kind, one_more_unit, sharing
from advisor.allocation.checking import Chosen, chosen
from advisor.allocation.conflicts import Conflict, conflict
from advisor.allocation.pools import Asked, Planned, asked, planned, refuse_too_many
from advisor.allocation.problem import Demand, Problem, Solution
from advisor.allocation.program import require_solver
from advisor.allocation.request import AllocationRequest
from advisor.allocation.solve import Clock, solve
from advisor.core.errors import InvalidInput

Progress = Callable[[str, int, int], None]
"""Told what is being done, how many steps of it are done, and of how many."""

_OF_THE_TIME = 0.5
"""Share of the solver's time that the allocation itself may take; alternatives have the rest."""


@dataclass(frozen=True)
class Allocation:
    """All that was found."""

    request: AllocationRequest
    plans: tuple[Planned, ...]
    chosen: Chosen
    conflict: Conflict | None
    one_more: tuple[Alternative, ...]
    single_kind: tuple[Alternative, ...]
    planning_s: float
    solving_s: float

    @property
    def solution(self) -> Solution:
        """The pools that were chosen."""
        return self.chosen.solution


def quiet(_what: str, _done: int, _of: int) -> None:
    """Tell nobody."""


def allocate(request: AllocationRequest, progress: Progress = quiet) -> Allocation:
    """Choose which devices of an inventory serve which demands.

    Raises InvalidInput for what the planner refuses, with the pointer of the demand, and
    `SolverMissing`.
    """
    require_solver()
    planning = Clock(0)
    plans = _plans(request, progress)
    planning_s, solving = planning.spent_s, Clock(request.time_limit_s)
    problem = _problem(request, plans)
    main = Clock(request.time_limit_s * (_OF_THE_TIME if request.alternatives else 1.0))
    progress("solving", 0, 1)
    best = chosen(problem, plans, lambda one: solve(one, main, request.max_gap))
    progress("solving", 1, 1)
    clash = None
    if best.solution.status == "infeasible":
        clash = conflict(best.problem, Clock(solving.left_s * _OF_THE_TIME))
    one_more, single = _alternatives(request, best, solving, progress)
    return Allocation(
        request, tuple(plans), best, clash, tuple(one_more), tuple(single), planning_s,
        solving.spent_s,
    )  # fmt: skip


def _plans(request: AllocationRequest, progress: Progress) -> list[Planned]:
    demands: list[Asked] = []
    for index, wanted in enumerate(request.demands):
        try:
            demands.append(asked(wanted))
        except InvalidInput as refused:
            raise refused.under(f"/demands/{index}") from None
    refuse_too_many(demands)
    plans: list[Planned] = []
    for demand in demands:
        progress("planning", len(plans), len(demands))
        plans.append(planned(demand, request.inventory))
    return plans


def _problem(request: AllocationRequest, plans: Sequence[Planned]) -> Problem:
    return Problem(
        tuple(
            Demand(
                each.wanted.name,
                tuple(offer.option for offer in each.offers),
                each.wanted.weight,
                each.wanted.request.limits.max_accelerators,
            )
            for each in plans
        ),
        tuple(entry.device for entry in request.inventory),
        request.objective,
    )


def _alternatives(
    request: AllocationRequest, best: Chosen, clock: Clock, progress: Progress
) -> tuple[list[Alternative], list[Alternative]]:
    """One more unit of each device, and each kind alone where there are several."""
    if not request.alternatives or best.solution.status == "not_solved":
        return [], []
    problem, devices = best.problem, best.problem.devices
    kinds = list(dict.fromkeys(device.kind for device in devices))
    kinds = kinds if len(kinds) > 1 else []
    steps = len(devices) + len(kinds)
    solver = sharing(clock, request.max_gap, steps)
    one_more, single = list[Alternative](), list[Alternative]()
    for index in range(len(devices)):
        progress("alternatives", index, steps)
        one_more.append(one_more_unit(problem, best.solution, index, solver))
    for index, kind in enumerate(kinds):
        progress("alternatives", len(devices) + index, steps)
        single.append(one_kind(problem, best.solution, kind, solver))
    progress("alternatives", steps, steps)
    return one_more, single
