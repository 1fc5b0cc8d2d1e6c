"""Which demands that have to be served cannot be, together or at all."""

from __future__ import annotations

from dataclasses import dataclass, replace

from advisor.allocation.problem import Problem
from advisor.allocation.program import Program
from advisor.allocation.solve import Clock


@dataclass(frozen=True)
class Conflict:
    """Demands, by their index, that cannot all be served; without any one of them the others can,
    if `minimal` (there was time to show it)."""

    demands: tuple[int, ...]
    minimal: bool


def conflict(problem: Problem, clock: Clock) -> Conflict:
    """Demands without which nothing is infeasible, found by leaving out one after the other.

    One that nothing can serve is a conflict by itself. To be asked of a problem that is infeasible.
    """
    must = [i for i, demand in enumerate(problem.demands) if demand.weight is None]
    kept, minimal = list(must), True
    for place, index in enumerate(must):
        others = [i for i in kept if i != index]
        answer = _feasible(problem, others, clock.left_s / (len(must) - place))
        if answer is None:
            minimal = False
        elif not answer:
            kept = others
    return Conflict(tuple(kept), minimal)


def _feasible(problem: Problem, demands: list[int], seconds: float) -> bool | None:
    """Whether some demands can all be served; None where time does not suffice to tell."""
    if not demands:
        return True
    if seconds <= 0:
        return None
    asked = replace(problem, demands=tuple(problem.demands[i] for i in demands))
    program = Program(asked)
    found = program.minimize(0 * program.value(), seconds, 0.0)
    if found.columns is not None:
        return True
    return False if found.outcome == "infeasible" else None
