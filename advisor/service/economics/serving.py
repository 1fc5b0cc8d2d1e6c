"""Prices of requests, and what it costs to serve them."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from advisor.core.economics.figures import quotient
from advisor.core.economics.planned import PlannedServing
from advisor.core.economics.purchase import Spot, reserved_pays_from
from advisor.core.economics.request_price import RequestPriceInputs, request_price
from advisor.core.economics.serving_cost import (
    Allocation,
    ServingCost,
    ServingCostInputs,
    break_even_utilization,
    parity_tokens_per_s,
    serving_cost,
)
from advisor.core.errors import FieldError, InvalidInput
from advisor.service.database import Database
from advisor.service.economics.answers import (
    Body,
    Message,
    Sources,
    answer,
    doubt_units,
    plan_figures,
    refuse_both,
    require,
    token_prices,
)

_RATES = (
    "accelerators", "output_tokens_per_s", "input_tokens_per_s", "cached_input_tokens_per_s",
    "requests_per_s", "utilization",
)  # fmt: skip
NOT_IN_HOURS = (
    "network, storage and traffic", "staff", "software licences", "spares", "taxes",
    "retries and aborted requests, which cost and earn nothing",
)  # fmt: skip

_RESERVED_IS_PAID_IDLE = FieldError(
    "/billing", "A reservation is paid busy or idle: its billing is always_on.", "scale_to_zero",
    ["always_on"],
)  # fmt: skip


def price_of_request(body: Body) -> dict[str, Any]:
    """What a request costs at token prices."""
    sources = Sources.of(body)
    prices = token_prices(body, sources)
    found = request_price(priced(body, prices))
    assumptions = cache_assumption(prices, bool(body["cached_input_tokens"]))
    missing = {} if found.blended_per_mtok is not None else {"blended_per_mtok": "no tokens"}
    figures = vars(found) | {"null_reasons": missing}
    return answer(figures, body, sources, assumptions=assumptions,
                  not_included=("cache writes and cache storage", "taxes"))  # fmt: skip


def cost_of_serving(database: Database, body: Body) -> dict[str, Any]:
    """What an hour, a million tokens and a request cost to serve."""
    sources = Sources.of(body)
    plan = None
    if body["plan_id"] is None:
        inputs, purchase = _bought(body, sources)
        detail = "Whether these rates hold within a latency bound is the caller's own measurement."
        sources.warn("slo_unverified", detail)
    else:
        plan = plan_figures(database, body["plan_id"], sources)
        inputs, purchase = _planned(body, plan, sources)
    found = serving_cost(inputs)
    doubt_units({"per_million_output_tokens": found.per_million_output_tokens}, sources)
    figures = (
        vars(found)
        | ({} if plan is None else _not_of_a_plan(found))
        | {
            "allocation": _shares(found),
            "purchase": purchase,
            "parity": _parity(body, found, None if plan is not None else inputs),
            "plan": None if plan is None else plan.as_dict(),
        }
    )
    return answer(figures, body, sources, assumptions=_billing(inputs, found.allocation, plan),
                  not_included=NOT_IN_HOURS)  # fmt: skip


def priced(body: Body, prices: dict[str, Decimal | None]) -> RequestPriceInputs:
    """A request's tokens at token prices, for the core."""
    names = ("uncached_input_tokens", "cached_input_tokens", "visible_output_tokens",
             "reasoning_output_tokens", "batch_discount")  # fmt: skip
    tokens = {name: body[name] for name in names}
    given: dict[str, Any] = tokens | prices
    return RequestPriceInputs(**given, currency=body["currency"])


def cache_assumption(prices: dict[str, Decimal | None], cached: bool) -> list[Message]:
    """That cached tokens cost what others do, where nothing else is known."""
    if prices["cached_input_per_mtok"] is not None or not cached:
        return []
    return [("cached_at_input_price", "No cached price is known: cached tokens cost what new do.")]


def _bought(body: Body, sources: Sources) -> tuple[ServingCostInputs, dict[str, Any]]:
    """The core's inputs from rates of the caller's own, and what the way of buying makes of the
    price."""
    require(body, ("accelerators", "output_tokens_per_s", "utilization", "billing"), "a plan_id")
    on_demand = _hour(body, sources)
    if on_demand is None:
        require(body, ["accelerator_hour_price"], "accelerator_offer or a plan_id")
    assert on_demand is not None
    price, purchase = _purchase(body, on_demand, sources)
    return _serving_inputs(body, accelerator_hour_price=price), purchase


def _hour(body: Body, sources: Sources) -> Decimal | None:
    """The price of an accelerator-hour that a request gives or names."""
    if body["accelerator_offer"] is None:
        given: Decimal | None = body["accelerator_hour_price"]
        return given
    refuse_both(body, "accelerator_offer", ["accelerator_hour_price"])
    offer = sources.accelerator_offer(body["accelerator_offer"])
    if offer.reserved and body["billing"] == "scale_to_zero":
        raise InvalidInput(_RESERVED_IS_PAID_IDLE)
    compared = [name for name in ("spot", "reserved") if body[name] is not None]
    if compared and offer.kind != "on_demand":
        detail = f"{compared[0]} compares with a price on demand, and this one is {offer.kind}."
        raise InvalidInput(FieldError("/accelerator_offer", detail, given=offer.name))
    return sources.listed(offer)


