from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.web.problems import only_error
from tests.web.questions import codes, post

ROUTE = "/v1/economics/break-even"


def test_break_even_is_exact_and_says_what_it_leaves_out(shared_client: FlaskClient):
    body = {"training_cost": 5576000, "price_per_call": 0.01, "serving_cost_per_call": "0.004"}
    answer = shared_client.post(ROUTE, json=body).get_json()
    assert answer["status"] == "ok"
    assert answer["break_even_calls"] == 929333334
    assert answer["break_even_calls_without_serving_cost"] == 557600000
    assert answer["contribution_per_call"] == "0.006"
    assert answer["not_included"]
    echoed = {"training_cost": "5576000", "price_per_call": "0.01", "calls": None}
    assert answer["inputs"].items() >= (echoed | {"serving_cost_per_call": "0.004"}).items()


def test_a_price_below_the_cost_never_breaks_even(shared_client: FlaskClient):
    body = {"training_cost": "1", "price_per_call": "0.003", "serving_cost_per_call": "0.004"}
    answer = shared_client.post(ROUTE, json=body).get_json()
    assert (answer["status"], answer["break_even_calls"]) == ("never", None)
    assert answer["reason"]


def test_counts_above_two_to_the_53_are_texts(shared_client: FlaskClient):
    body = {"training_cost": 10**30, "price_per_call": "0.001", "calls": 10**30}
    answer = shared_client.post(ROUTE, json=body).get_json()
    assert answer["break_even_calls"] == str(10**33)
    assert answer["inputs"]["calls"] == str(10**30)


def test_a_currency_is_an_iso_4217_code(shared_client: FlaskClient):
    body = {"training_cost": 1, "price_per_call": 1, "currency": "eur"}
    only_error(shared_client.post(ROUTE, json=body), "/currency")


def test_fields_of_other_questions_are_unknown_here(shared_client: FlaskClient):
    body = {"training_cost": 1, "price_per_call": 1, "swing": 0.1}
    only_error(shared_client.post(ROUTE, json=body), "/swing")


@pytest.mark.parametrize("path", ["break-even", "sensitivity"])
def test_more_calls_than_are_ever_sold_are_warned_of(shared_client: FlaskClient, path: str):
    body: dict[str, Any] = {
        "training_cost": 5,
        "price_per_call": 1,
        "calls_per_month": 100,
        "monthly_growth": -0.1,
    }
    swing = {"swing": 0.1} if path == "sensitivity" else {}
    for more, warned in (({"calls": 1001}, True), ({"calls": 999}, False), ({}, False),
                         ({"calls": 191, "horizon_months": 2}, True),
                         ({"calls": 190, "horizon_months": 2}, False)):  # fmt: skip
        answer = shared_client.post(f"/v1/economics/{path}", json=body | swing | more).get_json()
        assert ("calls_beyond_sales" in codes(answer)) is warned


def test_inputs_as_they_are_echoed_may_be_asked_with(shared_client: FlaskClient):
    large = 2**53 + 1
    for path, body in (
        ("break-even", {"training_cost": 10**30, "price_per_call": "0.001", "calls": large,
                        "calls_per_month": 10**30}),
        ("self-host-vs-api", {"input_tokens": large, "output_tokens": 1, "input_per_mtok": 1,
                              "output_per_mtok": 1, "replica_cost_per_month": 1,
                              "replica_capacity_requests_per_month": large}),
        ("training-cost", {"parameters_active": 10**30, "tokens": large, "peak_tflops": 989,
                           "price_per_hour": 2}),
    ):  # fmt: skip
        answer = post(shared_client, path, **body)
        assert str(large) in answer["inputs"].values()
        assert post(shared_client, path, **answer["inputs"]) == answer
    few = {"training_cost": 1, "price_per_call": 1, "calls": str(2**53)}
    assert only_error(shared_client.post(ROUTE, json=few), "/calls")["given"] == str(2**53)


def test_an_amount_that_was_answered_may_be_asked_with(shared_client: FlaskClient):
    own = {"accelerator_hour_price": "0.01", "accelerators": 1, "output_tokens_per_s": 7,
           "requests_per_s": 7000, "utilization": 1, "billing": "always_on"}  # fmt: skip
    cost = post(shared_client, "serving-cost", **own)["per_request"]
    assert len(cost) > 30
    body = {"training_cost": 1, "price_per_call": 1, "serving_cost_per_call": cost}
    assert post(shared_client, "break-even", **body)["inputs"]["serving_cost_per_call"] == cost


def test_a_price_that_was_computed_is_not_refused_as_if_it_had_been_given(
    shared_client: FlaskClient,
):
    own = {"accelerator_hour_price": 10**30, "accelerators": 1, "output_tokens_per_s": 1,
           "utilization": 1, "billing": "always_on"}  # fmt: skip
    spot = {"price_per_hour": 10**30, "over_provision": 10}
    assert post(shared_client, "serving-cost", **own, spot=spot)["per_hour"] == str(10**31)
    tiny = (
        '{"input_tokens": 1e-90, "output_tokens": 0, "input_per_mtok": "0.%s1", "output_per_mtok":'
        ' 1, "replica_cost_per_month": 1, "replica_capacity_requests_per_month": 1}'
    )
    response = shared_client.post(
        "/v1/economics/self-host-vs-api", data=tiny % ("0" * 59), content_type="application/json"
    )
    assert response.status_code == 200, response.get_data(as_text=True)
    assert response.get_json()["api_cost_per_request"].endswith("1")


def test_a_horizon_beyond_fifty_years_is_cut_and_later_is_not_never(shared_client: FlaskClient):
    body = {
        "training_cost": 10**9,
        "price_per_call": 1,
        "calls_per_month": 1,
        "horizon_months": 700,
    }
    answer = shared_client.post(ROUTE, json=body).get_json()
    assert (answer["status"], answer["months"]) == ("not_within_horizon", None)
    assert answer["break_even_calls"] == 10**9
    assert "horizon_cut" in [warning["code"] for warning in answer["warnings"]]
    assert answer["inputs"]["horizon_months"] == 700


def test_an_elasticity_gives_the_best_price_or_says_that_there_is_none(
    shared_client: FlaskClient,
):
    asked = {"training_cost": 5576000, "price_per_call": "0.01", "serving_cost_per_call": "0.004",
             "calls": 10**9}  # fmt: skip
    best = post(shared_client, "break-even", **asked, price_elasticity=1.8)["best_price"]
    assert best["price_per_call"] == "0.009"
    assert float(best["profit"]) == pytest.approx(468125.6935862759, rel=1e-9)
    for missing in ("calls", "serving_cost_per_call"):
        unknown = {k: v for k, v in asked.items() if k != missing} | {"price_elasticity": 1.8}
        only_error(shared_client.post(ROUTE, json=unknown), f"/{missing}")
    none = post(shared_client, "break-even", **asked, price_elasticity=0.8)["best_price"]
    assert (none["status"], none["price_per_call"]) == ("unbounded", None)
