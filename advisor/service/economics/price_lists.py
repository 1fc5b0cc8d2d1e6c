"""The price lists, page by page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.catalog.prices import Quoted, accelerator_prices, api_prices
from advisor.core.economics.figures import as_json
from advisor.service.clock import now
from advisor.store.paging import page_of_names

Page = tuple[list[dict[str, Any]], str | None]


def api_price_page(limit: int, cursor: str | None) -> Page:
    """At most `limit` API prices by name, and the cursor of the next page. Raises `BadCursor`."""
    return _page(api_prices(), limit, cursor)


def accelerator_price_page(limit: int, cursor: str | None) -> Page:
    """Accelerator prices likewise."""
    return _page(accelerator_prices(), limit, cursor)


def _page(prices: Mapping[str, Quoted], limit: int, cursor: str | None) -> Page:
    names, following = page_of_names(prices, limit, cursor)
    return [_shown(prices[name]) for name in names], following


def _shown(price: Quoted) -> dict[str, Any]:
    day = price.as_of
    age = {"price_age_days": price.age_days(now().date())}
    shown: dict[str, Any] = as_json(price)
    return shown | age | {"as_of": None if day is None else day.isoformat()}
