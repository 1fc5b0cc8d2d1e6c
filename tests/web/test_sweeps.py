from __future__ import annotations

import csv
import io
import json
import re
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import text

from advisor.schemas.sweeps import loaded_sweep
from advisor.service import sweep_work, sweeps
from advisor.service.clock import now
from advisor.service.database import Database
from advisor.service.sweep_work import LEASE_S, LOST, MOST_ATTEMPTS, Worker
from advisor.store import sweeps as store
from advisor.sweeps import formats
from advisor.sweeps.answers import answer
from advisor.sweeps.sizing import FIRST_ITEMS
from tests.web import bodies
from tests.web.fixtures import running_app
from tests.web.problems import only_error, problem

MODEL, DEVICE = bodies.MODEL["name"], bodies.HARDWARE["name"]
WORKLOAD = {"request_rate_per_s": [1, 2, 4, 400], "input_tokens": [500, 2000], "output_tokens": 100}
GRID: dict[str, Any] = {
    "models": [MODEL],
    "hardware": [DEVICE, bodies.HARDWARE | {"name": "inline", "memory_gib": 150}],
    "workloads": [WORKLOAD],
    "slos": [{"tpot_p95_ms": 50.5}],
    "objectives": ["cost", "latency"],
    "limits": {"max_accelerators": 8},
}
QUESTIONS = 4 * 2 * 2 * 2
ASK: dict[str, Any] = {
    "model": MODEL,
    "hardware": [DEVICE],
    "workload": {"concurrency": 4, "input_tokens": 500, "output_tokens": 100},
}


@pytest.fixture
def app(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Flask]:
    """Sweeps stay as they are until a test answers them."""
    monkeypatch.setattr("advisor.service.sweep_runner.SweepRunner.tell", lambda _: None)
    for app in running_app(database_url):
        client = app.test_client()
        assert client.post("/v1/model-profiles", json=bodies.MODEL).status_code == 201
        assert client.post("/v1/hardware-profiles", json=bodies.HARDWARE).status_code == 201
        yield app


@pytest.fixture
def database(app: Flask) -> Database:
    return app.extensions["advisor-database"]


def taken(client: FlaskClient, **grid: Any) -> dict[str, Any]:
    answer = client.post("/v1/sweeps", json={"grid": GRID | grid})
    assert answer.status_code == 202, answer.text
    assert answer.headers["Location"] == f"/v1/sweeps/{answer.get_json()['id']}"
    return dict(answer.get_json())


def answer_all(database: Database, sweep_id: str) -> None:
    worker = Worker(database, loaded_sweep)
    while worker.advance(sweep_id):
        pass


def read(client: FlaskClient, sweep_id: str) -> dict[str, Any]:
    return dict(client.get(f"/v1/sweeps/{sweep_id}").get_json())


def rows(client: FlaskClient, sweep_id: str) -> list[dict[str, Any]]:
    text = client.get(f"/v1/sweeps/{sweep_id}/results").text
    return [json.loads(line) for line in text.splitlines()]


def test_every_row_has_the_figures_of_the_plan_of_its_question(
    client: FlaskClient, database: Database
):
    sweep = taken(client)
    assert (sweep["state"], sweep["total"], sweep["done"]) == ("queued", QUESTIONS, 0)
    answer_all(database, sweep["id"])
    found = rows(client, sweep["id"])
    assert [row["item"] for row in found] == list(range(QUESTIONS))
    assert {row["status"] for row in found} == {"planned", "no_plan"}
    for row in found:
        ask = {
            "model": MODEL,
            "hardware": [next(h for h in GRID["hardware"] if row["hardware"] in (h, _name(h)))],
            "workload": {
                "request_rate_per_s": row["request_rate_per_s"],
                "input_tokens": row["input_tokens"],
                "output_tokens": 100,
            },
            "slo": {"tpot_p95_ms": 50.5},
            "objective": row["objective"],
            "limits": {"max_accelerators": 8},
        }
        plan = client.post("/v1/plans", json=ask).get_json()
        best = plan["recommended"]
        if best is None:
            assert (row["status"], row["detail"]) == ("no_plan", plan["reason"])
            continue
        assert row["recommended_hardware"] == best["hardware"]
        assert row["replicas"] == best["replicas"]
        assert row["tensor_parallel"] == best["tensor_parallel"]
        assert row["cost_per_hour"] == best["cost"]["per_hour"]
        assert row["ttft_p95_ms"] == best["latency"]["ttft_ms"]["p95"]
        assert row["e2e_p95_ms"] == best["latency"]["e2e_ms"]["p95"]
        assert row["utilization"] == best["load"]["utilization"]
        assert row["slo_met_probability"] == best["slo"]["met_probability"]


