"""Cost of training, of owned hardware, and the size of model that is cheapest."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

from advisor.core.economics.model_size import (
    ModelSizeInputs,
    ServingPrices,
    inference_aware_size,
)
from advisor.core.economics.ownership import HOURS_PER_YEAR, OwnershipInputs, ownership
from advisor.core.economics.training import (
    DOUBTFUL_MFU,
    LARGE_ATTENTION_SHARE,
    TYPICAL_MFU,
    TYPICAL_MFU_SAYS,
    TrainingInputs,
    describe_assumptions,
    training_cost,
)
from advisor.core.errors import FieldError, InvalidInput
from advisor.core.hardware import HardwareProfile
from advisor.service.database import Database
from advisor.service.economics.answers import Body, Message, Sources, answer, refuse_both, require
from advisor.service.lookup import resolve_hardware

_FITTED_TOKENS_PER_PARAMETER = 100
"""Our bound for "usual": fits made at usual ratios overrate tokens at extreme ones, as Sardana et
al. 2024, arXiv 2401.00448, found with 47 models of up to 10,000 tokens per parameter."""
_TOKENS_OF_PUBLIC_TEXT = 3e14
"""Villalobos et al. 2024, arXiv 2211.04325: about 300 trillion tokens, within 100 to 1000."""
_NOT_IN_TRAINING = (
    "storage, network and data", "staff beyond overhead_multiplier", "attention beyond 6 N D",
    "checkpoints, restarts and idle accelerators, unless in the hours",
)  # fmt: skip
_NOT_IN_OWNERSHIP = ("network and storage", "staff and spares beyond other_cost_per_year", "taxes")
_NOT_IN_SIZE = (
    "the quality of data beyond its amount", "mixtures of experts: the laws are of dense models",
    "memory, which a smaller model needs less of", "latency",
)  # fmt: skip


def cost_of_training(database: Database, body: Body) -> dict[str, Any]:
    """What training takes and costs."""
    sources = Sources.of(body)
    profile = None
    if body["accelerator"] is not None:
        refuse_both(body, "accelerator", ["peak_tflops"])
        profile = resolve_hardware(database, body["accelerator"], "/accelerator")
    else:
        require(body, ["peak_tflops"], "accelerator")
    peak = body["peak_tflops"] if profile is None else _peak(profile, body["precision"])
    try:
        price = _hourly(body, profile, sources)
    except InvalidInput as unpriced:
        _refuse_run(body, peak, unpriced)
        raise
    inputs = _inputs(body, peak, price)
    found = training_cost(inputs)
    if inputs.utilization > DOUBTFUL_MFU:
        detail = f"No published run reaches a utilization (MFU) of {found.implied_mfu:.3g}."
        sources.warn("mfu_beyond_published", detail)
    if found.attention_ratio is not None and found.attention_ratio > LARGE_ATTENTION_SHARE:
        detail = f"Attention adds {found.attention_ratio:.0%} to 6 N D, which is not counted."
        sources.warn("attention_not_counted", detail)
    return answer(
        vars(found), body, sources,
        assumptions=describe_assumptions(inputs), not_included=_NOT_IN_TRAINING,
    )  # fmt: skip


def cost_of_owning(body: Body) -> dict[str, Any]:
    """What an owned accelerator costs, and from which use on it is cheaper than a rented one."""
    sources = Sources.of(body)
    rent = body["rent_per_hour"]
    if body["accelerator_offer"] is not None:
        refuse_both(body, "accelerator_offer", ["rent_per_hour"])
        offer = sources.accelerator_offer(body["accelerator_offer"])
        rent = sources.listed(offer)
        if offer.reserved:
            detail = "This rent is of a reservation, paid busy or idle: there is no busy share."
            sources.warn("reserved_rent", detail)
    left_out = ("accelerator_offer", "exchange_rate", "rent_per_hour")
    given = {name: value for name, value in body.items() if name not in left_out}
    found = ownership(OwnershipInputs(**given, rent_per_hour=rent))
    year = f"A year has {HOURS_PER_YEAR} hours; power is drawn in all of them."
    assumptions: list[Message] = [("year_hours", year)]
    if not body["cost_of_capital"]:
        assumptions.append(("straight_line", "Capital costs nothing; it is written off evenly."))
    return answer(
        vars(found), body, sources,
        assumptions=assumptions, not_included=_NOT_IN_OWNERSHIP,
    )  # fmt: skip


def cheapest_size(body: Body) -> dict[str, Any]:
    """The size of model that is cheapest to train and serve at a given quality."""
    sources = Sources.of(body)
    try:
        prices = None if body["prices"] is None else ServingPrices(**body["prices"])
    except InvalidInput as refused:
        raise refused.under("/prices") from None
    found = inference_aware_size(ModelSizeInputs(**(dict(body) | {"prices": prices})))
    best = found.optimal
    if (best.tokens_per_parameter or 0) > _FITTED_TOKENS_PER_PARAMETER:
        detail = (
            f"{best.tokens_per_parameter:.4g} tokens per parameter are beyond what the constants "
            "were fitted to; such fits overrate what further tokens bring."
        )
        sources.warn("extrapolated", detail)
    if found.optimal_tokens > _TOKENS_OF_PUBLIC_TEXT:
        detail = "That is more text than is thought to be public, about 300 trillion tokens."
        sources.warn("more_than_public_text", detail)
    assumptions: list[Message] = [
        ("same_quality", "Equal loss is equal quality."),
        ("reference_is_optimal", "The reference is trained at the least compute for its loss."),
    ]
    if prices is not None:
        assumptions += _utilizations(prices)
    return answer(vars(found), body, sources, assumptions=assumptions, not_included=_NOT_IN_SIZE)


def _utilizations(prices: ServingPrices) -> list[Message]:
    """At which utilizations FLOP are paid for, and where those that are our defaults come from."""
    found: list[Message] = []
    if prices.training_mfu == TYPICAL_MFU:
        found.append(("typical_mfu", f"{TYPICAL_MFU_SAYS}."))
    serving = (prices.input_mfu, prices.output_mfu)
    if serving == (ServingPrices.input_mfu, ServingPrices.output_mfu):
        prompt, output = map(float, serving)
        detail = (
            f"Prompts are served at a utilization of {prompt}, output at {output}, as in the "
            "published cost script of Sardana et al. 2024, arXiv 2401.00448."
        )
        found.append(("serving_mfu", detail))
    return found


def _inputs(body: Body, peak_tflops: Fraction, price_per_hour: Decimal) -> TrainingInputs:
    names = ("parameters_active", "tokens", "mfu", "accelerator_hours", "overhead_multiplier",
             "num_layers", "hidden_size", "sequence_tokens", "currency")  # fmt: skip
    return TrainingInputs(
        peak_tflops=peak_tflops,
        price_per_hour=price_per_hour,
        **{name: body[name] for name in names},
    )


def _refuse_run(body: Body, peak_tflops: Fraction, unpriced: InvalidInput) -> None:
    """InvalidInput with what is wrong beside the price, if anything is: all faults at once."""
    try:
        _inputs(body, peak_tflops, Decimal(0))
    except InvalidInput as refused:
        raise InvalidInput(*unpriced.errors, *refused.errors) from None


def _peak(profile: HardwareProfile, precision: str) -> Fraction:
    """Dense peak of a profile [TFLOPS]. InvalidInput where it has none in this arithmetic."""
    peaks = profile.dense_tflops
    if precision not in peaks:
        detail = f"{profile.name} has no {precision} arithmetic."
        raise InvalidInput(FieldError("/precision", detail, precision, sorted(peaks)))
    return Fraction(repr(peaks[precision]))


def _hourly(body: Body, profile: HardwareProfile | None, sources: Sources) -> Decimal:
    """The price of an hour: given, listed, or the profile's. InvalidInput without any."""
    if body["accelerator_offer"] is not None:
        refuse_both(body, "accelerator_offer", ["price_per_hour"])
        return sources.listed(sources.accelerator_offer(body["accelerator_offer"]))
    if body["price_per_hour"] is not None:
        given: Decimal = body["price_per_hour"]
        return given
    if profile is None or profile.price is None:
        require(body, ["price_per_hour"], "accelerator_offer, or an accelerator that has a price")
    assert profile is not None
    assert profile.price is not None
    price = profile.price
    sources.note(profile.name, price.as_of, price.source)
    return sources.money(price.amount_per_hour, price.currency, "/accelerator")
