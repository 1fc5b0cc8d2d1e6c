"""What requests cost at token prices and what serving costs, and which of the two is cheaper."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

from advisor.core.economics.figures import AMOUNT, POSITIVE, POSITIVE_SHARE, SHARE, Range
from advisor.core.economics.purchase import LOST, OVER
from advisor.core.economics.self_host import MOST_REPLICAS, PEAK
from advisor.core.economics.serving_cost import (
    A_DAY,
    ALLOCATIONS,
    BILLINGS,
    MOST_ACCELERATORS,
    RATIO,
)
from advisor.schemas.base import Answer, Closed
from advisor.schemas.containers import ListOf, Section
from advisor.schemas.economics.fields import (
    Amount,
    EconomicsAnswer,
    Exact,
    NullReasonsAnswer,
    Quantity,
    UsedPlanAnswer,
    exchange_rate_field,
    inputs_answer,
    offer_field,
    plan_field,
)
from advisor.schemas.fields import Choice, Currency, DecimalText, Flag, Number, Whole, WholeText

_PRICES = "`input_per_mtok` and `output_per_mtok`"


def _rate(doc: str, allowed: Range = AMOUNT) -> Exact:
    return Exact(doc, allowed)


def _section(schema: type[Closed], doc: str) -> Section:
    return Section(schema, doc, allow_none=True, load_default=None)


def _tokens(doc: str, **kwargs: Any) -> Exact:
    return Exact(doc, AMOUNT, None if kwargs else Fraction(0), **kwargs)


class RequestPriceBody(Closed):
    """Tokens of a request and prices of a million tokens, or the name of a listed API price."""

    uncached_input_tokens = _tokens("Input tokens that are new.", required=True)
    cached_input_tokens = _tokens("Input tokens that are found in the cache.")
    visible_output_tokens = _tokens("Output tokens that are shown.", required=True)
    reasoning_output_tokens = _tokens("Output tokens that nobody sees; billed all the same.")
    input_per_mtok = Amount("Price of a million input tokens.")
    cached_input_per_mtok = Amount("Of a million cached ones; left out: as other input.")
    output_per_mtok = Amount("Of a million output tokens.")
    api_offer = offer_field("An API price", _PRICES)
    batch_discount = Exact("Share that a batch saves.", SHARE, Fraction(0))
    currency = Currency(load_default="USD")
    exchange_rate = exchange_rate_field("the listed price")


class RequestPartsAnswer(Answer):
    """What each kind of token costs."""

    uncached_input = DecimalText()
    cached_input = DecimalText()
    visible_output = DecimalText()
    reasoning_output = DecimalText()


class RequestPriceAnswer(NullReasonsAnswer):
    """What a request costs."""

    per_request = DecimalText("In all.")
    blended_per_mtok = DecimalText("Of a million tokens in this mixture.", allow_none=True)
    by_part = Section(RequestPartsAnswer)
    per_request_without_cache = DecimalText("If every input token were new.")
    per_request_without_reasoning = DecimalText("If reasoning were not billed.")
    inputs = Section(inputs_answer(RequestPriceBody))


class SpotBody(Closed):
    """Spot capacity, with on-demand hours at `accelerator_hour_price` as fallback."""

    price_per_hour = Amount("Of one accelerator on spot.", required=True)
    fallback_share = Exact("Share of the hours that run on demand.", SHARE, Fraction(0))
    over_provision = Exact("Capacity kept over capacity needed.", OVER, Fraction(1))
    lost_work_share = Exact("Share of the work that interruptions lose.", LOST, Fraction(0))


class ReservedBody(Closed):
    """A reservation, paid busy or idle."""

    price_per_hour = Amount("Of one accelerator reserved.", required=True)


class ServingCostBody(Closed):
    """A plan, or accelerators with the tokens they serve within the SLO."""

    plan_id = plan_field()
    accelerator_hour_price = Amount("On demand, of one accelerator; left out: the plan's.")
    accelerator_offer = offer_field("A listed price", "`accelerator_hour_price`")
    accelerators = Whole("All of them.", 1, MOST_ACCELERATORS, allow_none=True, load_default=None)
    output_tokens_per_s = _rate("Of all accelerators, fully used.", POSITIVE)
    input_tokens_per_s = _rate("Likewise, those computed anew.")
    cached_input_tokens_per_s = _rate("Likewise, those found in the cache.")
    requests_per_s = _rate("Likewise.", POSITIVE)
    utilization = Exact("Share of that which is sold; for scale_to_zero the busy share.",
                        POSITIVE_SHARE)  # fmt: skip
    billing = Choice("Whether idle hours are billed.", BILLINGS, allow_none=True, load_default=None)
    output_to_input_cost_ratio = _rate(
        "What an output token costs over an input token; left out: the bill is on the output.",
        RATIO,
    )
    cached_to_input_cost_ratio = Exact(
        "What a cached input token costs over a new one.", SHARE, Fraction(0)
    )
    cold_starts_per_day = Exact("Starts from zero.", A_DAY, Fraction(0))
    cold_start_minutes = Exact("Billed minutes of a start.", A_DAY, Fraction(0))
    spot = _section(SpotBody, "Bought on spot.")
    reserved = _section(ReservedBody, "Bought as a reservation.")
    api_per_mtok = Amount("Blended API price of a million tokens to compare with.")
    currency = Currency(load_default="USD")
    exchange_rate = exchange_rate_field("the plan or the listed price")


class AllocationAnswer(Answer):
    """How the bill is divided."""

    basis = Choice("The rule.", ALLOCATIONS)
    input_share = Number("Of the bill.")
    cached_input_share = Number("Of the bill.")
    output_share = Number("Of the bill.")


class PurchaseAnswer(Answer):
    """What the way of buying makes of the on-demand price."""

    accelerator_hour_price = DecimalText("That was used.")
    on_demand_hour_price = DecimalText("To compare with.", allow_none=True)
    saving = Number("Share of the on-demand price; negative: dearer.", allow_none=True)
    pays_from_busy_share = Number(
        "Share of the hours from which a reservation is cheaper; null: never, or none.",
        allow_none=True,
    )


class ParityAnswer(Answer):
    """What it takes to match the API price."""

    tokens_per_s = Number("Sold, every second; null: the API is free.", allow_none=True)
    utilization = Number(
        "Share of the capacity to be sold; 0: any; null: more than there is, or not known.",
        allow_none=True,
    )
    self_host_cheaper = Flag("At the utilization asked; null: input rate not given.",
                             allow_none=True)  # fmt: skip


class ServingCostAnswer(NullReasonsAnswer):
    """What an hour, a million tokens and a request cost to serve."""

    per_hour = DecimalText("Of a clock hour, on average.")
    per_million_output_tokens = DecimalText("Their part of the bill.")
    per_million_input_tokens = DecimalText("Their part of the bill.", allow_none=True)
    per_million_cached_input_tokens = DecimalText("Their part of the bill.", allow_none=True)
    per_million_total_tokens = DecimalText("The whole bill over all tokens.", allow_none=True)
    per_million_output_tokens_at_full_use = DecimalText(
        "Their part, if all were sold; null: of a plan.", allow_none=True
    )
    per_request = DecimalText("The whole bill over the requests.", allow_none=True)
    allocation = Section(AllocationAnswer)
    purchase = Section(PurchaseAnswer)
    parity = Section(ParityAnswer, "Where an API price is given.", allow_none=True)
    plan = Section(UsedPlanAnswer, "What was taken from the plan.", allow_none=True)
    inputs = Section(inputs_answer(ServingCostBody))


class SelfHostBody(Closed):
    """A request at an API's prices, and replicas with their capacity or a plan."""

    input_tokens = _rate("Of a request, cached ones counted.")
    output_tokens = _rate("Of a request, reasoning counted.")
    cached_input_share = Exact("Share of the input tokens that the API finds cached.", SHARE)
    input_per_mtok = Amount("API price of a million input tokens.")
    cached_input_per_mtok = Amount("Of a million cached ones; left out: as other input.")
    output_per_mtok = Amount("Of a million output tokens.")
    api_offer = offer_field("An API price", _PRICES)
    plan_id = plan_field()
    replica_cost_per_month = Amount("Of one replica, 730 hours.")
    replica_capacity_requests_per_month = _rate(
        "Requests that one replica serves at a steady rate within the SLO.", POSITIVE
    )
    overhead_per_month = Amount("Of self-hosting, whatever the volume.", Decimal(0))
    min_replicas = Whole("Kept for availability.", 1, MOST_REPLICAS, load_default=1)
    peak_to_mean = _rate("Peak over mean rate; left out: 1, or the plan's.", PEAK)
    requests_per_month = _rate("A volume to compare at; left out: none, or the plan's.")
    currency = Currency(load_default="USD")
    exchange_rate = exchange_rate_field("the plan or the listed price")