def _serving_inputs(body: Body, **changes: Any) -> ServingCostInputs:
    names = (*_RATES, "billing", "output_to_input_cost_ratio", "cached_to_input_cost_ratio",
             "cold_starts_per_day", "cold_start_minutes", "currency")  # fmt: skip
    return ServingCostInputs(**({name: body[name] for name in names} | changes))


def _purchase(body: Body, on_demand: Decimal, sources: Sources) -> tuple[Decimal, dict[str, Any]]:
    """The price of an hour that is used, and how it compares."""
    spot, reserved = body["spot"], body["reserved"]
    price, saving, pays_from = on_demand, None, None
    if spot is not None:
        refuse_both(body, "spot", ["reserved"])
        try:
            bought = Spot(**spot)
        except InvalidInput as refused:
            raise refused.under("/spot") from None
        price, saving = bought.effective_per_hour(on_demand), bought.saving(on_demand)
        if bought.price_per_hour > on_demand:
            sources.warn("spot_above_on_demand", "The spot price exceeds the on-demand price.")
    elif reserved is not None:
        if body["billing"] == "scale_to_zero":
            raise InvalidInput(_RESERVED_IS_PAID_IDLE)
        price = reserved["price_per_hour"]
        found = reserved_pays_from(price, on_demand)
        pays_from = None if found is None else float(found)
        saving = float(1 - Fraction(price) / Fraction(on_demand)) if on_demand else None
    return price, {
        "accelerator_hour_price": price,
        "on_demand_hour_price": on_demand,
        "saving": saving,
        "pays_from_busy_share": pays_from,
    }


def _planned(
    body: Body, plan: PlannedServing, sources: Sources
) -> tuple[ServingCostInputs, dict[str, Any]]:
    """The core's inputs from a plan: its bill over what it serves, nothing idle left out."""
    refuse_both(body, "plan_id", (*_RATES, "billing"))
    on_demand = _hour(body, sources)
    if on_demand is None:
        on_demand = quotient(Fraction(sources.bill(plan)) / plan.accelerators)
    price, purchase = _purchase(body, on_demand, sources)
    rate, prompt = plan.mean_requests_per_s, plan.input_tokens
    inputs = _serving_inputs(
        body, accelerator_hour_price=price, accelerators=plan.accelerators,
        output_tokens_per_s=rate * plan.output_tokens, utilization=Fraction(1),
        billing="always_on", input_tokens_per_s=rate * prompt * (1 - plan.cached_share),
        cached_input_tokens_per_s=rate * prompt * plan.cached_share, requests_per_s=rate,
        prefill_time_share=plan.prefill_time_share,
    )  # fmt: skip
    return inputs, purchase


def _not_of_a_plan(found: ServingCost) -> dict[str, Any]:
    """What a plan does not say: it is made for a load, not for full use."""
    name = "per_million_output_tokens_at_full_use"
    detail = "A plan is of one load: self-host-vs-api finds the most that it serves."
    return {name: None, "null_reasons": found.null_reasons | {name: detail}}


def _shares(found: ServingCost) -> dict[str, Any]:
    shares = vars(found.allocation)
    return {k: float(v) if isinstance(v, Fraction) else v for k, v in shares.items()}


def _parity(
    body: Body, found: ServingCost, inputs: ServingCostInputs | None
) -> dict[str, Any] | None:
    """What it takes to match an API's blended price; `inputs` where they say what full use is."""
    api = body["api_per_mtok"]
    if api is None:
        return None
    needed = parity_tokens_per_s(found.per_hour, api)
    total = found.per_million_total_tokens
    share = None
    if total is not None and inputs is not None:
        full = serving_cost(replace(inputs, utilization=Fraction(1))).per_million_total_tokens
        assert full is not None
        starting = inputs.starting_share if inputs.billing == "scale_to_zero" else None
        share = break_even_utilization(full, api, starting)
    return {
        "tokens_per_s": None if needed is None else float(needed),
        "utilization": None if share is None else float(share),
        "self_host_cheaper": None if total is None else total < api,
    }


def _billing(
    inputs: ServingCostInputs, shares: Allocation, plan: PlannedServing | None
) -> list[Message]:
    if plan is not None:
        load = "The whole bill of the plan, busy or idle, over what it serves at its mean rate."
        found = [("plan_load", load)]
        if shares.basis == "step_time":
            split = "Prompts and decode bear the bill by the time they take in the plan's steps."
            found.append(("step_time", split))
        return found
    if inputs.billing == "always_on":
        return [("idle_is_billed", "Idle hours are billed: utilization divides the tokens.")]
    return [("idle_is_free", "Idle hours are not billed; cold starts are.")]