def _name(entry: Any) -> str:
    return entry if isinstance(entry, str) else str(entry["name"])


def test_a_list_of_plan_requests_is_a_sweep_too(client: FlaskClient, database: Database):
    both = [ASK, ASK | {"workload": ASK["workload"] | {"input_tokens": 9_000_000}}]
    sweep = client.post("/v1/sweeps", json={"requests": both}).get_json()
    answer_all(database, sweep["id"])
    good, bad = rows(client, sweep["id"])
    assert (good["status"], good["concurrency"]) == ("planned", 4)
    assert (bad["status"], bad["pointer"]) == ("refused", "/workload")
    found = read(client, sweep["id"])
    assert (found["state"], found["done"], found["refused"]) == ("done", 2, 1)
    assert found["finished_at"] is not None
    assert found["estimated_end"] is None


def test_the_same_sweep_is_one_job_until_something_it_stands_on_changes(
    client: FlaskClient, database: Database
):
    first = taken(client)
    assert taken(client)["id"] == first["id"]
    assert taken(client, objectives=["cost"])["id"] != first["id"]
    changed = bodies.HARDWARE | {"memory_bandwidth_gb_s": 3000}
    client.put(f"/v1/hardware-profiles/{DEVICE}", json=changed, headers={"If-Match": '"1"'})
    # The profiles of a sweep are those of the moment it was taken.
    answer_all(database, first["id"])
    again = client.post(f"/v1/sweeps/{first['id']}/re-evaluation").get_json()
    assert again["id"] != first["id"]
    assert again["re_evaluation_of"] == first["id"]
    answer_all(database, again["id"])
    same, slower = rows(client, first["id"])[0], rows(client, again["id"])[0]
    assert slower["tpot_p95_ms"] > same["tpot_p95_ms"]
    assert client.post(f"/v1/sweeps/{again['id']}/re-evaluation").get_json()["id"] == again["id"]


def test_what_a_re_evaluation_changes_is_listed_by_question(
    client: FlaskClient, database: Database
):
    first = taken(client)["id"]
    answer_all(database, first)
    device = bodies.HARDWARE | {"price": bodies.HARDWARE["price"] | {"amount_per_hour": "1.25"}}
    client.put(f"/v1/hardware-profiles/{DEVICE}", json=device, headers={"If-Match": '"1"'})
    again = client.post(f"/v1/sweeps/{first}/re-evaluation").get_json()["id"]
    path = f"/v1/sweeps/{again}/differences"
    page = client.get(path).get_json()
    assert (page["items"], page["next_cursor"] is None) == ([], False)
    answer_all(database, again)
    then, now_made = rows(client, first), rows(client, again)
    expected = {
        before["item"]: {name for name in before if before[name] != after[name]}
        for before, after in zip(then, now_made, strict=True)
        if before != after
    }
    assert {row["hardware"] for row in then if row["item"] in expected} == {DEVICE}
    seen: dict[int, set[str]] = {}
    query: dict[str, Any] = {"limit": 3}
    while query.get("cursor", "") is not None:
        page = client.get(path, query_string=query).get_json()
        assert len(page["items"]) <= 3
        for each in page["items"]:
            seen[each["item"]] = {change["pointer"][1:] for change in each["differences"]}
            for change in each["differences"]:
                assert change["then"] == then[each["item"]][change["pointer"][1:]]
                assert change["now"] == now_made[each["item"]][change["pointer"][1:]]
        query["cursor"] = page["next_cursor"]
    assert seen == expected
    assert seen
    other = taken(client, objectives=["cost"])["id"]
    for against in ("nothing", other, "\U0001f642"):
        only_error(client.get(path, query_string={"against": against}), "/against")
    only_error(client.get(f"/v1/sweeps/{first}/differences"), "/against")
    same = client.get(f"/v1/sweeps/{first}/differences?against={first}").get_json()
    assert same == {"items": [], "next_cursor": None}


