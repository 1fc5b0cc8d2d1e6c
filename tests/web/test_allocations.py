"""`/v1/fleets/allocations` through HTTP."""

from __future__ import annotations

import sys
from decimal import Decimal
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.allocation.asked import CHAT, H100, LOAD
from tests.web.bodies import HARDWARE
from tests.web.problems import only_error, problem

ROUTE = "/v1/fleets/allocations"
OWN: dict[str, Any] = {
    "name": "own", "hardware": "h100-sxm-80gb", "accelerators": 1, "tenure": "owned",
    "price_per_hour": "0.1",
}  # fmt: skip
BODY: dict[str, Any] = {"demands": [CHAT], "inventory": [OWN, H100], "alternatives": False}


def allocate(client: FlaskClient, **changes: Any) -> dict[str, Any]:
    response = client.post(ROUTE, json=BODY | changes)
    assert response.status_code == 201, response.get_data(as_text=True)
    return dict(response.get_json())


def demand(**changes: Any) -> dict[str, Any]:
    return CHAT | changes


def test_an_allocation_is_kept_and_read_again_word_for_word(shared_client: FlaskClient):
    made = shared_client.post(ROUTE, json=BODY)
    place = made.headers["Location"]
    assert place == f"{ROUTE}/{made.get_json()['id']}"
    read = shared_client.get(place)
    assert read.data == made.data
    again = shared_client.get(place, headers={"If-None-Match": read.headers["ETag"]})
    assert again.status_code == 304
    newest = shared_client.get(f"{ROUTE}?limit=1").get_json()["items"][0]
    names = ("id", "created_at", "objective", "status", "planner_version")
    assert newest == {name: made.get_json()[name] for name in names}
    assert shared_client.get(f"{ROUTE}?status=not_solved").get_json()["items"] == []
    problem(shared_client.get(f"{ROUTE}/nothing"), 404)


def test_every_request_is_carried_and_every_amount_is_exact(shared_client: FlaskClient):
    found = allocate(shared_client)
    assert found["status"] == "optimal"
    (served,) = found["allocation"]
    assert sum(pool["share_of_rate"] for pool in served["pools"]) == pytest.approx(1)
    by_name = {pool["inventory"]: pool for pool in served["pools"]}
    assert by_name["own"]["accelerators"] == 1  # the cheaper one first
    prices = {entry["name"]: entry["price_per_hour"] for entry in found["inputs"]["inventory"]}
    costs = {n: Decimal(prices[n]) * pool["accelerators"] for n, pool in by_name.items()}
    assert {n: Decimal(pool["cost_per_hour"]) for n, pool in by_name.items()} == costs
    assert Decimal(found["totals"]["cost_per_hour"]) == sum(costs.values())
    used = {each["name"]: each["accelerators_used"] for each in found["inventory"]}
    assert used == {name: pool["accelerators"] for name, pool in by_name.items()}
    assert found["profiles"][0]["pointer"] == "/demands/0/model"


def test_what_has_to_be_served_and_cannot_be_is_named_with_what_would_help(
    shared_client: FlaskClient,
):
    one = OWN | {"accelerators": 2}
    demands = [demand(), demand(name="other"), demand(name="small", workload=LOAD | {
        "request_rate_per_s": 0.1})]  # fmt: skip
    found = allocate(shared_client, demands=demands, inventory=[one], alternatives=True)
    assert (found["status"], found["totals"], found["allocation"]) == ("infeasible", None, [])
    assert found["conflict"]["minimal"]
    assert len(found["conflict"]["demands"]) == 2
    assert "cannot all be" in found["reason"]
    assert {each["demand"] for each in found["unserved"]} == {"chat", "other", "small"}
    (need,) = found["unserved"][0]["needs"]
    assert need == {"inventory": "own", "accelerators_needed": 2, "accelerators_free": 2}
    by_name = {each["demand"]: each for each in found["unserved"]}
    clash = found["conflict"]["demands"]
    for name in clash:
        (other,) = set(clash) - {name}
        assert by_name[name]["detail"] == (
            f"There is not enough for it and {other} together. Alone it would take "
            f"{by_name[name]['needs'][0]['accelerators_needed']} of own, where 2 are free."
        )
    (bystander,) = by_name.keys() - set(clash)
    assert by_name[bystander]["code"] == "others_conflict"
    (more,) = found["one_more"]
    assert more["status"] == "infeasible"


def test_of_too_much_the_weightiest_is_served_and_one_more_device_says_what_it_brings(
    shared_client: FlaskClient,
):
    demands = [demand(weight=1), demand(name="dear", weight=7), demand(name="last", weight=2)]
    found = allocate(
        shared_client, demands=demands, inventory=[OWN | {"accelerators": 3}], alternatives=True
    )
    assert [each["demand"] for each in found["allocation"]] == ["dear"]
    assert found["totals"]["served_weight"] == 7
    assert [each["code"] for each in found["unserved"]] == ["inventory", "inventory"]
    assert found["one_more"][0]["newly_served"] == ["last"]
    assert found["one_more"][0]["difference"] is None
    assert found["single_hardware"] == []


def test_a_whole_node_serves_one_pool_and_is_counted_whole(shared_client: FlaskClient):
    demands = [demand(), demand(name="other")]
    inventory = [{"hardware": "h100-sxm-80gb", "nodes": 2, "whole_nodes": True}]
    found = allocate(shared_client, demands=demands, inventory=inventory)
    pools = [pool for each in found["allocation"] for pool in each["pools"]]
    assert [(pool["nodes"], pool["accelerators"]) for pool in pools] == [(1, 8), (1, 8)]
    fewer = [inventory[0] | {"nodes": 1}]
    assert allocate(shared_client, demands=demands, inventory=fewer)["status"] == "infeasible"
    shared = [{"hardware": "h100-sxm-80gb", "nodes": 1}]
    assert allocate(shared_client, demands=demands, inventory=shared)["status"] == "optimal"


