from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from advisor.catalog.loader import hardware_documents, model_documents
from tests.web import bodies
from tests.web.fixtures import running_app
from tests.web.problems import only_error, problem

HARDWARE, MODELS = "hardware-profiles", "model-profiles"
KINDS = {HARDWARE: bodies.HARDWARE, MODELS: bodies.MODEL}
JSON_LINES, CSV = "application/jsonl", "text/csv"


@pytest.fixture
def app(database_url: str) -> Iterator[Flask]:
    yield from running_app(database_url)


def send(
    client: FlaskClient, kind: str, text: str | bytes, media_type: str = JSON_LINES, **query: str
) -> TestResponse:
    return client.post(
        f"/v1/imports/{kind}", data=text, content_type=media_type, query_string=query
    )  # fmt: skip


def lines(*documents: Any) -> str:
    return "".join(json.dumps(each, default=str) + "\n" for each in documents)


def named(kind: str, *names: str) -> list[dict[str, Any]]:
    return [KINDS[kind] | {"name": name, "aliases": []} if kind == MODELS
            else KINDS[kind] | {"name": name} for name in names]  # fmt: skip


def names_of(client: FlaskClient, kind: str) -> list[str]:
    return [each["name"] for each in client.get(f"/v1/{kind}?limit=200").get_json()["items"]]


def results(answer: TestResponse) -> list[tuple[int, str, int]]:
    assert answer.status_code == 207, answer.text
    found = answer.get_json()
    assert found["stored"] + found["refused"] == len(found["items"])
    return [(each["line"], each["result"], each["status"]) for each in found["items"]]


@pytest.mark.parametrize("kind", KINDS)
def test_each_profile_has_its_own_result(client: FlaskClient, kind: str):
    one, two, bad = named(kind, "one", "two", "Not a slug")
    text = lines(one) + "\n" + lines(bad) + "{\n" + lines(two, one) + "[]\n"
    answer = send(client, kind, text)
    assert results(answer) == [
        (1, "created", 201), (3, "invalid", 422), (4, "malformed", 400),
        (5, "created", 201), (6, "taken", 409), (7, "invalid", 422),
    ]  # fmt: skip
    items = answer.get_json()["items"]
    assert [each["name"] for each in items] == ["one", None, None, "two", None, None]
    assert items[0]["version"] == 1
    assert items[1]["errors"][0]["pointer"] == "/name"
    assert "'one'" in items[4]["errors"][0]["detail"]
    assert names_of(client, kind) == ["one", "two"]


@pytest.mark.parametrize("kind", KINDS)
def test_all_or_nothing_stores_nothing_when_one_is_refused(client: FlaskClient, kind: str):
    one, two = named(kind, "one", "two")
    assert send(client, kind, lines(one), all_or_nothing="true").status_code == 207
    refused = problem(send(client, kind, lines(two, one), all_or_nothing="true"), 422)
    assert [(e["pointer"], e["given"]) for e in refused["errors"]] == [("/1/name", "one")]
    assert "Line 2" in refused["errors"][0]["detail"]
    assert names_of(client, kind) == ["one"]


@pytest.mark.parametrize("kind", KINDS)
def test_existing_profiles_are_replaced_where_that_is_asked(client: FlaskClient, kind: str):
    one, two = named(kind, "one", "two")
    send(client, kind, lines(one))
    other = one | ({"notes": "changed"} if kind == HARDWARE else {"aliases": ["changed"]})
    answer = send(client, kind, lines(two, one, other, other), existing="replace")
    assert results(answer) == [
        (1, "created", 201), (2, "unchanged", 200), (3, "replaced", 200), (4, "unchanged", 200),
    ]  # fmt: skip
    assert [each["version"] for each in answer.get_json()["items"]] == [1, 1, 2, 2]
    assert client.get(f"/v1/{kind}/one").headers["ETag"] == '"2"'
    changes = client.get("/v1/profile-changes").get_json()["items"]
    assert len(changes) == 3


