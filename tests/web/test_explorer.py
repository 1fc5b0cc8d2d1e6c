"""The explorer under the rules of every other route."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from flask.testing import FlaskClient

from advisor.config import BadSetting, Settings
from advisor.service.keys import Keys
from advisor.web import explorer
from advisor.web.app import create_app
from tests.web.fixtures import running_app
from tests.web.problems import problem

ASK = "/explorer/_dash-update-component"
HEADER, PAGE, QUERY = "header.children", "page.children", "query.data"


def opening(path: str, search: str = "") -> dict[str, Any]:
    """What the browser asks when a page is opened."""
    output = f"..{HEADER}...{PAGE}...{QUERY}.."
    return {
        "output": output,
        "outputs": [{"id": each.split(".")[0], "property": each.split(".")[1]}
                    for each in (HEADER, PAGE, QUERY)],
        "inputs": [{"id": "address", "property": "pathname", "value": path},
                   {"id": "use-key", "property": "n_clicks", "value": None}],
        "state": [{"id": "address", "property": "search", "value": search}],
        "changedPropIds": ["address.pathname"],
    }  # fmt: skip


def page(client: FlaskClient, path: str = "/explorer/", search: str = "") -> str:
    """All that a page shows, as the JSON that the browser gets."""
    answer = client.post(ASK, json=opening(path, search))
    assert answer.status_code == 200
    return json.dumps(answer.get_json(), separators=(",", ":"))


def test_without_its_slash_it_is_found_on_the_same_host(shared_client: FlaskClient):
    answer = shared_client.get("/explorer", headers={"Host": "elsewhere.example"})
    assert answer.status_code == 302
    assert answer.headers["Location"] == "explorer/"


def test_a_page_allows_its_own_scripts_alone(shared_client: FlaskClient):
    answer = shared_client.get("/explorer/break-even")
    inline = re.findall(r"<script[^>]*javascript\">(.*?)</script>", answer.text, re.DOTALL)
    hashes = {base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in inline}
    (scripts,) = re.findall(r"script-src ([^;]*);", answer.headers["Content-Security-Policy"])
    assert set(scripts.split()) == {"'self'"} | {f"'sha256-{each}'" for each in hashes}
    assert not re.findall(r"(?:src|href)=\"(?!/)", answer.text)
    for address in re.findall(r"src=\"([^\"]+)\"", answer.text):
        assert shared_client.get(address).status_code == 200


def test_scripts_are_there_for_all_who_ask_a_new_process_at_once(
    shared_client: FlaskClient, sqlite_url: str
):
    addresses = re.findall(r"src=\"([^\"]+)\"", shared_client.get("/explorer/").text)
    assert len(addresses) > 5
    for app in running_app(sqlite_url):
        with ThreadPoolExecutor(len(addresses)) as threads:
            asked = threads.map(lambda address: app.test_client().get(address), addresses)  # noqa: B023
            assert {answer.status_code for answer in asked} == {200}


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/explorer/", "Run 1 replica x TP4 on h100-sxm-80gb: 27.52 USD an hour."),
        ("/explorer/break-even", "after 1,461,125,799 calls"),
        ("/explorer/self-host", "Self-hosting is always cheaper from"),
        ("/explorer/terminology", "1 open question"),
        ("/explorer/nowhere", "There is no such page here."),
    ],
)
def test_pages_answer_their_defaults(shared_client: FlaskClient, path: str, shown: str):
    assert shown in page(shared_client, path)


def test_a_page_reads_no_more_names_than_it_offers(
    shared_client: FlaskClient, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("advisor.explorer.app.PAGE_SIZE", 5)
    monkeypatch.setattr("advisor.explorer.app.MOST_NAMES", 10)
    (offered,) = re.findall(r'\\"known\\": (\[[^]]+\])', page(shared_client))
    listed = shared_client.get("/v1/model-profiles?limit=10").get_json()["items"]
    assert json.loads(offered.replace('\\"', '"')) == [each["name"] for each in listed]


def test_a_page_shows_what_the_api_answers_and_stores_nothing(client: FlaskClient):
    shown = page(client)
    assert client.get("/v1/plans").get_json()["items"] == []
    (posted,) = re.findall(r"\"data-body\":(\"(?:[^\"\\]|\\.)*\")", shown)
    body = json.loads(json.loads(posted))
    answer = client.post("/v1/plans", json=body).get_json()
    for sentence in answer["explanation"]:
        assert json.dumps(sentence)[1:-1] in shown
    page(client, "/explorer/terminology")


@pytest.mark.parametrize(
    ("search", "shown"),
    [
        (
            "?model=meta-llama-3.1-7b&hardware=l4&request_rate_per_s=1&input_tokens=9"
            "&output_tokens=9",
            "Is meta-llama-3.1-70b meant?",
        ),
        ("?model=meta-llama-3.1-8b&hardware=l4&request_rate_per_s=-1", "minimum 1e-06"),
        ("?model=meta-llama-3.1-8b&hardware=&request_rate_per_s=1", "required"),
        ("?hf_config={&hardware=l4", "is not JSON"),
        ("?\x00=\ud800&model=%00", "cannot be accepted"),
        ("?" + "x" * 100_000, "cannot be accepted"),
    ],
)  # fmt: skip
def test_what_the_api_refuses_is_shown(shared_client: FlaskClient, search: str, shown: str):
    assert shown in page(shared_client, search=search)


@pytest.mark.parametrize(
    "body",
    [b"{", b"[]", b"{}", b"null", b'{"output": "nothing.children"}', b'"x"', b"\xff",
     json.dumps(opening("/explorer/") | {"inputs": 3}).encode(),
     json.dumps(opening("/explorer/") | {"state": []}).encode()],
)  # fmt: skip
def test_what_no_page_would_ask_is_400(shared_client: FlaskClient, body: bytes):
    problem(shared_client.post(ASK, data=body, content_type="application/json"), 400)


def test_bodies_have_the_bounds_of_the_api(shared_client: FlaskClient):
    problem(shared_client.post(ASK, data=b"{}", content_type="text/plain"), 415)
    problem(shared_client.post(ASK, data=b" " * 2_000_000, content_type="application/json"), 413)
    problem(shared_client.get(ASK), 405)
    problem(shared_client.get("/explorer/_dash-component-suites/dash/none.js"), 404)
    problem(shared_client.get("/explorer/assets/../app.py"), 404)


def test_pages_need_the_key_that_the_api_would(sqlite_url: str):
    for app in running_app(sqlite_url, authentication="required", api_key_pepper="p"):
        client = app.test_client()
        assert client.get("/explorer/").status_code == 200
        assert "llama" not in client.get("/explorer/_dash-layout").text
        problem(client.post(ASK, json=opening("/explorer/terminology")), 401)
        key = Keys(app.extensions["advisor-database"], "p").create("reader", "read")
        headers = {"Authorization": f"Bearer {key}"}
        answer = client.post(ASK, json=opening("/explorer/terminology"), headers=headers)
        assert answer.status_code == 200
        assert "Bearer $ADVISOR_API_KEY" in answer.text


def test_pages_are_counted_as_the_api_is(sqlite_url: str):
    for app in running_app(sqlite_url, rate_limit_per_minute=2):
        client = app.test_client()
        for _ in range(2):
            page(client, "/explorer/terminology")
        problem(client.post(ASK, json=opening("/explorer/terminology")), 429)
        assert client.get("/explorer/").status_code == 200


def test_a_database_that_is_away_is_503(tmp_path: Any):
    for app in running_app(f"sqlite:///{tmp_path}/none/at/all.sqlite3"):
        problem(app.test_client().post(ASK, json=opening("/explorer/")), 503)


def test_the_explorer_can_be_switched_off_and_is_linked_from_the_docs(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
):
    for app in running_app(sqlite_url, explorer="off"):
        client = app.test_client()
        problem(client.get("/explorer/"), 404)
        assert "explorer" not in client.get("/docs").text
    for app in running_app(sqlite_url):
        assert 'href="explorer/"' in app.test_client().get("/docs").text
    monkeypatch.setattr(explorer, "is_installed", lambda: False)
    for app in running_app(sqlite_url):
        problem(app.test_client().get("/explorer/"), 404)
    with pytest.raises(BadSetting, match=r"ADVISOR_EXPLORER.*pip install"):
        create_app(Settings(database_url=sqlite_url, explorer="on"))
