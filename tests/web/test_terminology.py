from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from advisor.config import BadSetting, Settings
from advisor.web import examples
from advisor.web.app import create_app
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
    assert answer["inputs"] == {
        "text": TEXT, "format": "plain", "language": None, "plan_id": None,
    }  # fmt: skip
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


@pytest.mark.parametrize("text", ["", "No claim here.", "memory-bound " * 70_000, "a" * 1_000_000])
def test_any_text_up_to_the_limit_is_checked(shared_client: FlaskClient, text: str):
    assert shared_client.post("/v1/terminology/checks", json={"text": text}).status_code == 201


@pytest.mark.parametrize("text_format", ["plain", "markdown", "rst", "html", "code"])
def test_a_longer_text_is_refused_with_the_limit(shared_client: FlaskClient, text_format: str):
    body = {"text": "a" * 1_000_001, "format": text_format}
    error = only_error(shared_client.post("/v1/terminology/checks", json=body), "/text")
    assert error["allowed"]["maximum_length"] == 1_000_000


@pytest.mark.parametrize("text_format", ["markdown", "rst", "html"])
def test_markup_that_is_too_much_for_its_parser_is_read_by_lines_and_said(
    shared_client: FlaskClient, text_format: str
):
    body = {
        "text": "<b>*a*</b>\n" * 60_000 + "\nLLM decode is memory-bound.",
        "format": text_format,
    }
    answer = shared_client.post("/v1/terminology/checks", json=body).get_json()
    assert [found["match"] for found in answer["findings"]] == ["memory-bound"]
    assert [warning["code"] for warning in answer["warnings"]] == ["read_coarsely"]


def test_a_format_that_is_not_read_is_refused(shared_client: FlaskClient):
    body = {"text": "x", "format": "docx"}
    error = only_error(shared_client.post("/v1/terminology/checks", json=body), "/format")
    assert error["allowed"] == ["plain", "markdown", "rst", "html", "code"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"format": "code", "language": "klingon"}, "/language"),
        ({"format": "markdown", "language": "python"}, "/language"),
        ({"plan_id": "nosuchplan"}, "/plan_id"),
        ({"plan_id": "no such plan \u20ac"}, "/plan_id"),
        ({"texts": "x"}, "/texts"),
    ],
)
def test_what_cannot_be_checked_is_a_problem_that_says_where(
    shared_client: FlaskClient, body: dict, pointer: str
):
    only_error(shared_client.post("/v1/terminology/checks", json={"text": "x"} | body), pointer)


def test_only_the_prose_of_a_document_is_checked(shared_client: FlaskClient):
    text = "# 😀\n\nDecode is *memory-bound*, `memory-bound`.\n\n> Decode is memory-bound.\n"
    body = {"text": text, "format": "markdown"}
    (found,) = shared_client.post("/v1/terminology/checks", json=body).get_json()["findings"]
    assert (found["line"], found["column"]) == (3, 12)
    assert text[found["start"] : found["end"]] == "memory-bound"


def test_a_text_with_too_many_claims_says_where_it_stopped(shared_client: FlaskClient):
    body = {"text": "Decode is memory-bound. " * 5000}
    answer = shared_client.post("/v1/terminology/checks", json=body).get_json()
    (warning,) = answer["warnings"]
    assert warning["code"] == "not_read_to_the_end"
    assert str(24 * len(answer["findings"])) in warning["detail"]


def test_a_plan_gives_the_figures_for_either_reading(shared_client: FlaskClient):
    plan = shared_client.post("/v1/plans", json=next(iter(examples.PLANS.values()))).get_json()
    bottleneck = plan["recommended"]["bottleneck"]
    body = {"text": "Decode is memory-bound. The LLM fits on one GPU.", "plan_id": plan["id"]}
    created = shared_client.post("/v1/terminology/checks", json=body)
    claim, other = created.get_json()["findings"]
    evidence = claim["evidence"]
    assert evidence["plan_id"] == plan["id"]
    assert evidence["memory_bandwidth_share"] == bottleneck["decode"]["shares"]["memory_bandwidth"]
    assert evidence["memory_capacity_used"] == bottleneck["memory_capacity_used"]
    assert f"{evidence['memory_bandwidth_share']:.0%}" in evidence["bandwidth"]
    assert evidence["holds"] in ("bandwidth", "both")
    assert other["evidence"] is None
    reply = {"answers": [{"finding": 0, "sense": "bandwidth"}]}
    answered = shared_client.post(f"{created.headers['Location']}/answers", json=reply).get_json()
    assert answered["findings"][0]["evidence"] == evidence


def test_each_rule_has_its_own_options_to_answer(shared_client: FlaskClient):
    item = check(shared_client, "The LLM has a latency of 300 ms.")
    wrong = {"answers": [{"finding": 0, "sense": "bandwidth"}]}
    error = only_error(shared_client.post(f"{item}/answers", json=wrong), "/answers/0/sense")
    assert error["allowed"] == ["ttft", "itl", "e2e", "other"]
    right = {"answers": [{"finding": 0, "sense": "ttft"}]}
    found = shared_client.post(f"{item}/answers", json=right).get_json()["findings"][0]
    assert (found["status"], found["sense"], found["readings"]) == ("resolved", "ttft", None)
    assert "first token" in found["advice"]


def test_a_file_of_a_team_is_read_at_the_start(tmp_path: Path, sqlite_url: str):
    file = tmp_path / "rules.toml"
    file.write_text('disable = ["latency-of-what"]\n')
    settings = Settings(database_url=sqlite_url, terminology_rules=str(file))
    page = create_app(settings).test_client().get("/v1/terminology/rules").get_json()
    assert "latency-of-what" not in {rule["id"] for rule in page["items"]}


@pytest.mark.parametrize(
    "text", ["not TOML", "rules = 1", "[[rule]]\nid = 1", "[[cue]]\nname = 'x'", "field = 3"]
)
def test_a_file_that_holds_no_rules_stops_the_start(tmp_path: Path, text: str):
    file = tmp_path / "rules.toml"
    file.write_text(text)
    with pytest.raises(BadSetting, match="ADVISOR_TERMINOLOGY_RULES"):
        create_app(Settings(terminology_rules=str(file)))


def test_the_rules_are_listed_with_question_and_advice(shared_client: FlaskClient):
    page = shared_client.get("/v1/terminology/rules").get_json()
    rules = {rule["id"]: rule for rule in page["items"]}
    rule = rules["ambiguous-memory-bound"]
    assert rule["question"]["options"] == list(rule["advice"])
    assert page["next_cursor"] is None