def test_taking_in_what_was_given_out_leaves_the_catalogue_its_own(client: FlaskClient):
    from advisor.service import catalogue

    database = client.application.extensions["advisor-database"]
    catalogue.load(database)
    for kind in KINDS:
        text = client.get(f"/v1/exports/{kind}?format=csv").data
        answer = send(client, kind, text, CSV, existing="replace")
        assert {each[1] for each in results(answer)} == {"unchanged"}


def test_an_alias_of_another_model_is_not_replaced(client: FlaskClient):
    (one,) = named(MODELS, "one")
    send(client, MODELS, lines(one | {"aliases": ["two"]}))
    answer = send(client, MODELS, lines(one | {"name": "two"}), existing="replace")
    assert results(answer) == [(1, "taken", 409)]
    assert names_of(client, MODELS) == ["one"]


@pytest.mark.parametrize(("kind", "documents"), [
    (HARDWARE, hardware_documents()), (MODELS, model_documents()),
])  # fmt: skip
@pytest.mark.parametrize(("form", "media_type"), [("jsonl", JSON_LINES), ("csv", CSV)])
def test_what_is_given_out_can_be_taken_in_again(
    catalogued_url: str, sqlite_url: str, kind: str, documents, form: str, media_type: str
):
    for full in running_app(catalogued_url):
        for empty in running_app(sqlite_url):
            before = full.test_client().get(f"/v1/exports/{kind}?format={form}")
            assert before.content_type.startswith(media_type)
            assert f'filename="{kind}.{form}"' in before.headers["Content-Disposition"]
            answer = send(empty.test_client(), kind, before.data, media_type)
            assert {each[1] for each in results(answer)} == {"created"}
            assert answer.get_json()["stored"] == len(list(documents))
            after = empty.test_client().get(f"/v1/exports/{kind}?format={form}")
            assert content(after) == content(before)
            for name in ("deepseek-v3", "h100-sxm-80gb"):
                one, other = (a.test_client().get(f"/v1/{kind}/{name}") for a in (full, empty))
                left_out = dict.fromkeys(("origin", "created_at", "updated_at", "warnings"))
                assert one.get_json() | left_out == other.get_json() | left_out


def content(answer: TestResponse) -> list[Any]:
    """What stands in a file, whatever the order of its keys."""
    text = answer.get_data(as_text=True)
    if answer.content_type.startswith(JSON_LINES):
        return [json.loads(line) for line in text.splitlines()]
    return [
        {name: value_of(cell) for name, cell in row.items()}
        for row in csv.DictReader(io.StringIO(text))
    ]


def value_of(cell: str) -> Any:
    try:
        return json.loads(cell)
    except ValueError:
        return cell


def test_an_export_is_as_long_as_there_are_profiles(client: FlaskClient):
    names = [f"device-{index:03}" for index in range(450)]
    for part in (names[:250], names[250:]):
        send(client, HARDWARE, lines(*named(HARDWARE, *part)))
    text = client.get(f"/v1/exports/{HARDWARE}").get_data(as_text=True)
    assert [json.loads(line)["name"] for line in text.splitlines()] == names
    rows = list(csv.reader(io.StringIO(
        client.get(f"/v1/exports/{HARDWARE}?format=csv").get_data(as_text=True)
    )))  # fmt: skip
    assert len(rows) == 451
    assert {"name", "dense_tflops.bf16", "price.currency", "interconnect.kind"} <= set(rows[0])


def test_an_empty_store_is_an_empty_export(client: FlaskClient):
    assert client.get(f"/v1/exports/{MODELS}").data == b""
    header = client.get(f"/v1/exports/{MODELS}?format=csv").get_data(as_text=True)
    assert header.splitlines() == ["name,aliases,hf_config,hf_quant_config,architecture"]


