"""What training costs, what an owned accelerator costs, and which size of model is cheapest."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from advisor.core.economics.figures import POSITIVE, POSITIVE_SHARE, SHARE
from advisor.core.economics.model_size import PARAMETERS, TOKENS, ServingPrices
from advisor.core.economics.ownership import INTEREST, LIFE, POWER, PUE
from advisor.core.economics.scaling_laws import SCALING_LAWS
from advisor.core.economics.training import MFU_BAND, OVERHEAD, SEQUENCE, SIZE, TYPICAL_MFU
from advisor.core.hardware import ARITHMETIC
from advisor.schemas.base import Answer, Closed
from advisor.schemas.containers import ListOf, Section
from advisor.schemas.economics.fields import (
    Amount,
    EconomicsAnswer,
    Exact,
    Quantity,
    exchange_rate_field,
    inputs_answer,
    offer_field,
)
from advisor.schemas.fields import Choice, Currency, DecimalText, Name, Number, Text, Whole


def _whole(doc: str, most: Fraction) -> Whole:
    return Whole(doc, 1, int(most), allow_none=True, load_default=None)


class TrainingCostBody(Closed):
    """A training run on accelerators of the catalogue, or of a peak of one's own."""

    parameters_active = Exact("Active for a token.", POSITIVE, required=True)
    tokens = Exact("Trained on.", POSITIVE, required=True)
    accelerator = Name("Hardware profile, whose peak counts.", allow_none=True, load_default=None)
    precision = Choice("Arithmetic of the profile's peak.", ARITHMETIC, load_default="bf16")
    peak_tflops = Exact("Dense peak of one accelerator, in place of `accelerator`.", POSITIVE)
    mfu = Exact(
        f"Utilization of the peak; left out, and no hours: {float(TYPICAL_MFU)}.", POSITIVE_SHARE
    )
    accelerator_hours = Exact("Where they are known, in place of `mfu`.", POSITIVE)
    price_per_hour = Amount("Of one accelerator; left out: the profile's, or `accelerator_offer`.")
    accelerator_offer = offer_field("A listed price", "`price_per_hour`")
    overhead_multiplier = Exact(
        "Whole cost over that of the final run: failed runs, ablations, data, staff.",
        OVERHEAD, Fraction(1),
    )  # fmt: skip
    num_layers = _whole("With the next two: what attention adds.", SIZE.most)
    hidden_size = _whole("Width of the model.", SIZE.most)
    sequence_tokens = _whole("Length of a sequence in training.", SEQUENCE.most)
    currency = Currency(load_default="USD")
    exchange_rate = exchange_rate_field("the profile or the listed price")


class ForwardAnswer(Answer):
    """The forward pass alone: a ceiling that prefill can approach and decode cannot."""

    flop_per_token = Quantity("2 per active parameter.")
    tokens_per_s = Quantity("Of one accelerator at this utilization.")
    per_million_tokens = DecimalText("At this price and utilization.")


class TrainingCostAnswer(EconomicsAnswer):
    """What training takes and costs."""

    flop = Number("6 per active parameter and token.")
    forward_flop = Number("2 of them.")
    backward_flop = Number("4 of them.")
    forward_share = Number("Of the training.")
    accelerator_hours = Number("Of one accelerator.")
    implied_mfu = Number("Utilization that this takes.")
    cost = DecimalText("In all, `overhead_multiplier` counted.")
    cost_range = ListOf(
        DecimalText(),
        f"Least and most, at an MFU of {float(MFU_BAND[1])} and {float(MFU_BAND[0])}; the cost, "
        "where hours are known.",
    )
    final_run_cost = DecimalText("Of the final run.")
    forward = Section(ForwardAnswer)
    inference_tokens_equal_to_training = Quantity("Served tokens that take as much compute.")
    attention_ratio = Number("What attention adds, over `flop`; not counted.", allow_none=True)
    inputs = Section(inputs_answer(TrainingCostBody))


