from __future__ import annotations

import json
import re

import pytest
from flask import Flask
from flask.testing import FlaskClient

from advisor.config import Settings
from advisor.web.app import create_app
from advisor.web.spec import spec_document
from tests.web.bodies import POSTS
from tests.web.fixtures import running_app
from tests.web.problems import only_error, problem

METHODS = {"GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "PATCH"}
SPEC = spec_document(create_app(Settings()))
OPERATIONS = [
    (path, method.upper())
    for path, item in SPEC["paths"].items()
    for method in item
    if method != "parameters"
]
WITH_BODY = [
    (p, m)
    for p, m in OPERATIONS
    if "application/json" in SPEC["paths"][p][m.lower()].get("requestBody", {}).get("content", {})
]
NAMED = [(p, m) for p, m in OPERATIONS if "{" in p]


def concrete(path: str) -> str:
    """A path with its parameters filled in by something that exists."""
    name = "h100-sxm-80gb" if "hardware" in path else "meta-llama-3.1-8b"
    name = "replicas" if "techniques" in path else name
    path = path.replace("{name}", name)
    return re.sub("{(plan|check|allocation)_id}", "0", path)


def headers(method: str) -> dict[str, str]:
    return {"If-Match": '"1"'} if method in ("PUT", "DELETE") else {}


each_operation = pytest.mark.parametrize(("path", "method"), OPERATIONS)
each_body = pytest.mark.parametrize(("path", "method"), WITH_BODY)


def test_every_route_of_the_application_is_described_or_serves_pages():
    app = create_app(Settings())
    described = {path.replace("{", "<").replace("}", ">") for path in SPEC["paths"]}
    served = {re.sub(r"<\w+:", "<", rule.rule) for rule in app.url_map.iter_rules()}
    pages = {path for path in served if path.startswith("/explorer")}
    undescribed = {"/", "/docs", "/docs/assets/<filename>", "/openapi.json"}
    assert served - described - pages == undescribed


@pytest.mark.parametrize(
    "path", ["/nothing", "/v1", "/v1/plans/", "/healthz/", "/docs/assets/no.js"]
)
def test_an_unknown_path_is_a_404_problem(shared_client: FlaskClient, path: str):
    assert problem(shared_client.get(path), 404)["instance"] == path


@pytest.mark.parametrize("path", sorted(SPEC["paths"]))
def test_a_method_that_a_path_lacks_is_a_405_problem_that_allows_the_others(
    shared_client: FlaskClient, path: str
):
    offered = {method.upper() for method in SPEC["paths"][path]} & METHODS
    automatic = {"OPTIONS"} | ({"HEAD"} if "GET" in offered else set())
    for method in sorted(METHODS - offered - automatic):
        response = shared_client.open(concrete(path), method=method)
        assert response.status_code == 405
        if method != "HEAD":
            problem(response, 405)
        assert set(response.headers["Allow"].split(", ")) == offered | automatic


@each_operation
def test_an_unknown_query_parameter_is_refused_with_the_nearest(
    shared_client: FlaskClient, path: str, method: str
):
    response = shared_client.open(
        f"{concrete(path)}?limitt=3", method=method, headers=headers(method), json={}
    )
    error = only_error(response, "/limitt")
    parameters = SPEC["paths"][path][method.lower()].get("parameters", ())
    known = {each["name"] for each in parameters if each["in"] == "query"}
    assert set(error["allowed"]) == known
    assert error.get("nearest") == ("limit" if "limit" in known else None)


@each_operation
def test_a_query_parameter_given_twice_is_refused(
    shared_client: FlaskClient, path: str, method: str
):
    response = shared_client.open(
        f"{concrete(path)}?limit=3&limit=4", method=method, headers=headers(method), json={}
    )
    only_error(response, "/limit")


@each_body
@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-16", ""],
)
def test_another_content_type_is_415(
    shared_client: FlaskClient, path: str, method: str, content_type: str
):
    response = shared_client.open(
        concrete(path), method=method, data=b"{}", content_type=content_type,
        headers=headers(method),
    )  # fmt: skip
    problem(response, 415)


@each_body
def test_a_body_without_its_length_is_411(shared_client: FlaskClient, path: str, method: str):
    response = shared_client.open(
        concrete(path), method=method, content_type="application/json",
        headers=headers(method) | {"Transfer-Encoding": "chunked"},
        environ_overrides={"CONTENT_LENGTH": "", "wsgi.input_terminated": True},
    )  # fmt: skip
    problem(response, 411)


