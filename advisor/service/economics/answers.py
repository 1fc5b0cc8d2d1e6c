"""What every economic answer carries beside its figures, and where figures come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any

import advisor
from advisor.catalog import prices
from advisor.catalog.prices import STALE_AFTER_DAYS, AcceleratorPrice, ApiPrice, api_prices
from advisor.core.economics.currency import ExchangeRate, converted
from advisor.core.economics.figures import as_json, plain
from advisor.core.economics.planned import PlannedServing, planned_serving
from advisor.core.errors import FieldError, InvalidInput
from advisor.service import plans
from advisor.service.clock import now
from advisor.service.database import Database

Message = tuple[str, str]
Body = Mapping[str, Any]
FAR_OFF = 1000
"""Times beyond every listed price at which the unit is doubted."""


@dataclass
class Sources:
    """What one answer took from price lists, profiles and plans, with its warnings."""

    currency: str
    rate: ExchangeRate | None = None
    prices_used: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[Message] = field(default_factory=list)
    converts: bool = False
    """Whether an amount was asked for that has a currency of its own."""

    @classmethod
    def of(cls, body: Body) -> Sources:
        """For a request: its currency, and the rate that it brings."""
        given = body.get("exchange_rate")
        try:
            rate = ExchangeRate(**given) if given else None
        except InvalidInput as refused:
            raise refused.under("/exchange_rate") from None
        sources = cls(body["currency"], rate)
        if rate is not None:
            age = (now().date() - date.fromisoformat(rate.as_of)).days
            if age < -1:  # it may be tomorrow already somewhere
                detail = "This day is yet to come."
                raise InvalidInput(FieldError("/exchange_rate/as_of", detail, given=rate.as_of))
            if age > STALE_AFTER_DAYS:
                sources.warn("rate_stale", f"The exchange rate is {age} days old.")
        return sources

    def money(self, amount: Decimal, currency: str, pointer: str) -> Decimal:
        """An amount in the currency of the answer. InvalidInput without a dated rate."""
        self.converts = self.converts or currency != self.currency
        return converted(amount, currency, self.currency, self.rate, pointer)

    def bill(self, plan: PlannedServing) -> Decimal:
        """What an hour of a plan costs, in the currency of the answer; its price noted as used.
        InvalidInput at /plan_id where it has none."""
        if plan.per_hour is None or plan.currency is None:
            detail = f"This plan has no cost: the price of {plan.hardware} is not known."
            raise InvalidInput(FieldError("/plan_id", detail, given=plan.plan_id))
        self.note(plan.hardware, plan.price_as_of, f"plan {plan.plan_id}")
        return self.money(plan.per_hour, plan.currency, "/plan_id")

    def api_price(self, name: str) -> ApiPrice:
        """A listed API price, noted as used."""
        found = prices.api_price(name, "/api_offer")
        self.note(found.name, found.as_of, found.source)
        return found

    def accelerator_offer(self, name: str) -> AcceleratorPrice:
        """A listed accelerator-hour, noted as used."""
        found: AcceleratorPrice = prices.accelerator_price(name, "/accelerator_offer")
        self.note(found.name, found.as_of, found.source)
        return found

    def listed(self, offer: AcceleratorPrice) -> Decimal:
        """What a listed accelerator-hour costs, in the currency of the answer."""
        return self.money(offer.amount_per_hour, offer.currency, "/accelerator_offer")

    def note(self, name: str, day: date | None, source: str) -> None:
        """Note a price as used, and warn of one that is old or undated."""
        age = None if day is None else (now().date() - day).days
        as_of = None if day is None else day.isoformat()
        self.prices_used.append(
            {"name": name, "as_of": as_of, "price_age_days": age, "source": source}
        )
        if age is None:
            self.warn("price_undated", f"The price of {name} has no date.")
        elif age > STALE_AFTER_DAYS:
            self.warn("price_stale", f"The price of {name} is {age} days old.")

    def warn(self, code: str, detail: str) -> None:
        """Add a warning."""
        self.warnings.append((code, detail))


def answer(
    figures: Body,
    body: Body,
    sources: Sources,
    *,
    assumptions: Iterable[Message] = (),
    not_included: Sequence[str] = (),
) -> dict[str, Any]:
    """The whole answer: the figures, and what every one carries."""
    if sources.rate is not None and not sources.converts:
        detail = (
            f"Nothing is converted: the amounts of a request are in {sources.currency}, its "
            "currency, and so is what was taken from a list, a profile or a plan."
        )
        sources.warn("rate_unused", detail)
    common = {
        "status": "ok",
        "reason": None,
        "currency": sources.currency,
        "not_included": list(not_included),
        "prices_used": sources.prices_used,
    }
    return common | dict(as_json(figures)) | {
        "inputs": as_json(body),
        "assumptions": _messages(assumptions),
        "warnings": _messages(sources.warnings),
        "planner_version": advisor.__version__,
    }  # fmt: skip


def plan_figures(database: Database, plan_id: str, sources: Sources) -> PlannedServing:
    """What a stored plan says of cost; warns where no latency bounds what it serves. InvalidInput
    at /plan_id for one that is not there, or that recommends nothing."""
    found = planned_serving(plans.referred(database, plan_id))
    if not found.has_slo:
        sources.warn("no_slo", "The plan has no SLO, so no latency bounds what it serves.")
    return found


def refuse_both(body: Body, chosen: str, others: Iterable[str]) -> None:
    """InvalidInput at each of `others` that is given although `chosen` stands in its place."""
    errors = [
        FieldError(f"/{name}", f"{chosen} stands in place of this: give one of the two.")
        for name in others
        if body.get(name) is not None
    ]
    if errors:
        raise InvalidInput(*errors)


def require(body: Body, names: Iterable[str], otherwise: str) -> None:
    """InvalidInput at each field that is not given, saying what could be given in its place."""
    errors = [
        FieldError(f"/{name}", f"This is needed, or {otherwise}.")
        for name in names
        if body.get(name) is None
    ]
    if errors:
        raise InvalidInput(*errors)


def token_prices(body: Body, sources: Sources) -> dict[str, Decimal | None]:
    """`input_per_mtok`, `cached_input_per_mtok` and `output_per_mtok`, given or listed."""
    names = ("input_per_mtok", "output_per_mtok", "cached_input_per_mtok")
    if body["api_offer"] is None:
        require(body, names[:2], "api_offer")
        found = {name: body[name] for name in names}
    else:
        refuse_both(body, "api_offer", names)
        listed = sources.api_price(body["api_offer"])
        amounts = {name: getattr(listed, name) for name in names}
        found = {
            name: None if amount is None else sources.money(amount, listed.currency, "/api_offer")
            for name, amount in amounts.items()
        }
    doubt_units(found, sources)
    return found


def doubt_units(amounts: Mapping[str, Decimal | None], sources: Sources) -> None:
    """Warn of prices per million tokens a thousand times beyond what any API charges in USD."""
    if sources.currency != "USD":
        return
    listed = [p for each in api_prices().values() for p in (each.input_per_mtok,
              each.output_per_mtok)]  # fmt: skip
    least, most = min(listed), max(listed)
    for name, amount in amounts.items():
        if amount and not least / FAR_OFF <= amount <= most * FAR_OFF:
            detail = (
                f"{name} is {plain(amount)}; listed APIs charge {plain(least)} to {plain(most)} "
                "USD per million tokens. Is it per token, per thousand or per million?"
            )
            sources.warn("unusual_price", detail)


def _messages(messages: Iterable[Message]) -> list[dict[str, str]]:
    return [{"code": code, "detail": detail} for code, detail in messages]
