"""Which techniques would help a plan: each tried, and all of them ranked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from advisor import __version__
from advisor.core import answer, explanation
from advisor.core.techniques import wording
from advisor.core.techniques.batchings import batchings
from advisor.core.techniques.catalogue import catalogue
from advisor.core.techniques.combinations import combinations
from advisor.core.techniques.evaluation import DISAGGREGATION, Tried, tried
from advisor.core.techniques.outcome import Outcome, measure_of, outcome
from advisor.core.techniques.speculation import pays_from
from advisor.core.techniques.subject import Given, Subject, subject_of
from advisor.core.workload import PlanRequest, Speculation

_DRAFTS = "speculative_decoding"


def advice(
    request: PlanRequest, given: Given, names: Sequence[str] = (), objective: str | None = None
) -> dict[str, Any]:
    """Advice on the plan of a request, in its API form: the techniques named, or all of the
    catalogue, by the request's objective or another. InvalidInput where the request cannot be
    planned."""
    subject = subject_of(request, objective)
    found = outcome(subject.plan)
    before = found if isinstance(found, Outcome) else None
    wanted = [name for name in catalogue() if not names or name in names]
    ranked = sorted(
        (each for name in wanted for each in tried(name, subject, before, given)),
        key=lambda each: each.order,
    )
    together = combinations(subject, before, ranked)
    kinds = batchings(subject) if not names or "continuous_batching" in names else []
    details = next((each.details for each in ranked if each.technique == DISAGGREGATION), None)
    price = subject.device.price
    currency = None if price is None else price.currency
    return {
        "inputs": _inputs(request, given, wanted) | {"objective": subject.request.objective},
        "objective": subject.request.objective,
        "measure": measure_of(subject.request),
        "before": None if before is None else dict(before.figures),
        "reason": found if isinstance(found, str) else None,
        "techniques": [_answer(subject, each, currency) for each in ranked],
        "combinations": [
            {**each, "text": wording.combination(each, currency)} for each in together
        ],
        "batching": kinds,
        "disaggregation": details,
        "not_computable": _not_computable(ranked),
        "explanation": [
            *_summary(before, ranked, currency),
            *wording.batching(kinds),
            *wording.disaggregation(details),
        ],
        "assumptions": [*explanation.assumptions(subject.plan), *_assumptions(request, subject)],
        "warnings": [dict(each) for each in request.model.warnings],
        "planner_version": __version__,
    }


def _inputs(request: PlanRequest, given: Given, names: Sequence[str]) -> dict[str, Any]:
    drafts, smaller = given.speculative, given.distilled_model
    return {
        "plan_id": None,
        "plan": answer.inputs(request),
        "techniques": list(names),
        "distilled_model": None if smaller is None else smaller.name,
        "speculative": None if drafts is None else dict(vars(drafts)),
        "prefix_cache_hit": given.prefix_cache_hit,
    }


def _answer(subject: Subject, one: Tried, currency: str | None) -> dict[str, Any]:
    technique, good = catalogue()[one.technique], one.good
    rate = None
    if one.technique == _DRAFTS and one.effect is not None:
        rate = pays_from(subject, Speculation(**one.setting))
    return {
        "name": technique.name,
        "title": technique.title,
        "family": technique.family,
        "setting": dict(one.setting),
        "applies": one.effect is not None,
        "reason": one.reason,
        "verdict": one.verdict,
        "before": _figures(one.before),
        "after": _figures(one.after),
        "effect": None if one.effect is None else one.effect.as_dict(),
        "in_place": _figures(one.in_place),
        "good_case": None
        if good is None or good.effect is None
        else {
            "setting": dict(good.setting),
            "after": _figures(good.after),
            "effect": good.effect.as_dict(),
        },
        "pays_from_acceptance_rate": rate,
        "text": wording.in_words(one, currency),
    }


def _figures(one: Outcome | None) -> dict[str, Any] | None:
    return None if one is None else dict(one.figures)


def _not_computable(ranked: Sequence[Tried]) -> list[dict[str, str]]:
    names = dict.fromkeys(each.technique for each in ranked if each.effect is not None)
    return [{"technique": name, "detail": catalogue()[name].not_computed} for name in names]


def _summary(before: Outcome | None, ranked: Sequence[Tried], currency: str | None) -> list[str]:
    """The plan as it is, and every technique that helps or may help."""
    now = "No layout fits as it is."
    if before is not None:
        now = f"The plan as it is: {wording.pools_in_short(before.figures)}."
    helping = [each for each in ranked if each.verdict in ("helps", "depends")]
    if not helping:
        return [now, "No technique that applies helps its objective."]
    return [now, *(wording.in_words(each, currency) for each in helping)]


def _assumptions(request: PlanRequest, subject: Subject) -> list[dict[str, str]]:
    stated = {
        "planned_anew": f"`after` is the plan that the planner makes on {subject.device.name} with "
        "the technique, its formats, stages and attention groups otherwise as they are, tensor "
        "parallelism and replicas chosen anew as far as the request leaves them. `in_place` is "
        "the technique on the same accelerators, split as they are.",
        "two_pools": "Percentiles of a prefill pool, of the transfer and of a decode pool are "
        "added; means are exact. A transfer has the link to itself.",
        "batches": "Latencies of static batches are simulated from a fixed seed; without any "
        "batch one request runs at a time.",
    }
    objective = subject.request.objective
    if objective != request.objective:
        stated["asked_anew"] = (
            f"`before` is the plan for objective {objective} on the hardware, and in the formats, "
            f"of the one for objective {request.objective}."
        )
    if objective == "balanced":
        stated["balanced_by_product"] = (
            "Plans are compared by cost times latency, under its square root: `before` and `after` "
            "are those where it is least, which need not be the knee that is recommended."
        )
    if request.workload.start == "burst":
        stated["steady_for_burst"] = (
            "The burst is taken as the steady loop of as many clients: its ramp-up and drain are "
            "not in these figures."
        )
    return [{"code": code, "detail": detail} for code, detail in stated.items()]
