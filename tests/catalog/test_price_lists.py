from __future__ import annotations

import re
from datetime import date
from decimal import Decimal

import pytest

from advisor.catalog.loader import hardware_documents
from advisor.catalog.prices import (
    accelerator_price,
    accelerator_prices,
    api_price,
    api_prices,
)
from advisor.core.economics.purchase import KINDS
from advisor.core.errors import InvalidInput
from advisor.schemas.fields import NAME_PATTERN

ALL = [*api_prices().values(), *accelerator_prices().values()]


def test_there_are_as_many_prices_as_were_collected():
    assert len(api_prices()) > 400
    assert len(accelerator_prices()) > 90


@pytest.mark.parametrize("price", ALL, ids=lambda price: str(price.name))
def test_every_price_has_a_name_that_requests_may_use_its_currency_and_its_source(price):
    assert re.fullmatch(NAME_PATTERN, price.name)
    assert price.name.startswith(price.provider)
    assert price.currency == "USD"
    assert price.source
    assert price.as_of is None or date(2025, 1, 1) <= price.as_of <= date(2026, 12, 1)


def test_api_prices_are_per_million_tokens_and_not_per_token_or_thousand():
    for price in api_prices().values():
        assert Decimal("0.01") <= price.input_per_mtok <= 20
        assert Decimal("0.01") <= price.output_per_mtok <= 50
        cached = price.cached_input_per_mtok
        assert cached is None or 0 < cached <= price.input_per_mtok


def test_accelerator_prices_name_profiles_and_kinds_that_there_are():
    known = {document["name"] for document in hardware_documents()}
    for price in accelerator_prices().values():
        assert price.hardware is None or price.hardware in known
        assert price.kind in KINDS
        assert Decimal("0.1") < price.amount_per_hour < 20


def test_no_listed_offer_is_the_price_of_a_profile():
    profiles = {
        (
            document["price"]["source"].split()[0],
            document["name"],
            Decimal(document["price"]["amount_per_hour"]),
        )
        for document in hardware_documents()
        if document["price"]
    }
    on_demand = [p for p in accelerator_prices().values() if p.kind == "on_demand"]
    assert not {(p.provider, p.hardware, p.amount_per_hour) for p in on_demand} & profiles


def test_spot_costs_less_than_on_demand_of_the_same_provider():
    prices = accelerator_prices().values()
    on_demand = {
        (p.provider, p.accelerator, p.region): p.amount_per_hour
        for p in prices
        if p.kind == "on_demand"
    }
    pairs = [
        (p, on_demand[key])
        for p in prices
        if p.kind == "spot" and (key := (p.provider, p.accelerator, p.region)) in on_demand
    ]
    assert len(pairs) >= 10
    for spot, price in pairs:
        assert spot.amount_per_hour < price, spot.name


def test_a_name_that_is_not_listed_is_refused_with_the_nearest_and_costs_nothing_made_up():
    for find, wrong, near in (
        (api_price, "together-gpt-oss-120", "together-gpt-oss-120b"),
        (accelerator_price, "crusoe-h100-sxm-spott", "crusoe-h100-sxm-spot"),
    ):
        with pytest.raises(InvalidInput) as refusal:
            find(wrong, "/here")
        (error,) = refusal.value.errors
        assert (error.pointer, error.nearest) == ("/here", near)


def test_an_age_is_told_where_there_is_a_date():
    price = accelerator_price("together-h100-managed-endpoint", "/here")
    assert price.as_of is not None
    assert price.age_days(date(2026, 12, 1)) == (date(2026, 12, 1) - price.as_of).days
    assert accelerator_price("verda-h100-spot-fin-02", "/here").age_days(date(2026, 12, 1)) is None