def test_rows_are_read_in_pages_while_the_sweep_goes_on(client: FlaskClient, database: Database):
    sweep_id = taken(client)["id"]
    worker, seen = Worker(database, loaded_sweep), list[int]()
    query: dict[str, Any] = {"limit": 3}
    while query.get("cursor", "") is not None:
        page = client.get(f"/v1/sweeps/{sweep_id}/rows", query_string=query).get_json()
        seen += [row["item"] for row in page["items"]]
        query["cursor"] = page["next_cursor"]
        if not page["items"]:
            worker.advance(sweep_id)
    assert seen == list(range(QUESTIONS))


def test_a_page_ends_where_an_earlier_chunk_is_not_answered_yet(
    client: FlaskClient, database: Database
):
    sweep_id = taken(client)["id"]
    with database.writing() as session:
        sweep_work._taken(session, sweep_id)
    Worker(database, loaded_sweep).advance(sweep_id)
    page = client.get(f"/v1/sweeps/{sweep_id}/rows").get_json()
    assert page["items"] == []
    assert page["next_cursor"]
    assert [row["item"] for row in rows(client, sweep_id)] == list(
        range(FIRST_ITEMS, 2 * FIRST_ITEMS)
    )


@pytest.mark.parametrize("cursor", ["x", "eyJmcm9tIjogMX0=", "A" * 3000])
def test_a_forged_cursor_is_refused(client: FlaskClient, cursor: str):
    sweep_id = taken(client)["id"]
    problem(client.get(f"/v1/sweeps/{sweep_id}/rows?cursor={cursor}"), 400)