def test_a_table_from_a_spreadsheet_is_taken(client: FlaskClient):
    text = (
        "\ufeffname,vendor,memory_gib,memory_bandwidth_gb_s,dense_tflops.bf16,price.amount_per_hour,"
        "price.currency,notes\r\n"
        '123,amd,80,3350,990,2.10,USD,"two\nlines, and a comma"\r\n'
        "x,amd,eighty,3350,990,,,\r\n"
        "y,amd,80,3350,990\r\n"
        "z,amd,80,3350,990,,,,,\r\n"
    )
    answer = send(client, HARDWARE, text.encode(), CSV)
    assert [each[1] for each in results(answer)] == ["created", "invalid", "created", "malformed"]
    assert answer.get_json()["items"][1]["errors"][0]["given"] == "eighty"
    stored = client.get("/v1/hardware-profiles/123").get_json()
    assert stored["price"]["amount_per_hour"] == "2.10"
    assert stored["notes"] == "two\nlines, and a comma"
    assert client.get("/v1/hardware-profiles/y").get_json()["price"] is None


@pytest.mark.parametrize(
    ("text", "media_type", "status"),
    [
        (b"\n", CSV, 400),
        (b"name,name\n", CSV, 400),
        (b'name\n"open', CSV, 400),
        (b'name\n"a"b', CSV, 400),
        (b"name\n\xff", CSV, 400),
        (b"name\n" + b"x" * 200_000, CSV, 400),
        (b"{}", "application/json", 415),
        (b"{}", "", 415),
        (b"{}", "text/csv; charset=utf-16", 415),
        (b"{}\n" * 501, JSON_LINES, 422),
        (b"x" * 1_048_577, JSON_LINES, 413),
    ],
)
def test_a_body_that_is_no_file_of_profiles_is_refused(
    client: FlaskClient, text: bytes, media_type: str, status: int
):
    problem(send(client, HARDWARE, text, media_type), status)


@pytest.mark.parametrize(
    "text",
    [
        b"\xff\xfe", b"\xef\xbb\xbf{}", b"[" * 10_000, b"NaN", b'{"name": "a", "name": "b"}',
        b'{"name": "\\ud800"}', b'{"name": "\\u0000"}', b"null", b"1e999", b'{"name": {"a": []}}',
    ],
)  # fmt: skip
def test_a_hostile_line_is_refused_by_itself(client: FlaskClient, text: bytes):
    good = lines(*named(HARDWARE, "good")).encode()
    answer = send(client, HARDWARE, text + b"\n" + good)
    assert [each[1] in ("malformed", "invalid") for each in results(answer)] == [True, False]


@pytest.mark.parametrize(
    "cells",
    [
        "price\nfree", "price.\n1", "a.b.c\n1", "\nx", "dense_tflops.bf16\n[[[", "name\n\x00",
        "price,price.currency\nx,USD", "price.currency,price\nUSD,x", "dense_tflops.bf16\nNaN",
        "sources\n{", "aliases\nx",
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", KINDS)
def test_odd_cells_are_refused_by_row(client: FlaskClient, kind: str, cells: str):
    answer = send(client, kind, cells, CSV)
    assert answer.status_code in (207, 400)
    if answer.status_code == 207:
        assert {each[1] for each in results(answer)} == {"invalid"}


def test_the_choices_of_an_import_are_checked(client: FlaskClient):
    only_error(send(client, HARDWARE, "", existing="keep"), "/existing")
    only_error(send(client, HARDWARE, "", all_or_nothing="1"), "/all_or_nothing")
    only_error(client.get(f"/v1/exports/{HARDWARE}?format=xml"), "/format")


def test_an_import_sent_again_is_done_once(client: FlaskClient):
    text, headers = lines(*named(HARDWARE, "one")), {"Idempotency-Key": "k"}
    path = f"/v1/imports/{HARDWARE}"
    first, again = (
        client.post(path, data=text, content_type=JSON_LINES, headers=headers) for _ in range(2)
    )
    assert first.data == again.data
    assert results(again) == [(1, "created", 201)]


def test_a_database_that_is_down_is_503(tmp_path):
    for app in running_app(f"sqlite:///{tmp_path}/nowhere/advisor.sqlite3"):
        client = app.test_client()
        problem(client.get(f"/v1/exports/{HARDWARE}"), 503)
        problem(send(client, HARDWARE, lines(*named(HARDWARE, "one"))), 503)
