"""The planner: from a request to the plans that serve it, the one to take, and why.

`plan` is the whole computation; `Plan.as_dict` its answer. The steps stand in modules of their own:
`enumeration` (which layouts), `memory` (do they fit), `steps` and `batching` (how fast), `load` and
`queueing` (under this load), `evaluation` (how many replicas), `choice` (which one).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor import __version__
from advisor.core import answer, comparison, explanation, fitting
from advisor.core.choice import best_of, knee, pareto_front
from advisor.core.enumeration import Rejection, enumerate_layouts, precision_warnings
from advisor.core.errors import FieldError, InvalidInput, between, unknown_choice
from advisor.core.evaluation import (
    Candidates,
    Evaluator,
    attainment,
    hourly_cost,
    meets_slos,
    slo_ratios,
)
from advisor.core.workload import OBJECTIVES, SLO_KEYS, PlanRequest

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


class Plan:
    """The answer to one request."""

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

    def as_dict(self) -> dict[str, Any]:
        """The answer in its API form (all but `id`)."""
        write = answer.CandidateWriter(self.request, self.evaluator, self.candidates, self.verdicts)
        shown = self.ranking[: self.request.max_candidates]
        subject = self.recommended if self.recommended is not None else self.nearest
        return {
            "inputs": answer.inputs(self.request),
            "recommended": None if self.recommended is None else write.one(self.recommended),
            "reason": explanation.refusal(self),
            "nearest": None if self.nearest is None else write.one(self.nearest),
            "pareto": [write.one(int(i)) for i in self.pareto[: self.request.max_candidates]],
            "candidates": [write.one(i) for i in shown],
            "candidates_total": len(self.candidates),
            "rejected": [one.as_dict() for one in self.rejected],
            "replicas_vs_tensor_parallel": (
                [] if subject is None else comparison.same_accelerators(self, subject)
            ),
            "explanation": explanation.explain(self),
            "assumptions": explanation.assumptions(self),
            "warnings": self.warnings + explanation.warnings(self),
            "planner_version": __version__,
        }


def plan(request: PlanRequest) -> Plan:
    """Evaluate a request. InvalidInput when its fields contradict each other or the model."""
    _validate(request)
    layouts, rejected = enumerate_layouts(request)
    warnings = precision_warnings(layouts)
    evaluator, unfit = fitting.evaluator(request, layouts)
    overloaded = fitting.overloaded(request, evaluator)
    return Plan(request, evaluator, rejected + unfit + overloaded, warnings)


def _validate(request: PlanRequest) -> None:
    errors = [
        unknown_choice(f"/slo/{key}", key, SLO_KEYS, "SLO")
        for key in request.slo
        if key not in SLO_KEYS
    ]
    if request.objective not in OBJECTIVES:
        errors.append(unknown_choice("/objective", request.objective, OBJECTIVES, "Objective"))
    context, longest = request.model.architecture.context_length, request.workload.longest
    if context is not None and longest > context:
        errors.append(
            FieldError(
                "/workload", f"Input and output exceed the context of {request.model.name}.",
                given=longest, allowed=between(2, context),
            )
        )  # fmt: skip
    currencies = {h.price.currency for h in request.hardware if h.price}
    if len(currencies) > 1:
        errors.append(
            FieldError(
                "/hardware", "Prices in different currencies cannot be compared.",
                given=sorted(currencies),
            )
        )  # fmt: skip
    if errors:
        raise InvalidInput(*errors)


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
