from __future__ import annotations

from flask.testing import FlaskClient

from tests.web.problems import only_error

ROUTE = "/v1/economics/break-even"


def test_break_even_is_exact_and_says_what_it_leaves_out(shared_client: FlaskClient):
    body = {"training_cost": 5576000, "price_per_call": 0.01, "serving_cost_per_call": "0.004"}
    answer = shared_client.post(ROUTE, json=body).get_json()
    assert answer["status"] == "ok"
    assert answer["break_even_calls"] == 929333334
    assert answer["break_even_calls_without_serving_cost"] == 557600000
    assert answer["contribution_per_call"] == "0.006"
    assert answer["not_included"]
    assert answer["inputs"] == {
        "training_cost": "5576000",
        "price_per_call": "0.01",
        "serving_cost_per_call": "0.004",
        "calls": None,
        "currency": "USD",
    }


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
    body = {"training_cost": 1, "price_per_call": 1, "monthly_growth": 0.1}
    only_error(shared_client.post(ROUTE, json=body), "/monthly_growth")
