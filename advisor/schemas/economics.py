"""Break-even of a provider: what goes in and what comes out."""

from __future__ import annotations

from typing import Any

from marshmallow import post_load

from advisor.core.economics.break_even import BreakEvenInputs
from advisor.core.economics.figures import LARGEST_FIGURE, MOST_DECIMALS
from advisor.schemas.base import Answer, Closed
from advisor.schemas.common import MessageAnswer
from advisor.schemas.containers import ListOf, MapOf, Section
from advisor.schemas.fields import (
    Choice,
    Currency,
    DecimalText,
    Flag,
    Money,
    Text,
    Whole,
    WholeText,
)


def _amount(doc: str, **kwargs: Any) -> Money:
    return Money(doc, LARGEST_FIGURE, places=MOST_DECIMALS, **kwargs)


class BreakEvenBody(Closed):
    """A model's training cost, and what a call brings in and costs. One currency throughout."""

    training_cost = _amount("What developing the model cost in all.", required=True)
    price_per_call = _amount("What a call brings in.", required=True)
    serving_cost_per_call = _amount(
        "What a call costs to serve. Left out: the plain condition T <= p N.",
        allow_none=True, load_default=None,
    )  # fmt: skip
    calls = Whole(
        "Calls expected to be sold in all.", 0, LARGEST_FIGURE, allow_none=True, load_default=None
    )
    currency = Currency(load_default="USD")

    @post_load
    def as_inputs(self, data: dict[str, Any], **_: Any) -> BreakEvenInputs:
        """The core's inputs."""
        return BreakEvenInputs(**data)


class BreakEvenInputsAnswer(Answer):
    """The inputs, every default filled in."""

    training_cost = DecimalText()
    price_per_call = DecimalText()
    serving_cost_per_call = DecimalText(allow_none=True)
    calls = WholeText(allow_none=True)
    currency = Currency()


class ConditionAnswer(Answer):
    """The founding condition, with the figures in place."""

    expression = Text("Training cost <= price (less serving cost) x calls.")
    holds = Flag("null while `calls` is not given.", allow_none=True)


class BreakEvenAnswer(Answer):
    """Whether, and after how many calls, a model pays for its training."""

    status = Choice("`never`: no number of calls recovers the training cost.", ("ok", "never"))
    reason = Text("Why it is `never`, or what else to know.", allow_none=True)
    condition = Section(ConditionAnswer)
    break_even_calls = WholeText("Least number of calls that recovers it.", allow_none=True)
    break_even_calls_without_serving_cost = WholeText(
        "The same by the price alone.", allow_none=True
    )
    contribution_per_call = DecimalText("Price less serving cost.")
    gross_margin = DecimalText("Contribution over revenue.", allow_none=True)
    markup_on_cost = DecimalText("Contribution over serving cost.", allow_none=True)
    profit = DecimalText("Of `calls`, training paid.", allow_none=True)
    price_needed = DecimalText("Price at which `calls` just recover it.", allow_none=True)
    training_cost_applies = Flag("False for a third party that hosts an open model.")
    currency = Currency()
    null_reasons = MapOf(Text(), "Why a figure is null, by field.")
    not_included = ListOf(Text(), "What the sum leaves out.")
    inputs = Section(BreakEvenInputsAnswer)
    assumptions = ListOf(Section(MessageAnswer), "What the figures rest on.")
    warnings = ListOf(Section(MessageAnswer))
    planner_version = Text("Version of the service.")
