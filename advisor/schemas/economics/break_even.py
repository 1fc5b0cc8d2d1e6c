"""Break-even of a provider, and which of its inputs matters most."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from advisor.core.economics.break_even_inputs import RANGES
from advisor.core.economics.sensitivity import SWING, SWUNG
from advisor.schemas.base import Answer, Closed
from advisor.schemas.containers import ListOf, Section
from advisor.schemas.economics.fields import (
    STATUSES,
    Amount,
    Count,
    EconomicsAnswer,
    Exact,
    Figure,
    NullReasonsAnswer,
    Quantity,
    UsedPlanAnswer,
    exchange_rate_field,
    inputs_answer,
    plan_field,
)
from advisor.schemas.fields import (
    Choice,
    Currency,
    DecimalText,
    Flag,
    Number,
    Text,
    Whole,
    WholeText,
)

MOST_MONTHS = 100_000
ELASTICITY = RANGES["price_elasticity"]


def _changing(name: str, doc: str) -> Exact:
    return Exact(doc, RANGES[name], Fraction(0))


class BreakEvenBody(Closed):
    """A model's training cost, and what a call brings in and costs. One currency throughout."""

    training_cost = Amount("What developing the model cost in all.", required=True)
    price_per_call = Amount("What a call brings in.", required=True)
    serving_cost_per_call = Amount(
        "What a call costs to serve. Left out, and no plan: the plain condition T <= p N."
    )
    plan_id = plan_field()
    calls = Count("Calls expected to be sold in all.")
    calls_per_month = Exact("Calls sold in the first month.", RANGES["calls_per_month"])
    fixed_cost_per_month = Amount("Cost whatever is sold.", Decimal(0))
    one_off_cost = Amount("Spent at the start beside training.", Decimal(0))
    free_share = _changing("free_share", "Share of the calls that bring in nothing.")
    fee_share = _changing("fee_share", "Share of the revenue that payment and reselling take.")
    monthly_growth = _changing("monthly_growth", "Growth of the calls sold, by the month.")
    price_decline_per_month = _changing("price_decline_per_month", "Decline of the price.")
    cost_decline_per_month = _changing("cost_decline_per_month", "Decline of the serving cost.")
    annual_discount_rate = _changing("annual_discount_rate", "What money costs, by the year.")
    horizon_months = Whole(
        "Months that count, 600 at most: more are cut to that and warned of. Left out: payback is "
        "sought for 600 months, and there is no NPV.",
        1, MOST_MONTHS, allow_none=True, load_default=None,
    )  # fmt: skip
    price_elasticity = Exact(
        "By how many percent fewer calls are sold at a price one percent higher.", ELASTICITY
    )
    currency = Currency(load_default="USD")
    exchange_rate = exchange_rate_field("the plan")


class SensitivityBody(BreakEvenBody):
    """A break-even question, and by how much each of its inputs is swung."""

    swing = Exact("Share by which each input is lowered and raised.", SWING, required=True)


class ConditionAnswer(Answer):
    """The founding condition, with the figures in place."""

    expression = Text("Training cost <= price (less serving cost) x calls.")
    holds = Flag("null while `calls` is not given or time decides.", allow_none=True)


class BestPriceAnswer(Answer):
    """The price of most profit, whatever the training cost."""

    status = Choice("`unbounded`: there is no best price.", ("ok", "unbounded"))
    reason = Text("Why there is none.", allow_none=True)
    price_per_call = DecimalText(allow_none=True)
    calls = Quantity("Calls sold at it.", allow_none=True)
    profit = DecimalText("Training paid.", allow_none=True)


class BreakEvenAnswer(NullReasonsAnswer):
    """Whether, when and after how many calls a model pays for its training."""

    condition = Section(ConditionAnswer)
    condition_without_serving_cost = Section(ConditionAnswer, "The plain T <= p N.")
    break_even_calls = WholeText(
        "Least number of calls that recovers it, undiscounted.", allow_none=True
    )
    break_even_calls_without_serving_cost = WholeText(
        "The same of the training cost by the price alone.", allow_none=True
    )
    calls_per_month_to_cover_fixed_cost = WholeText(
        "Calls a month that pay for the fixed cost alone.", allow_none=True
    )
    months = Number("Until it is recovered, discounted.", allow_none=True)
    whole_months = Whole("The same, money counted at the end of months.", allow_none=True)
    months_undiscounted = Number("Until it is recovered, undiscounted.", allow_none=True)
    contribution_per_call = DecimalText("Price, free calls and fees counted, less serving cost.")
    gross_margin = DecimalText("Contribution over revenue.", allow_none=True)
    markup_on_cost = DecimalText("Contribution over serving cost.", allow_none=True)
    revenue = DecimalText("Of `calls`.", allow_none=True)
    serving_cost = DecimalText("Of `calls`.", allow_none=True)
    profit = DecimalText("Of `calls`, training paid.", allow_none=True)
    net_margin_after_training = DecimalText("Profit over revenue.", allow_none=True)
    training_cost_per_call = DecimalText("Of each of `calls`.", allow_none=True)
    roi_on_training = DecimalText("Profit over training cost.", allow_none=True)
    price_needed = DecimalText("Price at which `calls` just recover it.", allow_none=True)
    cost_needed = DecimalText("Serving cost of a call at which they do.", allow_none=True)
    npv = DecimalText("Worth today of the horizon's money.", allow_none=True)
    monthly_irr = Number("Monthly rate at which that is 0.", allow_none=True)
    training_cost_applies = Flag("False for a third party that hosts an open model.")
    best_price = Section(BestPriceAnswer, "Where an elasticity is given.", allow_none=True)
    plan = Section(UsedPlanAnswer, "What was taken from the plan.", allow_none=True)
    inputs = Section(inputs_answer(BreakEvenBody))


class EndAnswer(Answer):
    """Break-even with one input changed."""

    value = Figure("Of the input; money as a string.")
    at = Quantity("Of the measure; null unless `ok`.", allow_none=True)
    status = Choice("`infeasible`: the input cannot have that value.", STATUSES)


class BarAnswer(Answer):
    """One input of the tornado."""

    input = Choice("The input.", SWUNG)
    low = Section(EndAnswer, "Lowered.")
    high = Section(EndAnswer, "Raised.")
    swing = Quantity("Between both ends; null when one is open.", allow_none=True)
    open_ended = Flag("A swing gives no break-even at all.")
    elasticity = Number("Percent of the measure for one percent of the input.", allow_none=True)


class SensitivityAnswer(EconomicsAnswer):
    """The inputs of break-even by how much they matter."""

    measure = Choice("What is compared.", ("break_even_calls", "months"))
    base = Quantity("The measure as asked, not rounded up.", allow_none=True)
    tornado = ListOf(
        Section(BarAnswer),
        "Largest swing first, open ones before; last, those with no break-even at all.",
    )
    matters_most = Text(
        "The first of them; null where no swing gives a break-even.", allow_none=True
    )
    plan = Section(UsedPlanAnswer, "What was taken from the plan.", allow_none=True)
    inputs = Section(inputs_answer(SensitivityBody))
