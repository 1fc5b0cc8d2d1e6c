"""Price lists: what APIs charge for open models, and what accelerator-hours cost beside the
on-demand offers in the hardware profiles, each row with its source and date.

`prices/api.csv`: per million tokens. Of one provider's prices for one model the newest dated one of
2026 is kept, else the one in the newest collection; where that contradicts itself, none.
`prices/accelerators.csv`: of one accelerator. `kind` is on demand, spot, reserved for one or three
years, or a managed endpoint; the cheapest offer per provider, region and kind. Not in it:
marketplace minima that may be spot, modelled figures, parts of an accelerator, spot prices that are
a fixed share of on-demand ones. `hardware` names the profile, empty where the source does not say
which form it is. `as_of` is empty where the source has no date.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any

from advisor.core.errors import InvalidInput, unknown_choice

STALE_AFTER_DAYS = 90
"""Public list prices fell by a third and more within a year."""


@dataclass(frozen=True)
class Quoted:
    """What every price has: its name in the list, currency (ISO 4217), day and source."""

    name: str
    provider: str
    currency: str
    as_of: date | None
    source: str

    def age_days(self, today: date) -> int | None:
        """Days since the price was seen; `None` where that is not known."""
        return None if self.as_of is None else (today - self.as_of).days


@dataclass(frozen=True)
class ApiPrice(Quoted):
    """Money per million tokens of a model, by its repository; without a price of their own cached
    tokens are not known to be cheaper."""

    model: str
    input_per_mtok: Decimal
    output_per_mtok: Decimal
    cached_input_per_mtok: Decimal | None


@dataclass(frozen=True)
class AcceleratorPrice(Quoted):
    """Money of an hour of one accelerator; `offer` and `region` as the provider calls them."""

    accelerator: str
    hardware: str | None
    kind: str
    amount_per_hour: Decimal
    offer: str
    region: str

    @property
    def reserved(self) -> bool:
        """Whether it is paid busy or idle."""
        return self.kind.startswith("reserved")


@cache
def api_prices() -> Mapping[str, ApiPrice]:
    """Every API price by name."""
    return {
        row["name"]: ApiPrice(
            **_quoted(row),
            model=row["model"],
            input_per_mtok=Decimal(row["input_per_mtok"]),
            output_per_mtok=Decimal(row["output_per_mtok"]),
            cached_input_per_mtok=(
                Decimal(row["cached_input_per_mtok"]) if row["cached_input_per_mtok"] else None
            ),
        )
        for row in _rows("api.csv")
    }


@cache
def accelerator_prices() -> Mapping[str, AcceleratorPrice]:
    """Every accelerator price by name."""
    return {
        row["name"]: AcceleratorPrice(
            **_quoted(row),
            accelerator=row["accelerator"],
            hardware=row["hardware"] or None,
            kind=row["kind"],
            amount_per_hour=Decimal(row["amount_per_hour"]),
            offer=row["offer"],
            region=row["region"],
        )
        for row in _rows("accelerators.csv")
    }


def api_price(name: str, pointer: str) -> ApiPrice:
    """The API price of that name. InvalidInput at `pointer`, with the nearest, where there is none;
    no price is ever made up."""
    found: ApiPrice = _find(api_prices(), name, pointer, "API price")
    return found


def accelerator_price(name: str, pointer: str) -> AcceleratorPrice:
    """The accelerator price of that name. InvalidInput likewise."""
    prices = accelerator_prices()
    found: AcceleratorPrice = _find(prices, name, pointer, "Accelerator price")
    return found


def _find(prices: Mapping[str, Any], name: str, pointer: str, what: str) -> Any:
    if name not in prices:
        raise InvalidInput(unknown_choice(pointer, name, prices, what))
    return prices[name]


def _quoted(row: Mapping[str, str]) -> dict[str, Any]:
    return {
        "name": row["name"],
        "provider": row["provider"],
        "currency": row["currency"],
        "as_of": date.fromisoformat(row["as_of"]) if row["as_of"] else None,
        "source": row["source"],
    }


def _rows(name: str) -> list[dict[str, str]]:
    text = files("advisor.catalog").joinpath("prices").joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
