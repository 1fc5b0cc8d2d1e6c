"""The planner: from a request to the plans that serve it, the one to take, and why.

`plan` is the whole computation; `Plan.as_dict` its answer. The steps stand in modules of their own:
`enumeration` (which layouts), `memory` (do they fit), `steps` and `batching` (how fast), `load` and
`queueing` (under this load), `evaluation` (how many replicas), `decision` and `choice` (which one),
`verification` (what a simulation says of it).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from advisor import __version__
from advisor.core import (
    answer,
    batch_cost,
    comparison,
    crossing,
    explanation,
    fitting,
    misses,
    next_accelerators,
    slo_sensitivity,
    verification,
)
from advisor.core.batching_comparison import continuous_vs_static
from advisor.core.decision import Decision
from advisor.core.engines import serving_faults, version_warnings
from advisor.core.enumeration import enumerate_layouts, precision_warnings
from advisor.core.errors import FieldError, InvalidInput, between, unknown_choice
from advisor.core.verification import BurstEvaluator, Simulated, TooMuchWork
from advisor.core.workload import CLASS_SLO_KEYS, OBJECTIVES, SLO_KEYS, PlanRequest, Serving


class Plan(Decision):
    """A decision that can be written down."""

    @cached_property
    def simulated(self) -> dict[int, Simulated]:
        """Rows that were checked by a simulation, where that was asked for, as a trace does."""
        workload = self.request.workload
        wanted = self.request.verify or workload.trace is not None
        return verification.verified(self) if wanted and workload.start != "burst" else {}

    def as_dict(self) -> dict[str, Any]:
        """The answer in its API form (all but `id`)."""
        write = answer.CandidateWriter(
            self.request, self.evaluator, self.candidates, self.verdicts, self.simulated
        )
        shown = self.ranking[: self.request.max_candidates]
        return {
            "inputs": answer.inputs(self.request),
            "trace": answer.measured_trace(self.request.workload),
            "recommended": None if self.recommended is None else write.one(self.recommended),
            "reason": explanation.refusal(self),
            "nearest": None if self.nearest is None else write.one(self.nearest),
            "missed_limits": misses.missed_limits(self),
            "pareto": [write.one(int(i)) for i in self.pareto[: self.request.max_candidates]],
            "candidates": [write.one(i) for i in shown],
            "candidates_total": len(self.candidates),
            "rejected": [one.as_dict() for one in self.rejected],
            **self._explained(),
            "assumptions": explanation.assumptions(self),
            "warnings": [
                *(dict(each) for each in self.request.model.warnings),
                *self.warnings,
                *explanation.warnings(self),
                *explanation.disagreements(self, self.simulated),
            ],
            "planner_version": __version__,
        }

    @cached_property
    def crossings(self) -> list[dict[str, Any]]:
        """Loads at which another way to spend the accelerators becomes the better one."""
        subject = self.recommended if self.recommended is not None else self.nearest
        return [] if subject is None else crossing.crossing_loads(self, subject)

    def _explained(self) -> dict[str, Any]:
        """The choice beside others: in figures and, last, in sentences."""
        subject = self.recommended if self.recommended is not None else self.nearest
        full = self.request.explain == "full"
        found: dict[str, Any] = {
            "replicas_vs_tensor_parallel": [],
            "crossing_loads": self.crossings if full else None,  # None: not asked for
            "batch_limit": None,
            "continuous_vs_static": [],
        }
        if subject is not None:
            found["replicas_vs_tensor_parallel"] = comparison.in_both_ways(self, subject)
            found["batch_limit"] = batch_cost.batch_limit(self, subject)
            found["continuous_vs_static"] = continuous_vs_static(self, subject)
        larger = next_accelerators.next_accelerators(self)
        sensitivity = slo_sensitivity.slo_sensitivity(self)
        sentences = [
            *explanation.explain(self),
            *batch_cost.in_words(found["batch_limit"]),
            *crossing.in_words(found["crossing_loads"]),
            *next_accelerators.in_words(larger),
            *slo_sensitivity.in_words(self, sensitivity),
        ]
        return found | {
            "next_accelerators": larger,
            "slo_sensitivity": sensitivity,
            "explanation": sentences,
        }


def plan(request: PlanRequest) -> Plan:
    """Evaluate a request. InvalidInput when its fields contradict each other or the model."""
    validate(request)
    layouts, rejected = enumerate_layouts(request)
    warnings = [*version_warnings(request.serving), *precision_warnings(layouts)]
    evaluator, unfit = fitting.evaluator(request, layouts)
    overloaded = fitting.overloaded(request, evaluator)
    decided = Plan(request, evaluator, rejected + unfit + overloaded, warnings)
    return _burst(decided) if request.workload.start == "burst" else decided


def _burst(steady: Plan) -> Plan:
    """The choice among simulated plans; which are simulated, their steady state says."""
    request, best = steady.request, verification.best_plans(steady)
    try:
        evaluator = BurstEvaluator(steady.evaluator, best)
        return Plan(request, evaluator, steady.rejected, steady.warnings)
    except TooMuchWork:
        detail = "This burst takes too many steps to be simulated: ask for fewer or shorter ones."
        count = request.workload.burst_requests
        raise InvalidInput(FieldError("/workload/num_requests", detail, given=count)) from None


def _trace_faults(serving: Serving) -> list[FieldError]:
    """What a trace cannot be replayed with."""
    faults = []
    if serving.router_efficiency != 1:
        detail = "A trace is dealt out to whole replicas as routing says: all of them are reached."
        given = serving.router_efficiency
        faults.append(FieldError("/serving/router_efficiency", detail, given=given, allowed=[1]))
    if serving.speculative.draft_tokens:
        detail = "A trace is simulated, and speculative decoding is not."
        faults.append(FieldError("/serving/speculative", detail, allowed=[None]))
    return faults


def _slo_faults(request: PlanRequest) -> list[FieldError]:
    """SLOs that no request can be held to."""
    classes = request.workload.classes
    of_classes = (f"{key}@{one.name}" for one in classes for key in CLASS_SLO_KEYS)
    known = (*SLO_KEYS, *of_classes)
    faults = [
        unknown_choice(f"/slo/{key}", key, known, "SLO") for key in request.slo if key not in known
    ]
    detail = "Answers of one token have no gaps, and no TPOT."
    return faults + [
        FieldError(f"/workload/classes/{number}/slo/{key}", detail)
        for number, one in enumerate(classes)
        for key in one.slo
        if key.startswith("tpot") and not one.gaps
    ]


def validate(request: PlanRequest) -> None:
    """Refuse what contradicts itself, the model or the engine. Raises InvalidInput."""
    errors = _slo_faults(request)
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
    if request.workload.start == "burst" and request.serving.speculative.draft_tokens:
        detail = "A burst is simulated, and speculative decoding is not."
        errors.append(FieldError("/workload/start", detail, given="burst", allowed=["steady"]))
    if request.workload.trace is not None:
        errors += _trace_faults(request.serving)
    errors += serving_faults(request.serving)
    admitted = request.serving.max_model_len
    if admitted is not None and not longest <= admitted <= (context or admitted):
        errors.append(
            FieldError(
                "/serving/max_model_len",
                "The engine has to admit the longest request, within the model's context.",
                given=admitted, allowed=between(longest, context or admitted),
            )
        )  # fmt: skip
    stages, layers = request.serving.pipeline_layers, len(request.model.architecture.layers)
    if stages is not None and sum(stages) != layers:
        detail = f"The stages of {request.model.name} hold {layers} layers in all."
        errors.append(FieldError("/serving/pipeline_layers", detail, given=list(stages)))
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
