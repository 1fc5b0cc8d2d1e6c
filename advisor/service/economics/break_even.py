"""Break-even and which input matters most, with the serving cost given or taken from a plan."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

from advisor.core.economics.break_even import break_even as compute_break_even
from advisor.core.economics.break_even_inputs import BreakEvenInputs
from advisor.core.economics.break_even_words import not_included
from advisor.core.economics.cash_flow import LONGEST_HORIZON_MONTHS
from advisor.core.economics.demand import calls_sold
from advisor.core.economics.figures import plain
from advisor.core.economics.planned import HOURS_PER_MONTH, PlannedServing
from advisor.core.economics.sensitivity import sensitivity as compute_sensitivity
from advisor.service.database import Database
from advisor.service.economics.answers import (
    Body,
    Message,
    Sources,
    answer,
    plan_figures,
    refuse_both,
)

_OPTIMISTIC_AFTER_MONTHS = 12


def break_even(database: Database, body: Body) -> dict[str, Any]:
    """Whether, when and after how many calls a model pays for its training."""
    sources = Sources.of(body)
    inputs, plan = _inputs(database, body, sources)
    found = compute_break_even(inputs)
    _warn(inputs, found.months, plan, sources)
    figures = found.as_dict() | {"plan": None if plan is None else plan.as_dict()}
    return answer(
        figures, body, sources, assumptions=_assumptions(inputs, plan),
        not_included=found.not_included,
    )  # fmt: skip


def sensitivity(database: Database, body: Body) -> dict[str, Any]:
    """The tornado of a break-even."""
    sources = Sources.of(body)
    inputs, plan = _inputs(database, body, sources)
    found = compute_sensitivity(inputs, body["swing"])
    months = found.base if found.measure == "months" else None
    _warn(inputs, months, plan, sources)
    figures = found.as_dict() | {"plan": None if plan is None else plan.as_dict()}
    one_by_one = ("one_at_a_time", "One input is swung at a time, all others stay as they are.")
    return answer(
        figures, body, sources, assumptions=(one_by_one, *_assumptions(inputs, plan)),
        not_included=not_included(inputs),
    )  # fmt: skip


def _inputs(
    database: Database, body: Body, sources: Sources
) -> tuple[BreakEvenInputs, PlannedServing | None]:
    """The core's inputs, and the plan that the serving cost is from."""
    given = {k: v for k, v in body.items() if k not in ("plan_id", "swing", "exchange_rate")}
    if (body["horizon_months"] or 0) > LONGEST_HORIZON_MONTHS:
        given["horizon_months"] = LONGEST_HORIZON_MONTHS
        detail = f"The horizon is cut to {LONGEST_HORIZON_MONTHS} months: nobody can see further."
        sources.warn("horizon_cut", detail)
    if body["plan_id"] is None:
        return BreakEvenInputs(**given), None
    refuse_both(body, "plan_id", ["serving_cost_per_call"])
    plan = plan_figures(database, body["plan_id"], sources)
    cost = plan.per_request(sources.bill(plan))
    return BreakEvenInputs(**(given | {"serving_cost_per_call": cost})), plan


def _warn(
    inputs: BreakEvenInputs, months: float | Fraction | None, plan: PlannedServing | None,
    sources: Sources,
) -> None:  # fmt: skip
    long = months is not None and months > _OPTIMISTIC_AFTER_MONTHS
    if long and not inputs.price_decline_per_month:
        detail = (
            "The price is taken to stay for more than a year, while prices of equal quality have "
            "fallen manifold within one: price_decline_per_month says by how much."
        )
        sources.warn("price_held_for_long", detail)
    thin = inputs.revenue_per_call and 0 < inputs.contribution < inputs.revenue_per_call / 10**6
    if thin:
        detail = "The contribution is less than a millionth of the price: any change decides."
        sources.warn("extreme_sensitivity", detail)
    _warn_of_calls_never_sold(inputs, sources)
    if plan is not None and inputs.calls_per_month is not None:
        _warn_of_another_load(inputs.calls_per_month, plan, sources)


def _warn_of_calls_never_sold(inputs: BreakEvenInputs, sources: Sources) -> None:
    """Warn of `calls` that the rate of sales does not reach within the horizon."""
    if inputs.calls is None or inputs.calls_per_month is None:
        return
    months = inputs.horizon_months or LONGEST_HORIZON_MONTHS
    sold = calls_sold(inputs.calls_per_month, inputs.monthly_growth, Decimal(months))
    if sold < inputs.calls:
        detail = f"In {months} months {sold:.6g} calls are sold at this rate, not all of calls."
        sources.warn("calls_beyond_sales", detail)


def _warn_of_another_load(asked: Fraction, plan: PlannedServing, sources: Sources) -> None:
    """Warn of calls that are more, or fewer, than the plan's bill is spread over."""
    planned = plan.requests_per_month
    served = f"The plan serves {float(planned):.6g} requests in {HOURS_PER_MONTH} hours"
    if asked > planned:
        sources.warn("beyond_plan_load", f"{served}, fewer than are sold.")
    elif asked < planned:
        detail = f"{served}, more than are sold: its bill makes each of these dearer."
        sources.warn("below_plan_load", detail)


def _assumptions(inputs: BreakEvenInputs, plan: PlannedServing | None) -> list[Message]:
    found = [("every_call_served", "Every call that is counted is served; all but free ones paid.")]
    if not inputs.prices_change:
        found.append(("steady_prices", "Price and serving cost per call stay as they are."))
    if inputs.calls_per_month is not None:
        months = "A month's money counts at its end; months are those of calls_per_month."
        found.append(("month_ends", months))
        if inputs.horizon_months is None:
            until = f"Payback is sought for {LONGEST_HORIZON_MONTHS} months."
            found.append(("longest_horizon", until))
    if plan is not None:
        cost = plain(inputs.serving_cost_per_call or Decimal(0))
        detail = f"A call is a request of the plan and costs {cost} {inputs.currency} at its load."
        found.append(("plan_load", detail))
    return found
