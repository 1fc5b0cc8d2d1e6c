"""The price lists."""

from __future__ import annotations

from advisor.core.economics.purchase import KINDS
from advisor.schemas.base import Answer
from advisor.schemas.common import page_of
from advisor.schemas.fields import Choice, Currency, DecimalText, Text, Whole


class ListedAnswer(Answer):
    """What every listed price has."""

    name = Text("What requests call it.")
    provider = Text("Who offers it.")
    currency = Currency()
    as_of = Text("Day on which it was seen; null: not known.", allow_none=True)
    price_age_days = Whole("Days since then; null: not known.", allow_none=True)
    source = Text("Where it is from.")


class ApiPriceAnswer(ListedAnswer):
    """What an API charges for a million tokens."""

    model = Text("Repository of the model.")
    input_per_mtok = DecimalText()
    output_per_mtok = DecimalText()
    cached_input_per_mtok = DecimalText("null: none is published.", allow_none=True)


class AcceleratorPriceAnswer(ListedAnswer):
    """What an hour of one accelerator costs."""

    accelerator = Text("As the source names it.")
    hardware = Text("Hardware profile; null: the source does not say which.", allow_none=True)
    kind = Choice("How it is bought.", KINDS)
    amount_per_hour = DecimalText()
    offer = Text("The provider's name for it.")
    region = Text("The provider's name for it; empty: not stated.")


ApiPricePage = page_of(ApiPriceAnswer, "ApiPricePage")
AcceleratorPricePage = page_of(AcceleratorPriceAnswer, "AcceleratorPricePage")