class OwnershipBody(Closed):
    """An accelerator that is bought, and what renting it would cost."""

    capex = Amount("Price of one.", required=True)
    life_years = Exact("Years in use.", LIFE, required=True)
    price_per_kwh = Amount("Of electricity.", required=True)
    residual_share = Exact("Of its price, what is left at the end.", SHARE, Fraction(0))
    cost_of_capital = Exact(
        "By the year; 0: written off in a straight line.", INTEREST, Fraction(0)
    )
    power_kw = Exact("Drawn or provisioned, all in.", POWER)
    tdp_w = Exact("In place of `power_kw`.", POWER)
    load = Exact("Share of the TDP drawn.", SHARE)  # type: ignore[assignment]
    pue = Exact("Power of the building over that of the hardware.", PUE)
    host_overhead_w = Exact("Host power for each accelerator, with `tdp_w`.", POWER)
    other_cost_per_year = Amount("Hosting, licences, staff, spares.", Decimal(0))
    rent_per_hour = Amount("Of the rented alternative.")
    accelerator_offer = offer_field("A listed price", "`rent_per_hour`")
    currency = Currency(load_default="USD")
    exchange_rate = exchange_rate_field("the listed price")


class OwnershipPartsAnswer(Answer):
    """What an hour is made of."""

    capital = DecimalText()
    power = DecimalText()
    other = DecimalText()


class OwnershipAnswer(EconomicsAnswer):
    """What an owned accelerator costs."""

    per_hour = DecimalText("Busy or idle.")
    by_part = Section(OwnershipPartsAnswer)
    per_hour_straight_line = DecimalText("Without a cost of capital.")
    per_year = DecimalText("Of 8,760 hours.")
    power_kw = Number("Drawn, all in.")
    power_share = Number("Of the cost; null: there is none.", allow_none=True)
    break_even_busy_share = Number(
        "Share of the hours that a rented one would run from which owning is cheaper; null: never, "
        "or no rent given.",
        allow_none=True,
    )
    inputs = Section(inputs_answer(OwnershipBody))


class ServingPricesBody(Closed):
    """What a FLOP costs when training and when serving."""

    training_price_per_hour = Amount("Of one accelerator.", required=True)
    serving_price_per_hour = Amount("Of one accelerator.", required=True)
    training_peak_tflops = Exact("Dense.", POSITIVE, required=True)
    serving_peak_tflops = Exact("Dense.", POSITIVE, required=True)
    output_share = Exact("Of the served tokens, those decoded.", SHARE, required=True)
    training_mfu = Exact("Utilization.", POSITIVE_SHARE, ServingPrices.training_mfu)
    input_mfu = Exact("Utilization of prefill.", POSITIVE_SHARE, ServingPrices.input_mfu)
    output_mfu = Exact("Utilization of decode.", POSITIVE_SHARE, ServingPrices.output_mfu)


class InferenceAwareSizeBody(Closed):
    """A model whose quality is wanted, and how much will be served."""

    reference_parameters = Exact("Of a dense model.", PARAMETERS, required=True)
    inference_tokens = Exact("Served over its life, prompt and output.", TOKENS, required=True)
    constants = Choice("Set of constants of the scaling law.", tuple(SCALING_LAWS), required=True)
    alternative_parameters = Exact("Another size to look at.", PARAMETERS)
    prices = Section(ServingPricesBody, "To count money, not FLOP.", allow_none=True,
                     load_default=None)  # fmt: skip
    currency = Currency(load_default="USD")


class SizedAnswer(Answer):
    """A model of that quality."""

    status = Choice("`infeasible`: no amount of data brings this size there.", ("ok", "infeasible"))
    parameters = Number("Its size.")
    tokens = Number("To train on.", allow_none=True)
    tokens_per_parameter = Number("Tokens over parameters.", allow_none=True)
    flop = Number("Training and serving.", allow_none=True)
    cost = DecimalText("Training and serving; null without prices.", allow_none=True)
    saving = Number("Share of the reference's cost, or of its FLOP without prices.",
                    allow_none=True)  # fmt: skip
    saving_flop = Number("Of the reference's FLOP.", allow_none=True)


class ConstantsAnswer(Answer):
    """L(N, D) = irreducible + size_factor / N^size_exponent + data_factor / D^data_exponent."""

    name = Choice("Of the set.", tuple(SCALING_LAWS))
    irreducible = Number("[nats per token]")
    size_factor = Number()
    size_exponent = Number()
    data_factor = Number()
    data_exponent = Number()
    source = Text()


class InferenceAwareSizeAnswer(EconomicsAnswer):
    """The cheapest size of that quality."""

    optimal_parameters = Number("Size of least cost.")
    optimal_tokens = Number("To train it on.")
    saving = Number("Share of the reference's cost.")
    loss = Number("Of both [nats per token].")
    reference = Section(SizedAnswer, "Trained at the least compute for its loss.")
    optimal = Section(SizedAnswer)
    alternative = Section(SizedAnswer, allow_none=True)
    constants = Section(ConstantsAnswer)
    inputs = Section(inputs_answer(InferenceAwareSizeBody))
