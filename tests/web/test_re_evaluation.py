from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.web import bodies
from tests.web.fixtures import running_app
from tests.web.problems import only_error, problem

DEVICE = "/v1/hardware-profiles/my-h100"
PLAN: dict[str, Any] = {
    "model": bodies.MODEL["name"],
    "hardware": ["my-h100", bodies.HARDWARE | {"name": "inline"}],
    "workload": {"request_rate_per_s": 2, "input_tokens": 500, "output_tokens": 100},
    "slo": {"tpot_p95_ms": 50.5},
}


@pytest.fixture
def app(database_url: str) -> Iterator[Flask]:
    for app in running_app(database_url):
        client = app.test_client()
        assert client.post("/v1/model-profiles", json=bodies.MODEL).status_code == 201
        assert client.post("/v1/hardware-profiles", json=bodies.HARDWARE).status_code == 201
        yield app


def made(client: FlaskClient) -> dict[str, Any]:
    answer = client.post("/v1/plans", json=PLAN)
    assert answer.status_code == 201, answer.text
    return dict(answer.get_json())


def again(client: FlaskClient, plan: dict[str, Any]) -> dict[str, Any]:
    answer = client.post(f"/v1/plans/{plan['id']}/re-evaluation")
    assert answer.status_code == 201, answer.text
    assert answer.headers["Location"] == f"/v1/plans/{answer.get_json()['now']['id']}"
    return dict(answer.get_json())


def change(client: FlaskClient, **fields: Any) -> None:
    tag = client.get(DEVICE).headers["ETag"]
    changed = client.put(DEVICE, json=bodies.HARDWARE | fields, headers={"If-Match": tag})
    assert changed.status_code == 200, changed.text


def test_a_plan_names_the_versions_of_the_profiles_it_was_made_with(client: FlaskClient):
    assert made(client)["profiles"] == [
        {"pointer": "/model", "name": bodies.MODEL["name"], "version": 1},
        {"pointer": "/hardware/0", "name": "my-h100", "version": 1},
        {"pointer": "/hardware/1", "name": "inline", "version": None},
    ]
    change(client, notes="other")
    assert [each["version"] for each in made(client)["profiles"]] == [1, 2, None]


def test_where_nothing_has_changed_the_recommendation_is_the_same(client: FlaskClient):
    plan = made(client)
    found = again(client, plan)
    assert found["same"] is True
    assert found["differences"] == []
    assert found["then"]["id"] == plan["id"] != found["now"]["id"]
    assert found["then"]["coefficients_version"] == found["now"]["coefficients_version"]
    kept = client.get(f"/v1/plans/{found['now']['id']}").get_json()
    assert kept["recommended"] == plan["recommended"]
    assert kept["inputs"] == plan["inputs"]


def test_a_changed_profile_is_named_with_what_it_changes(client: FlaskClient):
    plan = made(client)
    change(client, price=bodies.HARDWARE["price"] | {"amount_per_hour": "1.05"})
    found = again(client, plan)
    assert found["same"] is False
    assert found["profiles"][1] == {
        "pointer": "/hardware/0", "name": "my-h100", "version_then": 1, "version_now": 2,
    }  # fmt: skip
    costs = {each["pointer"]: each for each in found["differences"]}
    cost = costs["/recommended/cost/per_hour"]
    assert float(cost["then"]) == 2 * float(cost["now"])
    assert client.get(f"/v1/plans/{plan['id']}").get_json() == plan


def test_other_coefficients_are_told_from_the_same(client: FlaskClient, monkeypatch):
    plan = made(client)
    monkeypatch.setattr("advisor.service.plans.data_version", lambda: "other")
    found = again(client, plan)
    assert found["now"]["coefficients_version"] == "other"
    assert found["then"]["coefficients_version"] == plan["coefficients_version"] != "other"


def test_a_plan_whose_profile_is_gone_cannot_be_made_again(client: FlaskClient):
    plan = made(client)
    assert client.delete(DEVICE, headers={"If-Match": '"1"'}).status_code == 204
    answer = client.post(f"/v1/plans/{plan['id']}/re-evaluation")
    assert only_error(answer, "/hardware/0")["given"] == "my-h100"
    problem(client.post("/v1/plans/nothing/re-evaluation"), 404)


def test_a_repeated_re_evaluation_keeps_one_plan(client: FlaskClient):
    path = f"/v1/plans/{made(client)['id']}/re-evaluation"
    first, second = (client.post(path, headers={"Idempotency-Key": "x"}) for _ in range(2))
    assert first.data == second.data
    assert len(client.get("/v1/plans").get_json()["items"]) == 2