def test_energy_counts_the_power_of_what_is_used(shared_client: FlaskClient):
    inventory = [H100, {"hardware": "l4", "accelerators": 64}]
    found = allocate(shared_client, inventory=inventory, objective="energy", max_gap=0)
    watts = {"h100-sxm-80gb": 700, "l4": 72}
    power = sum(watts[each["name"]] * each["accelerators_used"] for each in found["inventory"])
    assert found["totals"]["power_kw"] == pytest.approx(power / 1000)
    assert found["measure"] == "power_kw"
    assert found["solver"]["objective_value"] == pytest.approx(power / 1000)


def test_an_empty_inventory_serves_nothing_and_says_so(shared_client: FlaskClient):
    found = allocate(
        shared_client, demands=[demand(weight=1)], inventory=[H100 | {"accelerators": 0}]
    )
    assert (found["status"], found["allocation"]) == ("optimal", [])
    (unserved,) = found["unserved"]
    assert unserved["needs"][0]["accelerators_free"] == 0


INLINE = {k: v for k, v in HARDWARE.items() if k != "price"} | {"price": None, "tdp_w": None}


@pytest.mark.parametrize(
    ("changes", "pointer", "members"),
    [
        ({"demands": [demand(), demand()]}, "/demands/1/name", {"given": "chat"}),
        ({"inventory": [H100, H100]}, "/inventory/1/name", {"given": "h100-sxm-80gb"}),
        ({"inventory": [H100 | {"hardware": "h100-sxm-80g"}]}, "/inventory/0/hardware",
         {"nearest": "h100-sxm-80gb"}),
        ({"inventory": [H100 | {"accelerators": -1}]}, "/inventory/0/accelerators",
         {"given": -1, "allowed": {"minimum": 0, "maximum": 100_000}}),
        ({"inventory": [H100 | {"nodes": 1}]}, "/inventory/0/accelerators",
         {"allowed": ["accelerators", "nodes"]}),
        ({"inventory": []}, "/inventory", {"allowed": {"minimum_items": 1, "maximum_items": 32}}),
        ({"inventory": [H100 | {"price_per_hour": "-1"}]}, "/inventory/0/price_per_hour",
         {"given": "-1"}),
        ({"inventory": [{"hardware": INLINE, "accelerators": 1}]}, "/inventory/0/price_per_hour",
         {"given": None}),
        ({"inventory": [{"hardware": INLINE, "accelerators": 1, "tenure": "owned"}],
          "objective": "energy"}, "/inventory/0/hardware", {"given": "my-h100"}),
        ({"inventory": [OWN | {"price_per_hour": "0.00001"}, H100 | {"price_per_hour": "100001"}]},
         "/inventory/1/price_per_hour", {"given": "100001", "allowed": {"maximum": "100000"}}),
        ({"inventory": [H100], "currency": "EUR"}, "/inventory/0/price_per_hour", {}),
        ({"inventory": [H100 | {"name": "a"}, OWN | {"hardware": INLINE | {
            "name": "h100-sxm-80gb"}}]}, "/inventory/1/hardware", {"given": "h100-sxm-80gb"}),
        ({"demands": [demand(model="meta-llama-3.1-8")]}, "/demands/0/model",
         {"nearest": "meta-llama-3.1-8b"}),
        ({"demands": [demand(inventory=["ow"])]}, "/demands/0/inventory/0", {"nearest": "own"}),
        ({"demands": [demand(must_have=True, weight=2)]}, "/demands/0/weight", {"given": 2}),
        ({"demands": [demand(weight=0)]}, "/demands/0/weight", {"given": 0}),
        ({"demands": [demand(workload={"saturate": True, "input_tokens": 9, "output_tokens": 9})]},
         "/demands/0/workload", {}),
        ({"demands": [demand(limits={"replicas": [1]})]}, "/demands/0/limits/replicas", {}),
        ({"demands": [demand(serving={"max_model_len": 5})]}, "/demands/0/serving/max_model_len",
         {"given": 5}),
        ({"time_limit_s": 61}, "/time_limit_s", {"allowed": {"minimum": 0.1, "maximum": 60}}),
        ({"objective": "costs"}, "/objective", {"nearest": "cost"}),
    ],
)  # fmt: skip
def test_what_cannot_be_allocated_is_named(
    shared_client: FlaskClient, changes: dict[str, Any], pointer: str, members: dict[str, Any]
):
    error = only_error(shared_client.post(ROUTE, json=BODY | changes), pointer)
    assert members.items() <= error.items()


def test_more_layouts_than_can_be_planned_are_refused(shared_client: FlaskClient):
    wide = {"tensor_parallel": list(range(1, 17)), "pipeline_parallel": [1, 2, 3]}
    formats = {"weights": ["bf16", "fp8"], "kv_cache": ["bf16", "fp8"]}
    demands = [
        demand(name=f"n{i}", limits=wide, precision=formats, serving={"routing": "least_loaded"})
        for i in range(30)
    ]
    response = shared_client.post(ROUTE, json=BODY | {"demands": demands})
    (error,) = problem(response, 422)["errors"]
    assert error["pointer"] == "/demands"
    assert error["allowed"]["maximum"] == 6_000


def test_without_the_solver_the_service_says_what_to_install(
    shared_client: FlaskClient, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    refused = problem(shared_client.post(ROUTE, json=BODY), 501)
    assert "inference-advisor[fleet]" in refused["detail"]