@each_body
def test_a_body_over_the_limit_is_413(shared_client: FlaskClient, path: str, method: str):
    body = json.dumps({"filler": " " * 1_048_576})
    response = shared_client.open(
        concrete(path), method=method, data=body, content_type="application/json",
        headers=headers(method),
    )  # fmt: skip
    problem(response, 413)


def test_the_body_limit_is_a_setting(sqlite_url: str):
    for app in running_app(sqlite_url, max_body_bytes=1024):
        body = {"text": "x" * 1024}
        problem(app.test_client().post("/v1/terminology/checks", json=body), 413)


@each_body
def test_malformed_json_is_400_and_says_where(shared_client: FlaskClient, path: str, method: str):
    response = shared_client.open(
        concrete(path), method=method, data=b'{"a": 1,}', content_type="application/json",
        headers=headers(method),
    )  # fmt: skip
    assert "line 1, column" in problem(response, 400)["detail"]


@each_body
@pytest.mark.parametrize("body", [[], "text", 3, None, True])
def test_a_body_that_is_no_object_is_422(
    shared_client: FlaskClient, path: str, method: str, body: object
):
    response = shared_client.open(
        concrete(path), method=method, data=json.dumps(body), content_type="application/json",
        headers=headers(method),
    )  # fmt: skip
    error = only_error(response, "")
    assert error["detail"] == "An object is expected."


@pytest.mark.parametrize("path", POSTS)
def test_an_unknown_field_is_refused_with_the_nearest(shared_client: FlaskClient, path: str):
    body = dict(POSTS[path])
    name = next(iter(body))
    body[name + "x"] = 1
    error = only_error(shared_client.post(path, json=body), f"/{name}x")
    assert error["nearest"] == name
    assert set(body) - {name + "x"} <= set(error["allowed"])


@pytest.mark.parametrize("path", POSTS)
def test_every_missing_field_is_named(shared_client: FlaskClient, path: str):
    document = problem(shared_client.post(path, json={}), 422)
    required = {error["pointer"] for error in document["errors"]}
    assert required
    assert required <= {f"/{name}" for name in POSTS[path]} | {"/hf_config"}


NAMES = ["nothing", "%00", "%F0%9F%98%80", "a%0Ab", "x" * 300, "..", "%ff"]


@pytest.mark.parametrize(("path", "method"), NAMED)
@pytest.mark.parametrize(
    "name", ["nothing", "%00", "%F0%9F%98%80", "a%0Ab", "x" * 300, "..", "%ff"]
)
def test_a_name_that_does_not_exist_is_404(
    shared_client: FlaskClient, path: str, method: str, name: str
):
    resource = path.rsplit("/", 1)[0]
    asked_of = POSTS.get(resource.removesuffix("/charts"))
    body = asked_of or {"answers": [{"finding": 0, "sense": "both"}]}
    if "{name}" in path and not resource.endswith("/charts"):
        body = body | {"name": name}
    place = re.sub(r"{\w+}", name, path)
    response = shared_client.open(place, method=method, json=body, headers=headers(method))
    if method == "PUT" and name != "nothing":
        assert response.status_code in (404, 422)
    else:
        problem(response, 404)


def test_an_overlong_address_is_414(shared_client: FlaskClient):
    problem(shared_client.get("/v1/plans?cursor=" + "x" * 5000), 414)


def test_an_unexpected_error_is_logged_and_answered_without_its_trace(
    app: Flask, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def fail(*_: object) -> None:
        raise RuntimeError("the secret inside")

    monkeypatch.setattr("advisor.service.plans.stored_plans.page", fail)
    response = app.test_client().get("/v1/plans", headers={"X-Request-ID": "find-me"})
    document = problem(response, 500)
    assert "find-me" in document["detail"]
    assert "secret" not in response.get_data(as_text=True)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (logged,) = [line for line in lines if line["level"] == "error"]
    assert "the secret inside" in logged["exception"]
    assert logged["request_id"] == "find-me"


def test_a_database_that_is_down_is_503_with_retry_after(tmp_path):
    for app in running_app(f"sqlite:///{tmp_path}/nowhere/advisor.sqlite3"):
        client = app.test_client()
        for path in ("/v1/plans", "/v1/hardware-profiles/h100-sxm-80gb", "/readyz"):
            response = client.get(path)
            problem(response, 503)
            assert int(response.headers["Retry-After"]) > 0
        assert client.get("/healthz").status_code == 200


def test_a_database_without_its_tables_is_not_ready(unmigrated_sqlite_url: str):
    for app in running_app(unmigrated_sqlite_url):
        assert "migrations" in problem(app.test_client().get("/readyz"), 503)["detail"]
