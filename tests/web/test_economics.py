from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from flask.testing import FlaskClient

from advisor.service.clock import now
from tests.web.problems import only_error, problem

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


# Figures from plans, profiles and price lists


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


def post(client: FlaskClient, path: str, **body: Any) -> dict[str, Any]:
    response = client.post(f"/v1/economics/{path}", json=body)
    assert response.status_code == 200, response.get_data(as_text=True)
    return dict(response.get_json())


def codes(answer: dict[str, Any]) -> list[str]:
    return [warning["code"] for warning in answer["warnings"]]


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
