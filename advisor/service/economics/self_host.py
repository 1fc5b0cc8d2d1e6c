"""At which volumes an API or own replicas are cheaper."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from advisor.core.economics.figures import quotient
from advisor.core.economics.planned import HOURS_PER_MONTH, PlannedServing
from advisor.core.economics.request_price import request_price
from advisor.core.economics.self_host import SelfHostInputs, self_host
from advisor.service.database import Database
from advisor.service.economics.answers import (
    Body,
    Sources,
    answer,
    plan_figures,
    refuse_both,
    require,
    token_prices,
    warn_without_slo,
)
from advisor.service.economics.serving import NOT_IN_HOURS, cache_assumption, priced


def self_host_or_api(database: Database, body: Body) -> dict[str, Any]:
    """The volumes at which an API or own replicas are cheaper."""
    sources = Sources.of(body)
    prices = token_prices(body, sources)
    plan, own = _replicas(database, body, sources)
    tokens = _request_of(body, plan)
    price = quotient(Fraction(request_price(priced(tokens, prices)).per_request))
    inputs = SelfHostInputs(
        api_cost_per_request=price, overhead_per_month=body["overhead_per_month"],
        min_replicas=body["min_replicas"], requests_per_month=body["requests_per_month"],
        currency=body["currency"], **own,
    )  # fmt: skip
    if plan is None:
        detail = "Whether a replica's capacity holds within a latency bound is not checked here."
        sources.warn("slo_unverified", detail)
    figures = self_host(inputs).as_dict() | {
        "plan": None if plan is None else plan.as_dict(),
        "prices_used": sources.prices_used,
    }
    same = "Both serve the same model at the same quality, context, region and latency."
    month = f"A month of billing has {HOURS_PER_MONTH} hours; replicas run all of them."
    assumptions = [("like_with_like", same), ("month_hours", month)]
    if plan is not None:
        served = (
            "A replica serves what it does at the plan's load, although it may have room for more."
        )
        assumptions.append(("plan_load", served))
    assumptions += cache_assumption(prices, bool(tokens["cached_input_tokens"]))
    return answer(
        figures, body, sources, assumptions=assumptions,
        not_included=("training and fine-tuning", "moving from one to the other", *NOT_IN_HOURS),
    )  # fmt: skip


def _replicas(
    database: Database, body: Body, sources: Sources
) -> tuple[PlannedServing | None, dict[str, Any]]:
    """What a replica costs and serves in a month, given or from a plan."""
    own = ("replica_cost_per_month", "replica_capacity_requests_per_month")
    if body["plan_id"] is None:
        require(body, (*own, "input_tokens", "output_tokens"), "a plan_id")
        steady = body["peak_to_mean"] or Fraction(1)
        return None, {name: body[name] for name in own} | {"peak_to_mean": steady}
    refuse_both(body, "plan_id", (*own, "input_tokens", "output_tokens", "cached_input_share"))
    plan = plan_figures(database, body["plan_id"])
    cost = sources.money(plan.replica_cost_per_month, plan.currency, "/plan_id")
    warn_without_slo(plan, sources)
    return plan, {
        "replica_cost_per_month": cost,
        "replica_capacity_requests_per_month": plan.replica_capacity_requests_per_month,
        "peak_to_mean": body["peak_to_mean"] or plan.peak_to_mean,
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