def test_several_workers_answer_every_question_once(client: FlaskClient, database: Database):
    sweep_id = taken(client)["id"]
    threads = [threading.Thread(target=answer_all, args=(database, sweep_id)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [row["item"] for row in rows(client, sweep_id)] == list(range(QUESTIONS))
    assert read(client, sweep_id)["state"] == "done"


def test_what_an_ended_worker_had_taken_is_given_out_again_and_applied_once(
    client: FlaskClient, database: Database, monkeypatch: pytest.MonkeyPatch
):
    sweep_id = taken(client)["id"]
    with database.writing() as session:
        _, late = sweep_work._taken(session, sweep_id)
    answer_all(database, sweep_id)
    assert read(client, sweep_id)["done"] == QUESTIONS - FIRST_ITEMS
    monkeypatch.setattr(sweep_work, "now", lambda: now() + timedelta(seconds=LEASE_S + 1))
    answer_all(database, sweep_id)
    assert read(client, sweep_id)["state"] == "done"
    # It was not dead, just slow: what it has is not wanted any more.
    assert late is not None
    with database.writing() as session:
        assert not store.apply(session, late, [{"item": 0}], 0, 1000, now())
    assert [row["item"] for row in rows(client, sweep_id)] == list(range(QUESTIONS))


def test_a_chunk_of_slow_questions_stays_with_who_has_taken_it(
    client: FlaskClient, database: Database, monkeypatch: pytest.MonkeyPatch
):
    sweep_id = taken(client)["id"]
    other, moment, plainly = Worker(database, loaded_sweep), now(), answer

    def slowly(item: int, *rest: Any) -> Any:
        nonlocal moment
        moment += timedelta(seconds=LEASE_S / 2)
        if item == FIRST_ITEMS - 1:
            assert other.advance(sweep_id)
        return plainly(item, *rest)

    monkeypatch.setattr(sweep_work, "answer", slowly)
    monkeypatch.setattr(sweep_work, "now", lambda: moment)
    answer_all(database, sweep_id)
    with database.reading() as session:
        attempts = session.execute(text("SELECT DISTINCT attempts FROM sweep_chunks")).scalars()
        assert list(attempts) == [1]
    assert [row["item"] for row in rows(client, sweep_id)] == list(range(QUESTIONS))


def test_metrics_have_the_queue_s_length_and_age(client: FlaskClient, database: Database):
    def queue() -> tuple[float, float]:
        found = re.findall(
            r"^advisor_sweep_queue_(?:items|age_seconds) (\S+)$",
            client.get("/metrics").text, re.MULTILINE,
        )  # fmt: skip
        items, age_s = map(float, found)
        return items, age_s

    assert queue() == (0, 0)
    first = taken(client)["id"]
    Worker(database, loaded_sweep).advance(first)
    assert queue() == (QUESTIONS - FIRST_ITEMS, 0)
    second = taken(client, objectives=["cost"])["id"]
    items, age_s = queue()
    assert items == QUESTIONS - FIRST_ITEMS + QUESTIONS / 2
    assert 0 < age_s < 60
    client.post(f"/v1/sweeps/{second}/cancellation")
    answer_all(database, first)
    assert queue() == (0, 0)


def test_metrics_are_there_while_the_database_is_away(tmp_path: Path):
    for app in running_app(f"sqlite:///{tmp_path}/none/at/all.sqlite3"):
        answer = app.test_client().get("/metrics")
        assert answer.status_code == 200
        assert "advisor_requests_total" in answer.text
        assert "advisor_sweep_queue" not in answer.text


def test_questions_that_end_every_worker_are_given_up(
    client: FlaskClient, database: Database, monkeypatch: pytest.MonkeyPatch
):
    sweep_id = taken(client, objectives=["cost"])["id"]
    for attempt in range(MOST_ATTEMPTS):
        moment = now() + timedelta(seconds=attempt * (LEASE_S + 1))
        monkeypatch.setattr(sweep_work, "now", lambda moment=moment: moment)
        with database.writing() as session:
            sweep_work._taken(session, sweep_id)
    moment = now() + timedelta(seconds=MOST_ATTEMPTS * (LEASE_S + 1))
    monkeypatch.setattr(sweep_work, "now", lambda: moment)
    answer_all(database, sweep_id)
    found = rows(client, sweep_id)
    assert [row["detail"] for row in found if row["status"] == "refused"] == [LOST] * FIRST_ITEMS
    assert read(client, sweep_id)["state"] == "done"


def test_a_cancelled_sweep_keeps_its_rows_and_can_be_asked_again(
    client: FlaskClient, database: Database
):
    sweep_id = taken(client)["id"]
    worker = Worker(database, loaded_sweep)
    assert worker.advance(sweep_id)
    cancelled = client.post(f"/v1/sweeps/{sweep_id}/cancellation").get_json()
    assert (cancelled["state"], cancelled["done"]) == ("cancelled", FIRST_ITEMS)
    assert not worker.advance(sweep_id)
    assert len(rows(client, sweep_id)) == FIRST_ITEMS
    page = client.get(f"/v1/sweeps/{sweep_id}/rows?limit=200").get_json()
    assert (len(page["items"]), page["next_cursor"]) == (FIRST_ITEMS, None)
    assert taken(client)["id"] != sweep_id


def test_csv_has_a_line_for_each_row(client: FlaskClient, database: Database):
    sweep_id = taken(client)["id"]
    answer_all(database, sweep_id)
    answer = client.get(f"/v1/sweeps/{sweep_id}/results?format=csv")
    assert answer.mimetype == "text/csv"
    read_back = list(csv.DictReader(io.StringIO(answer.text, newline="")))
    assert [row["cost_per_hour"] for row in read_back] == [
        row["cost_per_hour"] or "" for row in rows(client, sweep_id)
    ]


def test_parquet_has_the_rows_with_their_types(client: FlaskClient, database: Database):
    sweep_id = taken(client)["id"]
    answer_all(database, sweep_id)
    answer = client.get(f"/v1/sweeps/{sweep_id}/results?format=parquet")
    assert answer.mimetype == "application/vnd.apache.parquet"
    assert answer.headers["Content-Disposition"].endswith(f'"sweep-{sweep_id}.parquet"')
    table = pyarrow.parquet.read_table(io.BytesIO(answer.data))
    assert table.to_pylist() == rows(client, sweep_id)


def test_parquet_without_pyarrow_is_not_implemented_and_the_extra_is_named(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(formats, "find_spec", lambda _: None)
    sweep_id = taken(client)["id"]
    answer = client.get(f"/v1/sweeps/{sweep_id}/results?format=parquet")
    assert "inference-advisor[parquet]" in problem(answer, 501)["detail"]
    problem(client.get("/v1/sweeps/nothing/results?format=parquet"), 404)


def test_sweeps_are_listed_newest_first(client: FlaskClient):
    first, second = taken(client), taken(client, objectives=["cost"])
    page = client.get("/v1/sweeps?limit=1").get_json()
    assert [each["id"] for each in page["items"]] == [second["id"]]
    page = client.get(f"/v1/sweeps?cursor={page['next_cursor']}").get_json()
    assert [each["id"] for each in page["items"]] == [first["id"]]


def test_there_is_no_sweep_of_another_id(client: FlaskClient):
    for path in ("", "/rows", "/results"):
        problem(client.get(f"/v1/sweeps/nothing{path}"), 404)
    for path in ("/cancellation", "/re-evaluation"):
        problem(client.post(f"/v1/sweeps/nothing{path}"), 404)


RATE = "/grid/workloads/0/request_rate_per_s"
FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "unknown model": ({"models": ["no-such"]}, "/grid/models/0"),
    "unknown device": ({"hardware": [DEVICE, "h100-sxm-81gb"]}, "/grid/hardware/1"),
    "no models": ({"models": []}, "/grid/models"),
    "a device twice": ({"hardware": [DEVICE, DEVICE]}, "/grid/hardware/1"),
    "from 0 by factors": ({"from": 0, "to": 8, "steps": 3, "scale": "log"}, f"{RATE}/from"),
    "too many steps": ({"from": 1, "to": 8, "steps": 10**9}, f"{RATE}/steps"),
    "below 0": ({"from": -1, "to": 8, "steps": 3}, f"{RATE}/from"),
    "one step of two": ({"from": 1, "to": 8, "steps": 1}, f"{RATE}/steps"),
    "no end": ({"from": 1, "steps": 3}, f"{RATE}/to"),
    "a figure out of bounds": ({"from": 1, "to": 1e8, "steps": 3}, RATE),
    "another field": ({"from": 1, "to": 8, "steps": 3, "by": 1}, f"{RATE}/by"),
    "an SLO that is none": ({"slos": [{"ttft_p95": 1}]}, "/grid/slos/0/ttft_p95"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_wrong_is_named_and_nothing_is_taken(client: FlaskClient, name: str):
    changes, pointer = FAULTS[name]
    if "steps" in changes:
        changes = {"workloads": [WORKLOAD | {"request_rate_per_s": changes}]}
    answer = client.post("/v1/sweeps", json={"grid": GRID | changes})
    only_error(answer, pointer)
    assert client.get("/v1/sweeps").get_json()["items"] == []


def test_a_sweep_is_a_grid_or_a_list_and_not_too_large(client: FlaskClient):
    for body in ({}, {"grid": GRID, "requests": [{}]}):
        problem(client.post("/v1/sweeps", json=body), 422)
    swept = {name: {"from": 1, "to": 50, "steps": 50} for name in ("input_tokens", "concurrency")}
    large = {"workloads": [swept | {"output_tokens": 5}]}
    answer = client.post("/v1/sweeps", json={"grid": GRID | large})
    assert only_error(answer, "/grid/workloads/0")["given"] == 2500
    many, names = list(range(1, 11)), ("tensor", "pipeline", "expert", "attention_data")
    limits = {f"{name}_parallel": many for name in names} | {"replicas": list(range(1, 257))}
    answer = client.post("/v1/sweeps", json={"grid": GRID | {"limits": limits}})
    assert "layouts" in only_error(answer, "/grid/limits")["given"]


def test_more_questions_than_the_service_takes_are_refused(database_url: str):
    for app in running_app(database_url, sweep_items=QUESTIONS - 1):
        client = app.test_client()
        error = only_error(client.post("/v1/sweeps", json={"requests": [ASK] * QUESTIONS}), "")
        assert (error["given"], error["allowed"]) == (QUESTIONS, {"maximum": QUESTIONS - 1})
        assert sweeps.open_sweeps(app.extensions["advisor-database"]) == []
