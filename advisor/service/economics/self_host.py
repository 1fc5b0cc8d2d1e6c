"""At which volumes an API or own replicas are cheaper."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from advisor.core.economics.figures import quotient
from advisor.core.economics.planned import HOURS_PER_MONTH, PlannedServing
from advisor.core.economics.request_price import request_price
from advisor.core.economics.self_host import SelfHostInputs, self_host
from advisor.core.economics.serving_cost import SECONDS_PER_HOUR
from advisor.core.errors import FieldError, InvalidInput
from advisor.service import plans
from advisor.service.database import Database
from advisor.service.economics.answers import (
    Body,
    Sources,
    answer,
    plan_figures,
    refuse_both,
    require,
    token_prices,
)
from advisor.service.economics.serving import NOT_IN_HOURS, cache_assumption, priced

_SECONDS_PER_MONTH = SECONDS_PER_HOUR * HOURS_PER_MONTH
_OWN = ("replica_cost_per_month", "replica_capacity_requests_per_month")


def self_host_or_api(database: Database, body: Body, load: plans.Loader) -> dict[str, Any]:
    """The volumes at which an API or own replicas are cheaper. `load` reads a plan's request."""
    sources = Sources.of(body)
    prices = token_prices(body, sources)
    plan, own = _given(body) if body["plan_id"] is None else _planned(database, body, load, sources)
    tokens = _request_of(body, plan)
    price = quotient(Fraction(request_price(priced(tokens, prices)).per_request))
    inputs = SelfHostInputs(
        api_cost_per_request=price, min_replicas=body["min_replicas"], currency=body["currency"],
        **own,
    )  # fmt: skip
    if plan is None:
        detail = "Whether a replica's capacity holds within a latency bound is not checked here."
        sources.warn("slo_unverified", detail)
    figures = self_host(inputs).as_dict() | {
        "replica_cost_per_month": inputs.replica_cost_per_month,
        "replica_capacity_requests_per_month": inputs.replica_capacity_requests_per_month,
        "plan": None if plan is None else plan.as_dict(),
    }
    same = "Both serve the same model at the same quality, context, region and latency."
    month = f"A month of billing has {HOURS_PER_MONTH} hours; replicas run all of them."
    assumptions = [("like_with_like", same), ("month_hours", month)]
    if plan is not None:
        rate = float(inputs.replica_capacity_requests_per_month / _SECONDS_PER_MONTH)
        served = (
            f"A replica serves up to {rate:.6g} requests/s: at more its plan would miss an SLO or "
            "exceed max_utilization. Spare replicas are overhead."
        )
        assumptions.append(("plan_capacity", served))
    assumptions += cache_assumption(prices, bool(tokens["cached_input_tokens"]))
    return answer(
        figures, body, sources, assumptions=assumptions,
        not_included=("training and fine-tuning", "moving from one to the other", *NOT_IN_HOURS),
    )  # fmt: skip


Replicas = tuple[PlannedServing | None, dict[str, Any]]


def _given(body: Body) -> Replicas:
    """What a replica costs and serves in a month, for the core, as the request has it."""
    require(body, (*_OWN, "input_tokens", "output_tokens"), "a plan_id")
    names = (*_OWN, "overhead_per_month", "requests_per_month")
    return None, {name: body[name] for name in names} | {
        "peak_to_mean": body["peak_to_mean"] or Fraction(1)
    }


def _planned(database: Database, body: Body, load: plans.Loader, sources: Sources) -> Replicas:
    """The same of a plan, at the most that it serves within its SLOs. Its load is the volume to
    compare at, where none is given."""
    refuse_both(body, "plan_id", (*_OWN, "input_tokens", "output_tokens", "cached_input_share"))
    plan = plan_figures(database, body["plan_id"], sources)
    most = Fraction(repr(plans.capacity(database, plan.plan_id, load)))
    if not most:
        detail = "This plan meets its SLOs under no load that does not wait for its answers."
        raise InvalidInput(FieldError("/plan_id", detail, given=plan.plan_id))
    replica = plan.replica_cost_per_month(sources.bill(plan))
    serving, asked = plan.replicas - plan.spare_replicas, body["requests_per_month"]
    return plan, {
        "replica_cost_per_month": replica,
        "replica_capacity_requests_per_month": most / serving * _SECONDS_PER_MONTH,
        "overhead_per_month": body["overhead_per_month"] + plan.spare_replicas * replica,
        "peak_to_mean": body["peak_to_mean"] or plan.peak_to_mean,
        "requests_per_month": plan.requests_per_month if asked is None else asked,
    }


def _request_of(body: Body, plan: PlannedServing | None) -> dict[str, Any]:
    """The tokens of a request, as a request price takes them."""
    prompt = body["input_tokens"] if plan is None else plan.input_tokens
    cached = (body["cached_input_share"] or Fraction(0)) if plan is None else plan.cached_share
    return {
        "uncached_input_tokens": prompt * (1 - cached),
        "cached_input_tokens": prompt * cached,
        "visible_output_tokens": body["output_tokens"] if plan is None else plan.output_tokens,
        "reasoning_output_tokens": Fraction(0),
        "batch_discount": Fraction(0),
        "currency": body["currency"],
    }
