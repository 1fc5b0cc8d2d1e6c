"""Plans in economic questions: what their replicas cost and serve."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from flask.testing import FlaskClient

from advisor.service.clock import now
from tests.web.problems import only_error
from tests.web.questions import codes, post

ROUTE = "/v1/economics/break-even"

PLAN: dict[str, Any] = {
    "model": "meta-llama-3.1-8b",
    "hardware": ["h100-sxm-80gb"],
    "workload": {
        "request_rate_per_s": 4,
        "input_tokens": 1000,
        "output_tokens": 200,
        "peak_to_mean": 1.5,
        "prefix_cache_hit": 0.25,
    },
    "slo": {"ttft_p95_ms": 1000, "tpot_p95_ms": 50},
}


@pytest.fixture(scope="module")
def plan(shared_client: FlaskClient) -> dict[str, Any]:
    created = shared_client.post("/v1/plans", json=PLAN).get_json()
    assert created["recommended"] is not None
    return dict(created)


def test_a_plan_gives_the_serving_cost_at_its_load(
    shared_client: FlaskClient, plan: dict[str, Any]
):
    answer = post(shared_client, "serving-cost", plan_id=plan["id"])
    cost = plan["recommended"]["cost"]
    assert answer["per_hour"] == cost["per_hour"]
    for figure in ("per_million_total_tokens", "per_request"):
        assert float(answer[figure]) == pytest.approx(float(cost[figure]), rel=1e-5)
    assert answer["plan"]["verdict"] == "stable"
    compared = post(shared_client, "serving-cost", plan_id=plan["id"], api_per_mtok="0.5")
    assert compared["parity"]["self_host_cheaper"] is (
        Decimal(compared["per_million_total_tokens"]) < Decimal("0.5")
    )
    # How far its load is below what it could serve is another question's: no share of it is shown.
    assert compared["parity"]["utilization"] is None
    assert compared["per_million_output_tokens_at_full_use"] is None
    assert "self-host-vs-api" in str(compared["null_reasons"])
    assert "slo_unverified" not in codes(answer)


def test_a_plan_of_classes_is_priced_by_its_mean_request(shared_client: FlaskClient):
    classes = [
        {"weight": 3, "input_tokens": 600, "output_tokens": 300, "slo": {"ttft_p95_ms": 900}},
        {
            "weight": 1,
            "input_tokens": {"values": [1000, 5000]},
            "output_tokens": 20,
            "prefix_cache_hit": 0.5,
        },
    ]
    body = PLAN | {"slo": {}, "workload": {"request_rate_per_s": 4, "classes": classes}}
    created = shared_client.post("/v1/plans", json=body).get_json()
    cost = created["recommended"]["cost"]
    answer = post(shared_client, "serving-cost", plan_id=created["id"])
    for figure in ("per_million_total_tokens", "per_request"):
        assert float(answer[figure]) == pytest.approx(float(cost[figure]), rel=1e-5)
    served = float(cost["per_request"]) * 1e6 / (0.75 * 300 + 0.25 * 20)
    assert float(cost["per_million_output_tokens"]) == pytest.approx(served, rel=1e-5)
    # An SLO of a class is one: what the plan's replicas could hold is held against it.
    assert "slo_unverified" not in codes(answer)


def test_a_plans_bill_is_shared_by_new_and_cached_input_and_output(
    shared_client: FlaskClient, plan: dict[str, Any]
):
    by_ratio = {"output_to_input_cost_ratio": 5, "cached_to_input_cost_ratio": 0.1}
    tokens = {"input": 4 * 750, "cached_input": 4 * 250, "output": 4 * 200}
    for more in ({}, by_ratio):
        answer = post(shared_client, "serving-cost", plan_id=plan["id"], **more)
        bill = sum(
            float(answer[f"per_million_{kind}_tokens"]) * rate * 3600 / 1e6
            for kind, rate in tokens.items()
        )
        assert bill == pytest.approx(float(answer["per_hour"]))
        shares = answer["allocation"]
        if not more:
            assert shares["basis"] == "step_time"
            time = plan["recommended"]["bottleneck"]["prefill_time_share"]
            assert shares["input_share"] == pytest.approx(time)
            assert answer["per_million_cached_input_tokens"] == "0"
    assert shares["output_share"] == pytest.approx(800 * 5 / (3000 + 100 + 4000))


def test_a_plan_stands_for_the_serving_cost_of_a_call(
    shared_client: FlaskClient, plan: dict[str, Any]
):
    asked = {"training_cost": "1000000", "price_per_call": "0.01"}
    cost = post(shared_client, "serving-cost", plan_id=plan["id"])["per_request"]
    by_plan = post(shared_client, "break-even", **asked, plan_id=plan["id"])
    by_hand = post(shared_client, "break-even", **asked, serving_cost_per_call=cost)
    for figure in ("break_even_calls", "contribution_per_call"):
        assert by_plan[figure] == by_hand[figure]
    assert by_plan["inputs"]["plan_id"] == plan["id"]
    served = 4 * 3600 * 730
    for calls, warned in (
        (served + 1, "beyond_plan_load"), (served, None), (served - 1, "below_plan_load"),
    ):  # fmt: skip
        busy = post(shared_client, "break-even", **asked, plan_id=plan["id"], calls_per_month=calls)
        found = [code for code in codes(busy) if code.endswith("_plan_load")]
        assert found == ([warned] if warned else [])
    swung = post(shared_client, "sensitivity", **asked, plan_id=plan["id"], swing=0.1)
    assert "serving_cost_per_call" in [bar["input"] for bar in swung["tornado"]]


def test_a_plan_stands_for_the_capacity_of_a_replica(
    shared_client: FlaskClient, plan: dict[str, Any]
):
    prices = {"input_per_mtok": "0.10", "output_per_mtok": "0.30"}
    answer = post(shared_client, "self-host-vs-api", plan_id=plan["id"], **prices)
    best = plan["recommended"]
    request = 1000 * 0.10e-6 + 200 * 0.30e-6
    assert float(answer["api_cost_per_request"]) == pytest.approx(request)
    assert answer["at_volume"]["requests_per_month"] == 4 * 3600 * 730
    per_replica = answer["replica_capacity_requests_per_month"] / (3600 * 730)
    hourly = float(best["cost"]["per_hour"]) / best["replicas"]
    floor = float(answer["self_host_floor_per_request"])
    assert floor == pytest.approx(hourly / (per_replica / 1.5 * 3600), rel=1e-9)
    # At its capacity a replica alone is a plan that meets the SLOs, a little above it is none.
    saturation = best["throughput"]["saturation_requests_per_s"]
    for rate, meets in ((per_replica, True), (per_replica + saturation / 500, False)):
        load = PLAN["workload"] | {"request_rate_per_s": rate, "peak_to_mean": 1}
        one = {"replicas": [1], "tensor_parallel": [best["tensor_parallel"]]}
        asked = PLAN | {"workload": load, "limits": one}
        found = shared_client.post("/v1/plans", json=asked).get_json()
        assert (found["recommended"] is not None) is meets


def test_spare_replicas_are_paid_for_and_serve_nothing(
    shared_client: FlaskClient, plan: dict[str, Any]
):
    prices = {"input_per_mtok": 1, "output_per_mtok": 3}
    spared = shared_client.post("/v1/plans", json=PLAN | {"limits": {"spare_replicas": 2}})
    with_spares, without = (
        post(shared_client, "self-host-vs-api", plan_id=each["id"], **prices)
        for each in (spared.get_json(), plan)
    )
    same = ("replica_cost_per_month", "self_host_floor_per_request")
    assert [with_spares[name] for name in same] == [without[name] for name in same]
    more = [float(each["at_volume"]["self_host_cost_per_month"]) for each in (with_spares, without)]
    assert more[0] - more[1] == pytest.approx(2 * float(without["replica_cost_per_month"]))


def test_a_plan_whose_profiles_changed_stands_for_no_capacity(shared_client: FlaskClient):
    known = shared_client.get("/v1/hardware-profiles/h100-sxm-80gb").get_json()
    fields = ("vendor", "memory_gib", "memory_bandwidth_gb_s", "dense_tflops", "interconnect",
              "accelerators_per_node", "price")  # fmt: skip
    profile = {name: known[name] for name in fields} | {"name": "soon-another"}
    created = shared_client.post("/v1/hardware-profiles", json=profile)
    made = shared_client.post("/v1/plans", json=PLAN | {"hardware": ["soon-another"]}).get_json()
    body = {"plan_id": made["id"], "input_per_mtok": 1, "output_per_mtok": 3}
    route, at = "/v1/economics/self-host-vs-api", "/v1/hardware-profiles/soon-another"
    assert shared_client.post(route, json=body).status_code == 200
    changed = shared_client.put(
        at,
        json=profile | {"memory_bandwidth_gb_s": 2000},
        headers={"If-Match": created.headers["ETag"]},
    )
    assert changed.status_code == 200
    assert "changed since" in only_error(shared_client.post(route, json=body), "/plan_id")["detail"]
    gone = shared_client.delete(at, headers={"If-Match": changed.headers["ETag"]})
    assert gone.status_code == 204
    detail = only_error(shared_client.post(route, json=body), "/plan_id")["detail"]
    assert "soon-another" in detail
    # What it cost and served when it was made is still known.
    assert post(shared_client, "serving-cost", plan_id=made["id"])["per_hour"]


def test_a_plan_brings_its_price_with_its_day(shared_client: FlaskClient, plan: dict[str, Any]):
    cost = plan["recommended"]["cost"]
    for path, more in (
        ("break-even", {"training_cost": 1, "price_per_call": 1}),
        ("serving-cost", {}),
        ("self-host-vs-api", {"input_per_mtok": 1, "output_per_mtok": 1}),
    ):
        (used,) = post(shared_client, path, plan_id=plan["id"], **more)["prices_used"]
        assert (used["name"], used["as_of"]) == ("h100-sxm-80gb", cost["price_as_of"])
    price = {"amount_per_hour": "2", "currency": "USD", "as_of": "2024-01-01", "source": "a list"}
    known = shared_client.get("/v1/hardware-profiles/h100-sxm-80gb").get_json()
    fields = ("name", "vendor", "memory_gib", "memory_bandwidth_gb_s", "dense_tflops",
              "interconnect", "accelerators_per_node")  # fmt: skip
    for day, warned in (("2024-01-01", "price_stale"), (None, "price_undated")):
        device = {name: known[name] for name in fields} | {"price": price | {"as_of": day}}
        made = shared_client.post("/v1/plans", json=PLAN | {"hardware": [device]}).get_json()
        assert warned in codes(post(shared_client, "serving-cost", plan_id=made["id"]))


def test_a_plan_may_be_bought_otherwise_than_it_was_priced(
    shared_client: FlaskClient, plan: dict[str, Any]
):
    own = post(shared_client, "serving-cost", plan_id=plan["id"])
    price = Decimal(own["purchase"]["accelerator_hour_price"])
    half = {"price_per_hour": str(price / 2)}
    for more in ({"reserved": half}, {"spot": half}, {"accelerator_hour_price": str(price / 2)}):
        answer = post(shared_client, "serving-cost", plan_id=plan["id"], **more)
        assert Decimal(answer["per_hour"]) * 2 == Decimal(own["per_hour"])
        assert float(answer["per_request"]) * 2 == pytest.approx(float(own["per_request"]))
    assert answer["prices_used"] == []


@pytest.mark.parametrize("path", ["break-even", "serving-cost", "self-host-vs-api"])
def test_a_plan_that_says_nothing_of_cost_is_refused(shared_client: FlaskClient, path: str):
    needed = {
        "break-even": {"training_cost": 1, "price_per_call": 1},
        "serving-cost": {},
        "self-host-vs-api": {"input_per_mtok": 1, "output_per_mtok": 1},
    }[path]
    nothing = shared_client.post("/v1/plans", json=PLAN | {"slo": {"tpot_p95_ms": 0.1}}).get_json()
    no_price = shared_client.post("/v1/plans", json=PLAN | {"hardware": ["mi325x"]}).get_json()
    ids = {"nowhere": "There is no plan", "☃": "There is no plan"}
    if nothing["recommended"] is None:
        ids[nothing["id"]] = "recommends nothing"
    ids[no_price["id"]] = "price" if no_price["recommended"] else "recommends nothing"
    for plan_id, says in ids.items():
        response = shared_client.post(f"/v1/economics/{path}", json=needed | {"plan_id": plan_id})
        assert says in only_error(response, "/plan_id")["detail"]


def test_a_plan_and_figures_of_ones_own_exclude_each_other(
    shared_client: FlaskClient, plan: dict[str, Any]
):
    body = {"training_cost": 1, "price_per_call": 1, "serving_cost_per_call": 0}
    response = shared_client.post(ROUTE, json=body | {"plan_id": plan["id"]})
    only_error(response, "/serving_cost_per_call")
    response = shared_client.post(
        "/v1/economics/serving-cost", json={"plan_id": plan["id"], "utilization": 0.5}
    )
    only_error(response, "/utilization")


def test_currencies_that_differ_take_a_dated_rate(shared_client: FlaskClient, plan: dict[str, Any]):
    asked = {"plan_id": plan["id"], "currency": "EUR"}
    response = shared_client.post("/v1/economics/serving-cost", json=asked)
    assert only_error(response, "/plan_id")["given"] == "USD"
    rate = {"from_currency": "USD", "to_currency": "EUR", "rate": "0.5", "as_of": "2026-11-30"}
    answer = post(shared_client, "serving-cost", **asked, exchange_rate=rate)
    dollars = post(shared_client, "serving-cost", plan_id=plan["id"])
    assert answer["currency"] == "EUR"
    assert float(answer["per_hour"]) * 2 == pytest.approx(float(dollars["per_hour"]))
    sums = {"training_cost": 1, "price_per_call": 1, "currency": "EUR", "plan_id": plan["id"]}
    only_error(shared_client.post(ROUTE, json=sums), "/plan_id")
    old = post(shared_client, "break-even", **sums, exchange_rate=rate | {"as_of": "2020-01-01"})
    dollars = post(shared_client, "break-even", **(sums | {"currency": "USD"}))
    assert float(old["markup_on_cost"]) > float(dollars["markup_on_cost"])
    assert "rate_stale" in codes(old)
    tomorrow_week = (now().date() + timedelta(days=7)).isoformat()
    for day in ("recently", tomorrow_week):
        wrong = asked | {"exchange_rate": rate | {"as_of": day}}
        response = shared_client.post("/v1/economics/serving-cost", json=wrong)
        assert only_error(response, "/exchange_rate/as_of")["given"] == day


def test_a_rate_that_converts_nothing_is_said_to(shared_client: FlaskClient, plan: dict[str, Any]):
    rate = {"from_currency": "USD", "to_currency": "EUR", "rate": "0.9"}
    rate["as_of"] = now().date().isoformat()
    body = {"training_cost": 1, "price_per_call": 1, "exchange_rate": rate}
    for unused in (body | {"currency": "EUR"}, body | {"plan_id": plan["id"]}):
        answer = shared_client.post(ROUTE, json=unused).get_json()
        assert "rate_unused" in codes(answer)
    used = shared_client.post(ROUTE, json=body | {"plan_id": plan["id"], "currency": "EUR"})
    assert "rate_unused" not in codes(used.get_json())


def test_a_plan_without_slo_is_warned_of_wherever_it_stands_for_a_cost(shared_client: FlaskClient):
    free = shared_client.post("/v1/plans", json=PLAN | {"slo": {}}).get_json()
    body = {"plan_id": free["id"], "training_cost": 1, "price_per_call": 1}
    for path, more in (("break-even", {}), ("sensitivity", {"swing": 0.1})):
        answer = shared_client.post(f"/v1/economics/{path}", json=body | more).get_json()
        assert "no_slo" in codes(answer)


def test_a_share_for_cached_tokens_alone_is_refused(
    shared_client: FlaskClient, plan: dict[str, Any]
):
    body = {"plan_id": plan["id"], "cached_to_input_cost_ratio": 0.1}
    response = shared_client.post("/v1/economics/serving-cost", json=body)
    only_error(response, "/output_to_input_cost_ratio")
