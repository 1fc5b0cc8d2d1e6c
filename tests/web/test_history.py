from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from advisor.service.keys import Keys
from tests.store.samples import outcomes_at_once
from tests.web import bodies
from tests.web.fixtures import running_app
from tests.web.problems import only_error, problem

CHANGES = "/v1/profile-changes"
HARDWARE = "/v1/hardware-profiles"
DEVICE = f"{HARDWARE}/my-h100"


@pytest.fixture
def app(database_url: str) -> Iterator[Flask]:
    yield from running_app(database_url, authentication="required")


@pytest.fixture
def keys(app: Flask) -> dict[str, dict[str, str]]:
    """Headers by scope; each key is named after its scope."""
    made = Keys(app.extensions["advisor-database"], "")
    return {
        scope: {"Authorization": f"Bearer {made.create(scope, scope)}"}
        for scope in ("read", "write", "admin")
    }


def changes(client: FlaskClient, headers: dict[str, str], **query: Any) -> list[dict[str, Any]]:
    answer = client.get(CHANGES, query_string=query, headers=headers)
    assert answer.status_code == 200, answer.text
    return list(answer.get_json()["items"])


def test_every_change_is_kept_with_who_when_and_what(client: FlaskClient, keys):
    client.post(HARDWARE, json=bodies.HARDWARE, headers=keys["write"])
    other = bodies.HARDWARE | {"notes": "changed"}
    client.put(DEVICE, json=other, headers=keys["admin"] | {"If-Match": '"1"'})
    read = client.get(DEVICE, headers=keys["read"]).get_json()
    assert client.delete(DEVICE, headers=keys["write"] | {"If-Match": '"2"'}).status_code == 204
    client.post(HARDWARE, json=bodies.HARDWARE, headers=keys["write"])
    found = changes(client, keys["admin"])
    assert [(c["change"], c["version"], c["client"]) for c in found] == [
        ("created", 4, "write"),
        ("deleted", 3, "write"),
        ("replaced", 2, "admin"),
        ("created", 1, "write"),
    ]
    assert {(c["kind"], c["name"], c["origin"]) for c in found} == {("hardware", "my-h100", "user")}
    assert found[2]["changed_at"] == read["updated_at"]
    assert found[2]["document"]["notes"] == "changed"
    assert found[1]["document"] is None


def test_what_failed_is_not_in_the_history(client: FlaskClient, keys):
    client.post(HARDWARE, json=bodies.HARDWARE, headers=keys["write"])
    client.post(HARDWARE, json=bodies.HARDWARE, headers=keys["write"])
    client.delete(DEVICE, headers=keys["write"] | {"If-Match": '"9"'})
    client.post("/v1/model-profiles", json=bodies.MODEL, headers=keys["write"])
    taken = bodies.MODEL | {"name": "other", "aliases": [bodies.MODEL["name"]]}
    problem(client.post("/v1/model-profiles", json=taken, headers=keys["write"]), 409)
    assert [c["kind"] for c in changes(client, keys["admin"])] == ["model", "hardware"]
    assert [c["kind"] for c in changes(client, keys["admin"], kind="model")] == ["model"]
    assert changes(client, keys["admin"], kind="model", name="my-h100") == []
    only_error(client.get(f"{CHANGES}?kind=x", headers=keys["admin"]), "/kind")


def test_only_an_admin_reads_the_history(client: FlaskClient, keys):
    problem(client.get(CHANGES), 401)
    for scope in ("read", "write"):
        problem(client.get(CHANGES, headers=keys[scope]), 403)
    assert client.get(CHANGES, headers=keys["admin"]).status_code == 200


def test_the_history_has_each_version_once_whoever_came_at_the_same_time(app: Flask, keys):
    app.test_client().post(HARDWARE, json=bodies.HARDWARE, headers=keys["write"])
    headers = keys["write"] | {"If-Match": '"1"'}

    def put(index: int) -> None:
        body = bodies.HARDWARE | {"notes": str(index)}
        answer = app.test_client().put(DEVICE, json=body, headers=headers)
        assert answer.status_code in (200, 412)

    assert outcomes_at_once(50, put) == {"done": 50}
    client = app.test_client()
    found = changes(client, keys["admin"], name="my-h100")
    assert [c["version"] for c in found] == [2, 1]
    now = client.get(DEVICE, headers=keys["read"]).get_json()
    assert found[0]["document"]["notes"] == now["notes"]


def test_loading_the_catalogue_is_in_the_history(shared_client: FlaskClient):
    (change,) = changes(shared_client, {}, name="h100-sxm-80gb")
    assert (change["change"], change["origin"], change["client"]) == ("created", "catalog", None)
