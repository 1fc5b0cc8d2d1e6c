from __future__ import annotations

from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient

from tests.web.fixtures import running_app
from tests.web.problems import only_error, problem

TEXT = (
    "😀 Decode is memory-bound.\nPrefill is not memory-bound. And batch-1 decode is memory bound."
)


@pytest.fixture
def either_client(database_url: str) -> Iterator[FlaskClient]:
    """A client on an empty database, once of each kind."""
    for app in running_app(database_url):
        yield app.test_client()


def check(client: FlaskClient, text: str = TEXT) -> str:
    created = client.post("/v1/terminology/checks", json={"text": text})
    assert created.status_code == 201
    assert created.headers["Location"] == f"/v1/terminology/checks/{created.get_json()['id']}"
    return created.headers["Location"]


def test_a_check_is_kept_with_its_findings_in_code_points(either_client: FlaskClient):
    answer = either_client.get(check(either_client)).get_json()
    assert answer["offset_unit"] == "code_point"
    assert answer["inputs"] == {"text": TEXT, "format": "plain"}
    for finding in answer["findings"]:
        assert TEXT[finding["start"] : finding["end"]] == finding["match"]
    assert [finding["status"] for finding in answer["findings"]] == [
        "needs_answer", "denied", "needs_answer",
    ]  # fmt: skip
    assert answer["summary"] == {"claims": 3, "flagged": 2, "resolved": 0, "denied": 1}


def test_an_answer_resolves_its_finding_and_is_kept(either_client: FlaskClient):
    item = check(either_client)
    before = either_client.get(item)
    reply = {"answers": [{"finding": 0, "sense": "capacity"}]}
    answered = either_client.post(f"{item}/answers", json=reply)
    assert answered.status_code == 200
    document = answered.get_json()
    assert document["findings"][0]["status"] == "resolved"
    assert document["findings"][0]["sense"] == "capacity"
    assert document["findings"][0]["advice"]
    assert document["summary"] == {"claims": 3, "flagged": 1, "resolved": 1, "denied": 1}
    read = either_client.get(item)
    assert read.data == answered.data
    assert read.headers["ETag"] != before.headers["ETag"]


def test_answers_are_taken_all_or_none(client: FlaskClient):
    item = check(client)
    before = client.get(item).data
    replies = {
        "answers": [
            {"finding": 0, "sense": "bandwidth"},
            {"finding": 3, "sense": "bandwidth"},
            {"finding": 1, "sense": "both"},
        ]
    }
    errors = problem(client.post(f"{item}/answers", json=replies), 422)["errors"]
    assert [e["pointer"] for e in errors] == ["/answers/1/finding", "/answers/2/finding"]
    assert client.get(item).data == before


def test_a_sense_that_is_no_option_is_refused_with_the_options(client: FlaskClient):
    reply = {"answers": [{"finding": 0, "sense": "capacities"}]}
    response = client.post(f"{check(client)}/answers", json=reply)
    error = only_error(response, "/answers/0/sense")
    assert error["allowed"] == ["bandwidth", "capacity", "both", "other"]
    assert error["nearest"] == "capacity"


@pytest.mark.parametrize("text", ["", "No claim here.", "memory-bound " * 7000, "a" * 100_000])
def test_any_text_up_to_the_limit_is_checked(shared_client: FlaskClient, text: str):
    assert shared_client.post("/v1/terminology/checks", json={"text": text}).status_code == 201


def test_a_longer_text_is_refused_with_the_limit(shared_client: FlaskClient):
    response = shared_client.post("/v1/terminology/checks", json={"text": "a" * 100_001})
    error = only_error(response, "/text")
    assert error["allowed"]["maximum_length"] == 100_000


def test_a_format_that_is_not_read_is_refused(shared_client: FlaskClient):
    body = {"text": "x", "format": "markdown"}
    error = only_error(shared_client.post("/v1/terminology/checks", json=body), "/format")
    assert error["allowed"] == ["plain"]


def test_the_rules_are_listed_with_question_and_advice(shared_client: FlaskClient):
    page = shared_client.get("/v1/terminology/rules").get_json()
    rules = {rule["id"]: rule for rule in page["items"]}
    rule = rules["ambiguous-memory-bound"]
    assert rule["question"]["options"] == list(rule["advice"])
    assert page["next_cursor"] is None
