"""Prices of the lists and of profiles, and ways to buy, in economic questions."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from flask.testing import FlaskClient

from advisor.service.clock import now
from tests.web.problems import only_error, problem
from tests.web.questions import codes, post


@pytest.mark.parametrize(("starts", "expected"), [(0, 0), (72, 0.5682), (288, 0.6944)])
def test_without_idle_bills_only_cold_starts_take_a_utilization(
    shared_client: FlaskClient, starts: int, expected: float
):
    body = {"accelerator_hour_price": 1, "accelerators": 1, "output_tokens_per_s": 1000,
            "input_tokens_per_s": 0, "billing": "scale_to_zero", "cold_starts_per_day": starts,
            "cold_start_minutes": 5, "api_per_mtok": "0.4"}  # fmt: skip
    for utilization in (0.01, 0.5, 0.56, 0.6, 0.69, 0.7, 1):
        parity = post(shared_client, "serving-cost", **body, utilization=utilization)["parity"]
        assert parity["utilization"] == pytest.approx(expected, abs=1e-4)
        assert parity["self_host_cheaper"] is (utilization > expected)


@pytest.mark.parametrize("given", ["h100-sxm", "h100", "on-demand"])
def test_part_of_a_listed_name_finds_the_nearest(shared_client: FlaskClient, given: str):
    body = {"accelerator_offer": given, "accelerators": 1, "output_tokens_per_s": 1,
            "utilization": 1, "billing": "always_on"}  # fmt: skip
    response = shared_client.post("/v1/economics/serving-cost", json=body)
    error = only_error(response, "/accelerator_offer")
    assert f"-{given}-" in f"-{error['nearest']}-"


def test_impossible_hours_are_refused_with_or_without_a_price(shared_client: FlaskClient):
    body = {"parameters_active": 21e9, "tokens": 8.1e12, "peak_tflops": 989}
    response = shared_client.post(
        "/v1/economics/training-cost", json=body | {"accelerator_hours": 172_800}
    )
    pointers = [error["pointer"] for error in problem(response, 422)["errors"]]
    assert pointers == ["/price_per_hour", "/accelerator_hours"]


def test_a_listed_price_is_used_with_its_date_and_an_unknown_one_refused(
    shared_client: FlaskClient,
):
    tokens = {"uncached_input_tokens": 10**6, "visible_output_tokens": 0}
    answer = post(shared_client, "request-price", **tokens, api_offer="together-gpt-oss-120b")
    assert answer["per_request"] == "0.15"
    (used,) = answer["prices_used"]
    assert used["as_of"] == "2026-08-18"
    age = (now().date() - date(2026, 8, 18)).days
    assert used["price_age_days"] == age
    assert ("price_stale" in codes(answer)) == (age > 90)
    response = shared_client.post(
        "/v1/economics/request-price", json=tokens | {"api_offer": "together-gpt-oss-120"}
    )
    assert only_error(response, "/api_offer")["nearest"] == "together-gpt-oss-120b"
    own = {"accelerators": 1, "output_tokens_per_s": 1, "utilization": 1, "billing": "always_on"}
    response = shared_client.post(
        "/v1/economics/serving-cost", json=own | {"accelerator_offer": "h900"}
    )
    only_error(response, "/accelerator_offer")
    undated = post(shared_client, "serving-cost", **own, accelerator_offer="verda-h100-spot-fin-02")
    assert "price_undated" in codes(undated)
    assert undated["per_hour"] == "0.8015"


def test_price_lists_are_paged(shared_client: FlaskClient):
    for path in ("apis", "accelerators"):
        seen: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            query = f"?limit=200{cursor and f'&cursor={cursor}'}"
            page = shared_client.get(f"/v1/prices/{path}{query}").get_json()
            seen += [item["name"] for item in page["items"]]
            cursor = page["next_cursor"]
        assert seen == sorted(set(seen))
        assert len(seen) > 90
        problem(shared_client.get(f"/v1/prices/{path}?cursor=nowhere"), 400)


def test_an_accelerator_of_the_catalogue_brings_its_peak_and_its_price(
    shared_client: FlaskClient,
):
    run = {"parameters_active": 8e9, "tokens": 15e12}
    known = post(shared_client, "training-cost", **run, accelerator="h100-sxm-80gb")
    hand = post(shared_client, "training-cost", **run, peak_tflops=989.4, price_per_hour="6.88")
    assert known["cost"] == hand["cost"]
    assert known["prices_used"][0]["name"] == "h100-sxm-80gb"
    fp8 = post(shared_client, "training-cost", **run, accelerator="h100-sxm-80gb", precision="fp8")
    assert fp8["accelerator_hours"] < known["accelerator_hours"]
    for wrong, pointer in (
        ({"accelerator": "h100-sxm-80"}, "/accelerator"),
        ({"accelerator": "a100-sxm-80gb", "precision": "fp8"}, "/precision"),
        ({"peak_tflops": 989}, "/price_per_hour"),
        ({"price_per_hour": 1}, "/peak_tflops"),
        ({"accelerator": "h100-sxm-80gb", "mfu": 35}, "/mfu"),
    ):
        only_error(shared_client.post("/v1/economics/training-cost", json=run | wrong), pointer)


@pytest.mark.parametrize(
    ("path", "field", "body"),
    [
        ("serving-cost", "accelerator_offer", {"accelerators": 1, "output_tokens_per_s": 1,
                                               "utilization": 1, "billing": "always_on"}),
        ("ownership", "accelerator_offer", {"capex": 1, "life_years": 4, "power_kw": 1,
                                            "price_per_kwh": 0}),
        ("training-cost", "accelerator", {"parameters_active": 8e9, "tokens": 15e12}),
        ("training-cost", "accelerator_offer", {"parameters_active": 8e9, "tokens": 15e12,
                                                "peak_tflops": 989}),
        ("request-price", "api_offer", {"uncached_input_tokens": 1, "visible_output_tokens": 1}),
        ("self-host-vs-api", "api_offer", {"input_tokens": 1, "output_tokens": 1,
                                           "replica_cost_per_month": 1,
                                           "replica_capacity_requests_per_month": 1}),
    ],
)  # fmt: skip
def test_a_name_that_is_not_known_is_refused_with_the_nearest_and_never_costs_0(
    shared_client: FlaskClient, path: str, field: str, body: dict[str, Any]
):
    # A public calculator makes the cost of an unknown accelerator 0, another one makes one up.
    unknown = "together-gpt-oss-12b" if field == "api_offer" else "h100-sxm-81gb"
    response = shared_client.post(f"/v1/economics/{path}", json=body | {field: unknown})
    error = only_error(response, f"/{field}")
    assert (error["given"], bool(error["nearest"])) == (unknown, True)


def test_an_accelerator_without_a_price_is_not_free(shared_client: FlaskClient):
    run = {"parameters_active": 8e9, "tokens": 15e12, "accelerator": "mi325x"}
    only_error(shared_client.post("/v1/economics/training-cost", json=run), "/price_per_hour")


def test_a_price_a_thousand_times_off_makes_the_unit_doubtful(shared_client: FlaskClient):
    tokens = {"uncached_input_tokens": 1000, "visible_output_tokens": 500}
    per_token = {"input_per_mtok": "0.00000055", "output_per_mtok": "0.00000219"}
    assert (
        codes(post(shared_client, "request-price", **tokens, **per_token)).count("unusual_price")
        == 2
    )
    usual = {"input_per_mtok": "0.55", "output_per_mtok": "2.19"}
    rupiah = {"input_per_mtok": 9000, "output_per_mtok": 36_000, "currency": "IDR"}
    for prices in (usual, rupiah):
        answer = post(shared_client, "request-price", **tokens, **prices)
        assert "unusual_price" not in codes(answer)


def test_cached_tokens_without_a_price_cost_what_others_do_and_it_is_said(
    shared_client: FlaskClient,
):
    answer = post(
        shared_client, "request-price", uncached_input_tokens=0, cached_input_tokens=10**6,
        visible_output_tokens=0, input_per_mtok="0.5", output_per_mtok=1,
    )  # fmt: skip
    assert answer["per_request"] == "0.5"
    assert "cached_at_input_price" in [each["code"] for each in answer["assumptions"]]


def test_a_reservation_and_a_spot_price_above_on_demand(shared_client: FlaskClient):
    own = {"accelerator_hour_price": "11.06", "accelerators": 1, "output_tokens_per_s": 1000,
           "utilization": 1, "billing": "always_on"}  # fmt: skip
    answer = post(shared_client, "serving-cost", **own, reserved={"price_per_hour": "7.67"})
    assert answer["per_hour"] == "7.67"
    assert answer["purchase"]["pays_from_busy_share"] == pytest.approx(7.67 / 11.06)
    dear = post(shared_client, "serving-cost", **own, spot={"price_per_hour": "12"})
    assert "spot_above_on_demand" in codes(dear)
    both = own | {"reserved": {"price_per_hour": 1}, "spot": {"price_per_hour": 1}}
    only_error(shared_client.post("/v1/economics/serving-cost", json=both), "/reserved")
    idle = own | {"reserved": {"price_per_hour": 1}, "billing": "scale_to_zero"}
    only_error(shared_client.post("/v1/economics/serving-cost", json=idle), "/billing")


def test_a_listed_reservation_or_spot_price_is_no_price_on_demand(shared_client: FlaskClient):
    own = {"accelerators": 1, "output_tokens_per_s": 1000, "utilization": 1}
    reserved = "aws-a100-sxm-40gb-reserved-1y-us-east-northern-virginia"
    route, half = "/v1/economics/serving-cost", {"price_per_hour": 1}
    for offer in (reserved, "verda-h100-spot-fin-02"):
        body = own | {"accelerator_offer": offer, "billing": "always_on"}
        assert shared_client.post(route, json=body).status_code == 200
        for way in ("spot", "reserved"):
            only_error(shared_client.post(route, json=body | {way: half}), "/accelerator_offer")
    idle = own | {"accelerator_offer": reserved, "billing": "scale_to_zero"}
    assert only_error(shared_client.post(route, json=idle), "/billing")["allowed"] == ["always_on"]
    owned = {"capex": 1000, "life_years": 4, "power_kw": 1, "price_per_kwh": "0.1"}
    answer = post(shared_client, "ownership", **owned, accelerator_offer=reserved)
    assert "reserved_rent" in codes(answer)


def test_the_utilization_that_is_assumed_is_said_with_its_source(shared_client: FlaskClient):
    prices = {"training_price_per_hour": 2, "serving_price_per_hour": 2, "output_share": 0.5,
              "training_peak_tflops": 989, "serving_peak_tflops": 989}  # fmt: skip
    body = {"reference_parameters": 13e9, "inference_tokens": 2e12, "constants": "sardana_code"}
    size = post(shared_client, "inference-aware-size", **body, prices=prices)
    run = {"parameters_active": 8e9, "tokens": 15e12, "peak_tflops": 989, "price_per_hour": 2}
    training = post(shared_client, "training-cost", **run)
    assert size["inputs"]["prices"]["training_mfu"] == training["implied_mfu"] == 0.28
    for answer in (size, training):
        said = {each["code"]: each["detail"] for each in answer["assumptions"]}
        assert "34 published runs" in said["typical_mfu"]
    assert "2401.00448" in {c["code"]: c["detail"] for c in size["assumptions"]}["serving_mfu"]
    own = prices | {"training_mfu": 0.5, "input_mfu": 0.4}
    answer = post(shared_client, "inference-aware-size", **body, prices=own)
    assert not {"typical_mfu", "serving_mfu"} & {each["code"] for each in answer["assumptions"]}
