"""Economic questions with several numbers at their bounds at once: answered in plain JSON, or
refused by a field that was asked with."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from flask.testing import FlaskClient

from advisor.schemas.fields import Money
from tests.web.bodies import POSTS, leaves, with_leaf
from tests.web.problems import problem
from tests.web.test_bounds import FIELDS, limits

ROUTES = [route for route in POSTS if route.startswith("/v1/economics/")]
BY_NAME = {path.rsplit("/", 1)[1]: field for path, field in FIELDS.items()}


def values(name: str) -> list[Any]:
    """What a field may be set to: its bounds, something in between, and many digits of money."""
    field = BY_NAME[name]
    least, most = limits(field)
    return [least, most, least, most, 3, "0.123456789123456789" if isinstance(field, Money) else 3]


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.rsplit("/", 1)[1])
def test_numbers_at_their_bounds_are_never_an_error_of_ours(
    shared_client: FlaskClient, route: str, seed: int
):
    draw, body = random.Random(f"{route}{seed}"), POSTS[route]
    paths = [path for path, _ in leaves(body) if path[-1] in BY_NAME]
    for path in draw.sample(paths, draw.randint(1, len(paths))):
        body = with_leaf(body, path, draw.choice(values(str(path[-1]))))
    response = shared_client.post(route, json=body)
    assert response.status_code in (200, 422), (body, response.get_data(as_text=True))
    if response.status_code == 422:
        for error in problem(response, 422)["errors"]:
            assert error["pointer"].split("/")[1] in body, error
        return
    text = response.get_data(as_text=True)
    assert not any(word in text for word in ("NaN", "Infinity"))
    answer = json.loads(text)
    assert answer["status"] == "ok" or answer["reason"]


@pytest.mark.parametrize("rate", ["1e-50", "1e-60", "1e-99"])
def test_a_rate_too_fine_to_matter_changes_nothing(shared_client: FlaskClient, rate: str):
    owned = '{"capex": 1000, "life_years": 4, "power_kw": 1, "price_per_kwh": "0.1"%s}'
    sold = (
        '{"training_cost": 1000, "price_per_call": 1, "calls_per_month": 100,'
        ' "fixed_cost_per_month": 50%s}'
    )
    for path, body, field, figure in (
        ("ownership", owned, "cost_of_capital", "per_hour"),
        ("break-even", sold, "monthly_growth", "months"),
        ("break-even", sold, "monthly_growth", "break_even_calls"),
        ("break-even", sold, "annual_discount_rate", "months"),
    ):
        plain, with_rate = (
            shared_client.post(
                f"/v1/economics/{path}", data=body % more, content_type="application/json"
            )
            for more in ("", f', "{field}": {rate}')
        )
        assert with_rate.status_code == 200
        assert float(with_rate.get_json()[figure]) == float(plain.get_json()[figure])
