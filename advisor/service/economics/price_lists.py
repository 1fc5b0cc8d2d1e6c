"""The price lists, page by page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.catalog.prices import Quoted, accelerator_prices, api_prices
from advisor.core.economics.figures import as_json
from advisor.service.clock import now
from advisor.store.errors import BadCursor

Page = tuple[list[dict[str, Any]], str | None]


def api_price_page(limit: int, cursor: str | None) -> Page:
    """At most `limit` API prices by name, and the cursor of the next page. Raises `BadCursor`."""
    return _page(api_prices(), limit, cursor)


def accelerator_price_page(limit: int, cursor: str | None) -> Page:
    """Accelerator prices likewise."""
    return _page(accelerator_prices(), limit, cursor)


def _page(prices: Mapping[str, Quoted], limit: int, cursor: str | None) -> Page:
    names = sorted(prices)
    if cursor is not None and cursor not in prices:
        raise BadCursor
    start = 0 if cursor is None else names.index(cursor) + 1
    page = names[start : start + limit]
    return [_shown(prices[name]) for name in page], page[-1] if page[-1:] != names[-1:] else None


def _shown(price: Quoted) -> dict[str, Any]:
    day = price.as_of
    age = {"price_age_days": price.age_days(now().date())}
    shown: dict[str, Any] = as_json(price)
    return shown | age | {"as_of": None if day is None else day.isoformat()}
