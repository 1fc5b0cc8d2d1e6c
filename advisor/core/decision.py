"""Deciding: what a candidate is worth, which one is taken, and which comes closest if none is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.core.choice import best_of, knee, pareto_front
from advisor.core.enumeration import Rejection
from advisor.core.evaluation import (
    Candidates,
    Evaluator,
    attainment,
    hourly_cost,
    meets_slos,
    slo_ratios,
)
from advisor.core.workload import PlanRequest

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Verdicts:
    """What decides between candidates, arrays of shape (rows,).

    `cost` is per hour (per million output tokens when saturated; NaN without a price), `slowness`
    the latency that plans are compared by: p95 E2E (time in service when saturated). `eligible`
    candidates may be recommended.
    """

    cost: Array
    slowness: Array
    per_accelerator: Array
    meets: Mask
    ratios: Mapping[str, Array]
    attainment: Array
    eligible: Mask


class Decision:
    """The candidates of a request, and the choice among them."""

    def __init__(
        self, request: PlanRequest, evaluator: Evaluator, rejected: list[Rejection],
        warnings: list[dict[str, str]],
    ) -> None:  # fmt: skip
        self.request, self.evaluator = request, evaluator
        self.rejected, self.warnings = rejected, warnings
        self.candidates: Candidates = evaluator.candidates()
        self.verdicts = _verdicts(request, evaluator, self.candidates)
        self.recommended = _choose(request, evaluator, self.candidates, self.verdicts)
        self.nearest = None if self.recommended is not None else self._nearest()

    def _nearest(self) -> int | None:
        """The candidate that comes closest when none may be recommended."""
        ratios = self.verdicts.ratios
        miss = np.maximum.reduce([*ratios.values(), self.candidates.served.utilization])
        order = np.lexsort((self.candidates.accelerators, miss))
        return int(order[0]) if len(order) else None

    @cached_property
    def pareto(self) -> NDArray[np.int64]:
        """Rows of the Pareto front of latency against cost, by rising cost."""
        usable = _holds(self.request, self.candidates)
        return pareto_front(np.where(usable, self.verdicts.slowness, np.nan), self.verdicts.cost)

    @cached_property
    def ranking(self) -> list[int]:
        """Rows in the order of the objective, those that may be recommended first."""
        score = _score(self.request, self.verdicts)
        order = np.lexsort((np.nan_to_num(score, nan=np.inf), ~self.verdicts.eligible))
        return [int(i) for i in order]


def _verdicts(request: PlanRequest, evaluator: Evaluator, candidates: Candidates) -> Verdicts:
    served, tokens = candidates.served, request.workload.output_tokens.mean
    layouts = [evaluator.layouts[i] for i in candidates.layout]
    pairs = zip(layouts, candidates.accelerators.tolist(), strict=True)
    hourly = [hourly_cost(layout, count) for layout, count in pairs]
    cost = np.array([np.nan if each is None else float(each) for each in hourly])
    slowness = served.latency["e2e"].at("p95")
    if request.workload.mode == "saturated":
        cost = cost / (served.requests_per_s * tokens * 3600) * 1e6
        slowness = served.concurrency / served.requests_per_s
    gaps = request.workload.gaps
    meets = meets_slos(served, request.slo, gaps)
    fits = ~evaluator.memory.uncertain[candidates.layout]
    sure = fits if fits.any() else np.ones_like(fits)
    within = np.array([_within_cost(request, each) for each in hourly], dtype=bool)
    return Verdicts(
        cost=cost,
        slowness=slowness,
        per_accelerator=served.saturation * tokens / candidates.accelerators,
        meets=meets,
        ratios=slo_ratios(served, request.slo, gaps),
        attainment=attainment(served, request.slo, gaps),
        eligible=meets & sure & within & _holds(request, candidates),
    )


def _within_cost(request: PlanRequest, hourly: Any) -> bool:
    limit = request.limits.max_cost_per_hour
    return limit is None or (hourly is not None and hourly <= limit)


def _holds(request: PlanRequest, candidates: Candidates) -> Mask:
    """Whether the load is carried within the utilization and accelerator limits."""
    served, limits = candidates.served, request.limits
    holds = candidates.accelerators <= limits.max_accelerators
    if request.workload.mode == "open":
        holds &= (served.verdict == "stable") & (
            served.utilization <= limits.max_utilization + 1e-12
        )
    return np.asarray(holds)


def _score(request: PlanRequest, verdicts: Verdicts) -> Array:
    """What the objective makes small."""
    if request.objective == "cost":
        return verdicts.cost
    if request.objective == "throughput":
        return 1 / verdicts.per_accelerator
    return verdicts.slowness


def _choose(
    request: PlanRequest, evaluator: Evaluator, candidates: Candidates, verdicts: Verdicts
) -> int | None:
    tensor_parallel = evaluator.tensor_parallel[candidates.layout]
    if request.objective == "balanced":
        return knee(verdicts.slowness, verdicts.cost, verdicts.eligible)
    score = _score(request, verdicts)
    return best_of(score, verdicts.eligible, candidates.accelerators, tensor_parallel)