class IntervalAnswer(Answer):
    """Volumes at which one of both is cheaper."""

    start = Quantity("Requests a month, from which on.", data_key="from")
    until = Quantity("Requests a month, up to and with; null: all above.", data_key="to",
                     allow_none=True)  # fmt: skip
    winner = Choice("The cheaper one.", ("api", "self_host"))
    replicas = WholeText("At `from`; null: the API wins.", allow_none=True)
    replicas_at_end = WholeText("At `to`; null: it has no end, or the API wins.", allow_none=True)


class VolumeAnswer(Answer):
    """Both bills of a month."""

    requests_per_month = Quantity("The volume.")
    api_cost_per_month = DecimalText("Of the API.")
    self_host_cost_per_month = DecimalText("Of self-hosting.")
    replicas = WholeText("That it takes.")
    winner = Choice("The cheaper one.", ("api", "self_host", "tie"))


class SelfHostAnswer(EconomicsAnswer):
    """At which volumes an API or self-hosting is cheaper."""

    api_cost_per_request = DecimalText("At the API.")
    replica_cost_per_month = DecimalText("Of one replica.")
    replica_capacity_requests_per_month = Quantity(
        "Requests that one replica serves at a steady rate: of a plan, within its SLOs."
    )
    self_host_floor_per_request = DecimalText("With every replica full; no volume goes below.")
    intervals = ListOf(Section(IntervalAnswer), "From volume 0 on; the first 200.")
    intervals_total = WholeText("How many there are.")
    always_cheaper_from = Quantity(
        "Requests a month from which self-hosting is always cheaper; null: never.", allow_none=True
    )
    naive_break_even = Quantity(
        "Cost of one replica over the API's of a request: no answer where it is beyond a replica.",
        allow_none=True,
    )
    naive_within_one_replica = Flag("Whether it is not.", allow_none=True)
    at_volume = Section(VolumeAnswer, "At `requests_per_month`.", allow_none=True)
    plan = Section(UsedPlanAnswer, "What was taken from the plan.", allow_none=True)
    inputs = Section(inputs_answer(SelfHostBody))
