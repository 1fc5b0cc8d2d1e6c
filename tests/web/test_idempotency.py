from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import func, select, update
from werkzeug.test import TestResponse

from advisor.service.clock import now
from advisor.service.database import Database
from advisor.service.keys import Keys
from advisor.store.tables import HardwareProfileRow, KeptAnswerRow, PlanRow, TerminologyCheckRow
from tests.store.samples import outcomes_at_once
from tests.web import bodies
from tests.web.fixtures import running_app
from tests.web.problems import problem

HARDWARE = "/v1/hardware-profiles"
CHECKS = "/v1/terminology/checks"
PLANS = "/v1/plans"
PLAN = {
    "model": bodies.MODEL,
    "hardware": [bodies.HARDWARE],
    "workload": {"request_rate_per_s": 2, "input_tokens": 100, "output_tokens": 50},
}
BODIES: dict[str, Any] = {
    PLANS: PLAN,
    HARDWARE: bodies.HARDWARE,
    "/v1/model-profiles": bodies.MODEL,
    CHECKS: {"text": "Decode is memory-bound."},
    "/v1/economics/break-even": bodies.POSTS["/v1/economics/break-even"],
}


@pytest.fixture
def app(database_url: str) -> Iterator[Flask]:
    yield from running_app(database_url, authentication="off")


def database(app: Flask) -> Database:
    found = app.extensions["advisor-database"]
    assert isinstance(found, Database)
    return found


def count(app: Flask, row: type[Any]) -> int:
    with database(app).reading() as session:
        return int(session.scalar(select(func.count()).select_from(row)))


def post(app: Flask, path: str, key: str, body: Any = None, **headers: str) -> TestResponse:
    body = BODIES[path] if body is None else body
    return app.test_client().post(path, json=body, headers={"Idempotency-Key": key} | headers)


@pytest.mark.parametrize("path", BODIES)
def test_the_same_request_under_the_same_key_is_answered_alike(app: Flask, path: str):
    first, again = post(app, path, "one"), post(app, path, "one")
    assert first.status_code in (200, 201), first.text
    assert (again.status_code, again.data) == (first.status_code, first.data)
    for name in ("Location", "ETag", "Content-Type"):
        assert again.headers.get(name) == first.headers.get(name)
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"
    assert sum(count(app, row) for row in (PlanRow, TerminologyCheckRow, HardwareProfileRow)) <= 1


def test_every_post_takes_a_key(app: Flask):
    for path in bodies.POSTS:
        parameters = app.test_client().get("/openapi.json").get_json()["paths"][path]["post"]
        assert "Idempotency-Key" in {p["name"] for p in parameters["parameters"]}


@pytest.mark.parametrize("path", [CHECKS, HARDWARE, "/v1/economics/break-even"])
def test_another_request_under_the_same_key_is_422(app: Flask, path: str):
    post(app, path, "one")
    other = copy.deepcopy(BODIES[path])
    other |= {"text": "other"} if path == CHECKS else {"notes": "x"} if path == HARDWARE else {}
    other |= {"training_cost": 7} if "economics" in path else {}
    assert "Idempotency-Key" in problem(post(app, path, "one", other), 422)["detail"]
    problem(post(app, PLANS, "one"), 422)
    assert count(app, PlanRow) == 0


def test_another_key_is_another_request(app: Flask):
    assert post(app, CHECKS, "one").get_json()["id"] != post(app, CHECKS, "two").get_json()["id"]
    assert post(app, HARDWARE, "one-more").status_code == 201
    problem(post(app, HARDWARE, "two-more"), 409)


@pytest.mark.parametrize("path", [PLANS, CHECKS, HARDWARE])
def test_fifty_at_once_make_one_row_and_one_answer(app: Flask, path: str):
    row = {PLANS: PlanRow, CHECKS: TerminologyCheckRow, HARDWARE: HardwareProfileRow}[path]
    answers = []
    outcome = outcomes_at_once(50, lambda _: answers.append(post(app, path, "one")))
    assert outcome == {"done": 50}
    assert Counter(answer.status_code for answer in answers) == {201: 50}
    assert len({answer.data for answer in answers}) == 1
    assert count(app, row) == 1
    assert sum("Idempotency-Replayed" in answer.headers for answer in answers) == 49


def test_an_error_is_not_kept_and_changes_nothing(app: Flask):
    bad = {"text": "x", "plan_id": "nothing"}
    problem(post(app, CHECKS, "one", bad), 422)
    assert count(app, KeptAnswerRow) == 0
    assert post(app, CHECKS, "one").status_code == 201


def test_a_failure_after_the_work_undoes_it(app: Flask, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise RuntimeError("killed here")

    monkeypatch.setattr("advisor.service.idempotency.idempotency.keep", fail)
    problem(post(app, CHECKS, "one"), 500)
    assert count(app, TerminologyCheckRow) == count(app, KeptAnswerRow) == 0
    monkeypatch.undo()
    assert post(app, CHECKS, "one").status_code == 201


def test_a_kept_answer_expires_and_is_removed(app: Flask):
    first = post(app, CHECKS, "one")
    post(app, CHECKS, "two")
    with database(app).writing() as session:
        session.execute(update(KeptAnswerRow).values(created_at=now() - timedelta(hours=24)))
    other = {"text": "Another text."}
    again = post(app, CHECKS, "one", other)
    assert again.status_code == 201
    assert again.get_json()["id"] != first.get_json()["id"]
    assert count(app, KeptAnswerRow) == 1


@pytest.mark.parametrize("key", ["", " ", "a b", "ä", "x" * 256, "\t"])
def test_a_malformed_key_is_400(app: Flask, key: str):
    problem(post(app, CHECKS, key), 400)
    assert count(app, TerminologyCheckRow) == 0


def test_keys_of_one_client_are_not_those_of_another(sqlite_url: str):
    for app in running_app(sqlite_url, authentication="required"):
        keys = Keys(database(app), "")
        one, two = (f"Bearer {keys.create(name, 'write')}" for name in ("one", "two"))
        first = post(app, CHECKS, "k", Authorization=one)
        assert post(app, CHECKS, "k", Authorization=one).data == first.data
        other = post(app, CHECKS, "k", {"text": "Mine."}, Authorization=two)
        assert other.status_code == 201
        assert count(app, TerminologyCheckRow) == 2


def test_without_a_database_a_request_with_a_key_is_503(tmp_path):
    for app in running_app(f"sqlite:///{tmp_path}/nowhere/advisor.sqlite3"):
        problem(post(app, "/v1/economics/break-even", "one"), 503)
