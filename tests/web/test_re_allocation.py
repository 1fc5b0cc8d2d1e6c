"""Allocations made again: what has changed, what would move, and what keeping does."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.web import bodies
from tests.web.fixtures import running_app
from tests.web.problems import only_error, problem

ROUTE = "/v1/fleets/allocations"
LOAD = {"request_rate_per_s": 8, "input_tokens": 500, "output_tokens": 100}
CHAT: dict[str, Any] = {
    "name": "chat", "model": bodies.MODEL["name"], "workload": LOAD,
    "slo": {"ttft_p95_ms": 1000, "tpot_p95_ms": 50},
}  # fmt: skip
MINE: dict[str, Any] = {"name": "mine", "hardware": "my-h100", "accelerators": 8}
OTHER: dict[str, Any] = {"name": "other", "hardware": "other", "accelerators": 8}
DEVICE = bodies.HARDWARE | {"efficiency": {}}


@pytest.fixture
def app(database_url: str) -> Iterator[Flask]:
    for app in running_app(database_url):
        client = app.test_client()
        assert client.post("/v1/model-profiles", json=bodies.MODEL).status_code == 201
        for name, hourly in (("my-h100", "2.00"), ("other", "3.00")):
            made = client.post("/v1/hardware-profiles", json=priced(name, hourly))
            assert made.status_code == 201, made.text
        yield app


def priced(name: str, hourly: str, **fields: Any) -> dict[str, Any]:
    price = DEVICE["price"] | {"amount_per_hour": hourly}
    return DEVICE | {"name": name, "price": price} | fields


def made(client: FlaskClient, **changes: Any) -> dict[str, Any]:
    body = {"demands": [CHAT], "inventory": [MINE, OTHER], "alternatives": False} | changes
    answer = client.post(ROUTE, json=body)
    assert answer.status_code == 201, answer.text
    return dict(answer.get_json())


def change(client: FlaskClient, name: str, hourly: str, **fields: Any) -> None:
    place = f"/v1/hardware-profiles/{name}"
    tag = client.get(place).headers["ETag"]
    answer = client.put(place, json=priced(name, hourly, **fields), headers={"If-Match": tag})
    assert answer.status_code == 200, answer.text


def again(client: FlaskClient, allocation: dict[str, Any]) -> dict[str, Any]:
    answer = client.post(f"{ROUTE}/{allocation['id']}/re-evaluation")
    assert answer.status_code == 201, answer.text
    assert answer.headers["Location"] == f"{ROUTE}/{answer.get_json()['now']['id']}"
    return dict(answer.get_json())


def differing(found: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {each["pointer"]: (each["then"], each["now"]) for each in found["differences"]}


def test_where_nothing_has_changed_nothing_moves(client: FlaskClient):
    before = made(client)
    found = again(client, before)
    assert (found["same"], found["differences"], found["moves"]) == (True, [], [])
    keep = found["keep"]
    assert (keep["verdict"], keep["feasible"], keep["saving"]) == ("keep", True, 0)
    assert keep["objective_value"] == before["solver"]["objective_value"]
    assert keep["totals"] == before["totals"]
    (demand,), (served,) = keep["demands"], before["allocation"]
    (pool,), (as_allocated,) = demand["pools"], served["pools"]
    alike = ("latency", "load", "slo", "share_of_rate", "capacity_requests_per_s", "cost_per_hour")
    assert {name: pool[name] for name in alike} == {name: as_allocated[name] for name in alike}
    now = client.get(f"{ROUTE}/{found['now']['id']}").get_json()
    assert now["allocation"] == before["allocation"]
    assert client.get(f"{ROUTE}/{before['id']}").get_json() == before


def test_a_price_that_rose_says_what_keeping_costs_and_what_moving_saves(client: FlaskClient):
    before = made(client, demands=[CHAT | {"workload": LOAD | {"request_rate_per_s": 150}}])
    change(client, "my-h100", "4.50")
    found = again(client, before)
    assert found["profiles"][1:] == [
        {"pointer": "/inventory/0/hardware", "name": "my-h100", "version_then": 1,
         "version_now": 2},
        {"pointer": "/inventory/1/hardware", "name": "other", "version_then": 1, "version_now": 1},
    ]  # fmt: skip
    count = before["totals"]["accelerators"]
    assert count > 1
    keep = found["keep"]
    assert (keep["verdict"], keep["feasible"]) == ("move", True)
    assert keep["objective_value"] == pytest.approx(4.5 * count)
    assert float(keep["totals"]["cost_per_hour"]) == pytest.approx(4.5 * count)
    assert keep["saving"] == pytest.approx(1.5 * count)  # the other one costs 3
    assert keep["saving"] <= keep["saving_at_most"] <= 1.5 * count * 1.01
    assert "moving saves" in keep["detail"]
    differences = differing(found)
    assert differences["/objective_value"] == (2.0 * count, 3.0 * count)
    assert differences["/inventory/mine/price_per_hour"] == ("2", "4.5")
    assert differences["/inventory/other/accelerators_used"] == (0, count)
    moves = [(m["inventory"], m["replicas_then"], m["replicas_now"]) for m in found["moves"]]
    assert moves == [("mine", count, 0), ("other", 0, count)]


def test_another_allocation_that_is_as_good_is_no_reason_to_move(client: FlaskClient):
    loose, exact = made(client), made(client, max_gap=0)
    change(client, "my-h100", "3.0015")
    keep = again(client, loose)["keep"]
    assert keep["verdict"] == "keep"
    assert 0 <= keep["saving_at_most"] <= 0.001 * keep["objective_value"]
    assert "it lies within max_gap, 0.10%, of the best: nothing need be moved" in keep["detail"]
    found = again(client, exact)
    assert found["keep"]["verdict"] == "move"
    assert found["keep"]["saving"] == pytest.approx(0.0015 * exact["totals"]["accelerators"])


def test_what_runs_and_has_become_too_slow_names_the_limit_as_its_plan_does(client: FlaskClient):
    before = made(client)
    change(client, "my-h100", "2.00", memory_bandwidth_gb_s=300)
    found = again(client, before)
    keep = found["keep"]
    assert (keep["verdict"], keep["feasible"], keep["saving"]) == ("fails", False, None)
    assert keep["totals"]["demands_served"] == 0
    (demand,) = keep["demands"]
    (pool,) = demand["pools"]
    assert (demand["met"], pool["met"]) == (False, False)
    plan = {
        "model": CHAT["model"], "hardware": ["my-h100"], "slo": CHAT["slo"], "workload": LOAD,
        "precision": {name: [format_] for name, format_ in pool["precision"].items()},
        "limits": {
            "tensor_parallel": [pool["tensor_parallel"]], "replicas": [pool["replicas"]],
            "max_accelerators": 64,
        },
    }  # fmt: skip
    expected = client.post("/v1/plans", json=plan).get_json()
    assert expected["recommended"] is None
    assert pool["missed_limits"] == expected["missed_limits"]
    assert pool["latency"] == expected["nearest"]["latency"]
    limit = pool["missed_limits"][0]["limit"]
    assert limit in keep["detail"]
    assert [m["inventory"] for m in found["moves"]] == ["mine", "other"]


def test_what_cannot_run_any_more_says_why(client: FlaskClient):
    before = made(client)
    change(client, "my-h100", "2.00", memory_gib=10)
    keep = again(client, before)["keep"]
    (pool,) = keep["demands"][0]["pools"]
    assert (keep["verdict"], pool["met"], pool["latency"]) == ("fails", False, None)
    assert pool["capacity_requests_per_s"] is None
    assert pool["detail"]
    assert pool["detail"] in keep["detail"]
    assert keep["objective_value"] == 2.0 * before["totals"]["accelerators"]


def test_what_is_left_over_now_serves_more(client: FlaskClient):
    demands = [CHAT | {"name": "dear", "weight": 2}, CHAT | {"name": "cheap", "weight": 1}]
    entry = {"name": "mine", "hardware": "my-h100", "nodes": 1}
    change(client, "my-h100", "2.00", accelerators_per_node=1)
    before = made(client, demands=demands, inventory=[entry])
    assert before["totals"]["demands_served"] < 2
    change(client, "my-h100", "2.00", accelerators_per_node=8)
    found = again(client, before)
    assert (found["keep"]["verdict"], found["keep"]["saving"]) == ("serve_more", None)
    assert found["keep"]["totals"]["served_weight"] == before["totals"]["served_weight"]
    assert differing(found)["/demands/cheap/served"] == (False, True)


def test_an_entry_that_has_become_too_small_is_named(client: FlaskClient):
    entry = {"name": "mine", "hardware": "my-h100", "nodes": 2}
    demand = CHAT | {"limits": {"tensor_parallel": [1]}, "workload": LOAD | {
        "request_rate_per_s": 200}}  # fmt: skip
    before = made(client, demands=[demand], inventory=[entry])
    used = before["totals"]["accelerators"]
    assert used > 2
    change(client, "my-h100", "2.00", accelerators_per_node=1)
    found = again(client, before)
    assert found["keep"]["verdict"] == "fails"
    (short,) = found["keep"]["overbooked"]
    assert short == {"inventory": "mine", "accelerators_used": used, "accelerators": 2}
    assert found["keep"]["demands"][0]["met"]
    assert "has to be served and cannot be" in differing(found)["/reason"][1]
    assert differing(found)["/totals"][1] is None


def test_whole_nodes_that_have_become_larger_may_be_more_than_a_demand_may_have(
    client: FlaskClient,
):
    change(client, "my-h100", "2.00", accelerators_per_node=4)
    demand = CHAT | {"limits": {"max_accelerators": 4}}
    entry = MINE | {"whole_nodes": True, "accelerators": 16}
    before = made(client, demands=[demand], inventory=[entry])
    change(client, "my-h100", "2.00", accelerators_per_node=8)
    keep = again(client, before)["keep"]
    assert (keep["verdict"], keep["demands"][0]["met"]) == ("fails", False)
    assert keep["demands"][0]["pools"][0]["met"]
    assert keep["objective_value"] == 16
    assert "chat takes 8 accelerators and may take 4." in keep["detail"]


def test_where_nothing_was_allocated_there_is_nothing_to_keep(client: FlaskClient):
    before = made(client, inventory=[MINE | {"accelerators": 0}])
    assert before["status"] == "infeasible"
    found = again(client, before)
    assert (found["same"], found["keep"], found["moves"]) == (True, None, [])


def test_pools_share_the_rate_by_what_they_carry_now(client: FlaskClient):
    demand = CHAT | {"workload": LOAD | {"request_rate_per_s": 60}}
    entries = [MINE | {"accelerators": 1}, OTHER]
    before = made(client, demands=[demand], inventory=entries)
    (served,) = before["allocation"]
    assert [pool["inventory"] for pool in served["pools"]] == ["mine", "other"]
    change(client, "other", "3.00", memory_bandwidth_gb_s=3000)
    keep = again(client, before)["keep"]
    pools = keep["demands"][0]["pools"]
    carried = [pool["capacity_requests_per_s"] for pool in pools]
    shares = [pool["share_of_rate"] for pool in pools]
    assert shares == pytest.approx([each / sum(carried) for each in carried], rel=1e-5)
    assert shares[0] > served["pools"][0]["share_of_rate"]
    assert keep["feasible"] is (sum(carried) >= 60)


def test_what_cannot_be_allocated_again_is_refused(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
):
    before = made(client)
    path = f"{ROUTE}/{before['id']}/re-evaluation"
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "scipy.optimize", None)
        problem(client.post(path), 501)
    deleted = client.delete("/v1/hardware-profiles/my-h100", headers={"If-Match": '"1"'})
    assert deleted.status_code == 204
    assert only_error(client.post(path), "/inventory/0/hardware")["given"] == "my-h100"
    problem(client.post(f"{ROUTE}/nothing/re-evaluation"), 404)
    assert len(client.get(ROUTE).get_json()["items"]) == 1


def test_a_repeated_re_evaluation_keeps_one_allocation(client: FlaskClient):
    path = f"{ROUTE}/{made(client)['id']}/re-evaluation"
    first, second = (client.post(path, headers={"Idempotency-Key": "x"}) for _ in range(2))
    assert first.data == second.data
    assert len(client.get(ROUTE).get_json()["items"]) == 2
