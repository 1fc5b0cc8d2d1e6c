"""What a plan comes to, and how one compares with another by an objective."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from advisor.core.answer import rounded
from advisor.core.candidates import Candidates
from advisor.core.choice import TIE
from advisor.core.comparison import in_figures, way
from advisor.core.decision import Verdicts
from advisor.core.errors import InvalidInput
from advisor.core.misses import missed
from advisor.core.plans import Plan, plan
from advisor.core.techniques.subject import chosen
from advisor.core.units import GIB, MS_PER_S
from advisor.core.workload import PlanRequest

ROLES = ("all", "prefill", "decode")
VERDICTS = ("helps", "no_change", "hurts", "depends")

_MORE_IS_BETTER = "saturation_output_tokens_per_s_per_accelerator"
WORST_LIMIT = "worst_limit"
MEASURES = (
    "cost_per_hour", "cost_per_million_output_tokens", "e2e_p95_ms", "time_in_service_ms",
    _MORE_IS_BETTER, "cost_per_hour_times_e2e", "cost_per_million_times_time", WORST_LIMIT,
)  # fmt: skip
"""What objectives make small (or large: tokens). The products are of the cost and the latency that
`balanced` weighs, under their square root; `worst_limit` is what a plan has over the limit that it
misses by most, where no plan keeps all."""

COSTS = ("cost_per_hour", "cost_per_million_output_tokens")
"""Measures in the currency of the price."""

_PER_LOAD = {
    "cost": COSTS,
    "latency": ("e2e_p95_ms", "time_in_service_ms"),
    "throughput": (_MORE_IS_BETTER, _MORE_IS_BETTER),
    "balanced": ("cost_per_hour_times_e2e", "cost_per_million_times_time"),
}


@dataclass(frozen=True)
class Outcome:
    """A plan in figures, of the API; whether it keeps every limit, which ones it misses, and what
    it has over the one that it misses by most; its cost, its latency [s] and what an accelerator
    serves at most [output tokens/s], as plans are compared by; NaN: not known."""

    figures: Mapping[str, Any]
    kept: bool
    missed: tuple[str, ...]
    excess: float
    cost: float
    slowness: float
    per_accelerator: float

    def measured(self, measure: str) -> float:
        """The value of one of `MEASURES`."""
        if measure == WORST_LIMIT:
            return self.excess
        if measure == _MORE_IS_BETTER:
            return self.per_accelerator
        if measure in COSTS:
            return self.cost
        latency = self.slowness * MS_PER_S
        return latency if measure in _PER_LOAD["latency"] else math.sqrt(self.cost * latency)


def measure_of(request: PlanRequest) -> str:
    """What the objective of a request measures under its load."""
    return _PER_LOAD[request.objective][request.workload.mode == "saturated"]


def planned(request: PlanRequest) -> Outcome | str:
    """The plan of a request in figures, or why there is none."""
    try:
        found = plan(request)
    except InvalidInput as refused:
        return refused.errors[0].detail
    return outcome(found)


def outcome(found: Plan) -> Outcome | str:
    """The plan recommended, else the nearest, in figures; or why there is none."""
    row = chosen(found)
    if row is None:
        return found.rejected[0].detail if found.rejected else "There is no such layout."
    figures = in_pools(found, found.candidates, row, bool(found.verdicts.meets[row]))
    return compared(found.verdicts, row, figures, kept=found.recommended is not None)


def compared(verdicts: Verdicts, row: int, figures: Mapping[str, Any], *, kept: bool) -> Outcome:
    """The outcome of an evaluated plan."""
    excess = max((float(each[row]) for each in verdicts.excess.values()), default=0.0)
    return Outcome(
        figures, kept, tuple(missed(verdicts, row)), excess, float(verdicts.cost[row]),
        float(verdicts.slowness[row]), float(verdicts.per_accelerator[row]),
    )  # fmt: skip


def in_pools(found: Plan, rows: Candidates, i: int, met: bool) -> dict[str, Any]:
    """A plan in figures: of one pool, where all replicas do the same."""
    pool = one_pool(found, rows, i, ROLES[0])
    short = in_figures(found, rows, i)
    served, request = rows.served, found.request
    tokens = float(served.requests_per_s[i]) * request.workload.output_tokens.mean
    of_layout = {*way(found, int(rows.layout[i]), int(rows.replicas[i]))} - {"accelerators"}
    return {
        "model": request.model.name,
        "pools": [pool],
        **{key: value for key, value in short.items() if key not in of_layout},
        "output_tokens_per_s": rounded(tokens),
        "slo_met": met,
    }


def one_pool(found: Plan, rows: Candidates, i: int, role: str) -> dict[str, Any]:
    """The replicas of a pool, and their memory."""
    layout, memory = int(rows.layout[i]), found.evaluator.memory
    return {
        "role": role,
        **way(found, layout, int(rows.replicas[i])),
        "weights_gib": rounded(memory.weights[layout] / GIB),
        "kv_cache_gib": rounded(memory.kv_cache[layout] / GIB),
        "kv_capacity_tokens": int(memory.capacity_tokens[layout]),
        "max_concurrency": int(memory.max_concurrency[layout]),
        "slots": int(found.evaluator.slots[layout]),
    }


@dataclass(frozen=True)
class Effect:
    """One plan against another by what an objective measures: how many `times` better it is (2:
    half the cost, or twice the tokens), None where a value is missing; and whether it has a plan
    within every limit where the other has none (`gains`), or the other way round (`loses`)."""

    measure: str
    before: float
    after: float
    times: float | None
    gains: bool = False
    loses: bool = False

    @property
    def verdict(self) -> str:
        """Whether it helps, as far as plans differ at all."""
        if self.gains or self.loses:
            return VERDICTS[0] if self.gains else VERDICTS[2]
        if self.times is None or abs(math.log(self.times)) <= math.log1p(TIE):
            return VERDICTS[1]
        return VERDICTS[0] if self.times > 1 else VERDICTS[2]

    @property
    def change(self) -> float:
        """Of the value, as a share of what it was (NaN: not known)."""
        if not (self.before and math.isfinite(self.before)):
            return math.nan
        return round(self.after / self.before - 1, 9) if math.isfinite(self.after) else math.nan

    def as_dict(self) -> dict[str, Any]:
        """The effect in its API form."""
        return {
            "verdict": self.verdict,
            "measure": self.measure,
            "value_before": _finite(self.before),
            "value_after": _finite(self.after),
            "change": _finite(self.change),
            "times_better": None if self.times is None else rounded(self.times),
        }


def effect(measure: str, before: Outcome | None, after: Outcome) -> Effect:
    """What it makes of the objective that a plan is another. Where neither keeps every limit, they
    are compared by the one missed by most, if that has a value."""
    if before is None:
        return Effect(measure, np.nan, after.measured(measure), None, gains=after.kept)
    missed = max(before.excess, after.excess)
    if not before.kept and not after.kept and math.isfinite(missed):
        measure = WORST_LIMIT
    then, now = after.measured(measure), before.measured(measure)
    gains, loses = after.kept > before.kept, before.kept > after.kept
    times = None if gains or loses else times_better(measure, now, then)
    return Effect(measure, now, then, times, gains, loses)


def times_better(measure: str, before: float, after: float) -> float | None:
    """How many times better a value is; None where that has no meaning."""
    first, second = (after, before) if measure == _MORE_IS_BETTER else (before, after)
    if first == second:
        return 1.0
    if not (0 < first < math.inf and 0 < second < math.inf):
        return None
    return first / second


def best_of(measure: str, found: Sequence[Outcome]) -> Outcome:
    """The best of some plans, those that keep every limit first."""

    def order(one: Outcome) -> tuple[bool, float]:
        value = one.measured(measure) * (-1 if measure == _MORE_IS_BETTER else 1)
        return not one.kept, math.inf if math.isnan(value) else value

    return min(found, key=order)


def gained(measure: str, before: float, after: float) -> float:
    """By how much a value is better, in its unit."""
    return after - before if measure == _MORE_IS_BETTER else before - after


def _finite(value: float) -> float | None:
    return rounded(value) if math.isfinite(value) else None
