from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import timedelta

import pytest
from flask import Flask

from advisor.service.keys import PREFIX, Keys
from advisor.web.spec import spec_document
from tests.web import bodies
from tests.web.fixtures import running_app
from tests.web.problems import problem

CHECK = {"text": "Decode is memory-bound."}
PEPPER = "a secret"


@pytest.fixture
def guarded(database_url: str) -> Iterator[Flask]:
    """The application with authentication on, without any key yet."""
    yield from running_app(database_url, authentication="required", api_key_pepper=PEPPER)


@pytest.fixture
def keys(guarded: Flask) -> Keys:
    return Keys(guarded.extensions["advisor-database"], PEPPER)


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


OPEN = ["/healthz", "/readyz", "/metrics", "/docs", "/openapi.json"]


@pytest.mark.parametrize("path", OPEN)
def test_what_probes_and_readers_of_the_docs_need_is_open(guarded: Flask, path: str):
    assert guarded.test_client().get(path).status_code == 200


def test_without_a_key_every_operation_that_names_a_scope_is_401(guarded: Flask):
    client = guarded.test_client()
    document = spec_document(guarded)
    guarded_operations = 0
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method == "parameters":
                continue
            assert (operation["security"] == []) == (path in OPEN)
            if operation["security"]:
                guarded_operations += 1
                answer = client.open(path.replace("{", "").replace("}", ""), method=method)
                problem(answer, 401)
                assert answer.headers["WWW-Authenticate"] == 'Bearer realm="inference-advisor"'
    assert guarded_operations > 20


@pytest.mark.parametrize(
    "value",
    [
        "Bearer",
        "Bearer ",
        "Bearer x",
        "Bearer " + PREFIX + "A" * 43,
        "Bearer " + "A" * 5000,
        "Bearer \x00\xff",
        "Basic dTpw",
        "nonsense",
        "Bearer a=b, c=d",
    ],
)
def test_a_key_that_does_not_work_is_401(guarded: Flask, value: str):
    answer = guarded.test_client().get("/v1/plans", headers={"Authorization": value})
    problem(answer, 401)
    assert answer.headers["WWW-Authenticate"].startswith("Bearer ")


def test_a_key_reaches_as_far_as_its_scope_and_no_further(guarded: Flask, keys: Keys):
    client = guarded.test_client()
    read, write = keys.create("reader", "read"), keys.create("writer", "write")
    assert client.get("/v1/plans", headers=bearer(read)).status_code == 200
    price = bodies.POSTS["/v1/economics/break-even"]
    answer = client.post("/v1/economics/break-even", json=price, headers=bearer(read))
    assert answer.status_code == 200
    refused = client.post("/v1/terminology/checks", json=CHECK, headers=bearer(read))
    assert "'write'" in problem(refused, 403)["detail"]
    assert 'error="insufficient_scope", scope="write"' in refused.headers["WWW-Authenticate"]
    for path, method in (("/v1/hardware-profiles/x", "PUT"), ("/v1/model-profiles/x", "DELETE")):
        problem(client.open(path, method=method, headers=bearer(read)), 403)
    created = client.post("/v1/terminology/checks", json=CHECK, headers=bearer(write))
    assert created.status_code == 201
    assert client.get("/v1/plans", headers=bearer(write)).status_code == 200


def test_a_revoked_key_stops_at_once_and_a_rotated_one_after_the_overlap(
    guarded: Flask, keys: Keys
):
    client = guarded.test_client()

    def status(key: str) -> int:
        return client.get("/v1/plans", headers=bearer(key)).status_code

    first = keys.create("ci", "read")
    second = keys.rotate("ci", timedelta(hours=1))
    assert (status(first), status(second)) == (200, 200)
    third = keys.rotate("ci", timedelta(0))
    assert (status(first), status(second), status(third)) == (401, 401, 200)
    assert keys.revoke("ci") == 1
    assert status(third) == 401
    assert {key.scope for key in keys.listed()} == {"read"}
    assert len(keys.listed()) == 3


def test_a_key_ends_when_its_time_is_over(guarded: Flask, keys: Keys):
    key = keys.create("short", "read", timedelta(seconds=-1))
    problem(guarded.test_client().get("/v1/plans", headers=bearer(key)), 401)


def test_keys_of_another_pepper_do_not_work(guarded: Flask):
    other = Keys(guarded.extensions["advisor-database"], "another secret")
    key = other.create("someone", "admin")
    problem(guarded.test_client().get("/v1/plans", headers=bearer(key)), 401)


def test_a_key_is_neither_stored_nor_logged(sqlite_url: str, capsys: pytest.CaptureFixture[str]):
    for app in running_app(sqlite_url, authentication="required"):
        key = Keys(app.extensions["advisor-database"], "").create("ci", "read")
        client = app.test_client()
        assert client.get("/v1/plans", headers=bearer(key)).status_code == 200
        client.get("/v1/plans?cursor=1", headers=bearer(key))
        client.post("/v1/plans", headers=bearer(key))
        client.get("/v1/plans", headers=bearer(key[:-1] + "~"))
    output = capsys.readouterr().out
    assert '"client": "ci"' in output
    assert key[:-1] not in output
    with sqlite3.connect(sqlite_url.removeprefix("sqlite:///")) as connection:
        dump = "\n".join(connection.iterdump())
    assert "'ci'" in dump
    assert key not in dump
    assert key.removeprefix(PREFIX) not in dump


def test_where_no_keys_are_required_any_authorization_is_passed_over(sqlite_url: str):
    for app in running_app(sqlite_url):
        assert app.test_client().get("/v1/plans", headers=bearer("x")).status_code == 200


def test_a_preflight_request_needs_no_key(guarded: Flask):
    assert guarded.test_client().options("/v1/plans").status_code == 200


def test_keys_cannot_be_checked_while_the_database_is_down(tmp_path):
    url = f"sqlite:///{tmp_path}/nowhere/advisor.sqlite3"
    for app in running_app(url, authentication="required"):
        client = app.test_client()
        key = PREFIX + "A" * 43
        assert problem(client.get("/v1/prices/apis", headers=bearer(key)), 503)
        # What needs no key does not look at it, or a probe that sends one would end the process.
        for path in ("/healthz", "/metrics", "/docs", "/openapi.json"):
            assert client.get(path, headers=bearer(key)).status_code == 200
        problem(client.get("/nothing", headers=bearer(key)), 404)


def test_a_view_that_says_nothing_of_keys_needs_the_widest(guarded: Flask, keys: Keys):
    guarded.add_url_rule("/forgotten", view_func=lambda: "")
    write, admin = (keys.create(scope, scope) for scope in ("write", "admin"))
    client = guarded.test_client()
    problem(client.get("/forgotten"), 401)
    problem(client.get("/forgotten", headers=bearer(write)), 403)
    assert client.get("/forgotten", headers=bearer(admin)).status_code == 200


def test_a_key_in_an_address_is_not_logged(sqlite_url: str, capsys: pytest.CaptureFixture[str]):
    key = PREFIX + "k" * 43
    for app in running_app(sqlite_url):
        problem(app.test_client().get(f"/v1/plans/{key}"), 404)
    output = capsys.readouterr().out
    assert f"/v1/plans/{PREFIX}..." in output
    assert key not in output
