from __future__ import annotations

import json
import re

import pytest
from flask import Flask
from flask.testing import FlaskClient

import advisor

SECURITY = ["Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy"]


def test_liveness_and_readiness_answer_200(shared_client: FlaskClient):
    live = shared_client.get("/healthz")
    assert live.get_json() == {"status": "ok", "version": advisor.__version__}
    assert shared_client.get("/readyz").get_json() == {"status": "ready"}


@pytest.mark.parametrize(
    "path", ["/healthz", "/metrics", "/docs", "/openapi.json", "/v1/plans", "/nothing"]
)
def test_every_answer_has_the_security_headers(shared_client: FlaskClient, path: str):
    response = shared_client.get(path)
    for header in SECURITY:
        assert response.headers[header]
    policy = response.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "http:" not in policy


@pytest.mark.parametrize("path", ["/v1//plans", "/v1/plans//x"])
def test_two_slashes_are_404_and_no_redirect(shared_client: FlaskClient, path: str):
    answer = shared_client.get(path, headers={"Host": "elsewhere.example"})
    assert answer.status_code == 404
    assert "Location" not in answer.headers


def test_an_acceptable_request_id_is_kept_and_any_other_replaced(shared_client: FlaskClient):
    for given in ("abc-123", "A" * 64):
        response = shared_client.get("/healthz", headers={"X-Request-ID": given})
        assert response.headers["X-Request-ID"] == given
    for given in ("", "A" * 65, "a b", "ä", '{"x":1}'):
        response = shared_client.get("/healthz", headers={"X-Request-ID": given})
        assert re.fullmatch("[0-9a-f]{32}", response.headers["X-Request-ID"])


def test_each_request_is_one_line_of_json(
    shared_client: FlaskClient, capsys: pytest.CaptureFixture[str]
):
    shared_client.get("/v1/hardware-profiles/h100-sxm-80gb", headers={"X-Request-ID": "one"})
    (line,) = capsys.readouterr().out.splitlines()
    logged = json.loads(line)
    assert (
        logged.items()
        >= {
            "event": "request",
            "level": "info",
            "request_id": "one",
            "method": "GET",
            "route": "/v1/hardware-profiles/<name>",
            "path": "/v1/hardware-profiles/h100-sxm-80gb",
            "status": 200,
        }.items()
    )
    assert logged["duration_ms"] > 0
    assert logged["bytes"] > 100


def test_a_quiet_log_level_silences_requests(
    catalogued_url: str, capsys: pytest.CaptureFixture[str]
):
    from tests.web.fixtures import running_app

    for app in running_app(catalogued_url, log_level="WARNING"):
        app.test_client().get("/healthz")
    assert capsys.readouterr().out == ""
    for _ in running_app(catalogued_url):
        pass


def metric(client: FlaskClient, name: str, **labels: str) -> float:
    text = client.get("/metrics").get_data(as_text=True)
    wanted = {f'{key}="{value}"' for key, value in labels.items()}
    for line in text.splitlines():
        found = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
        if found and found[1] == name and wanted <= set((found[2] or "").split(",")):
            return float(found[3])
    return 0.0


def test_requests_are_counted_by_the_route_and_not_by_the_path(shared_client: FlaskClient):
    labels = {"method": "GET", "route": "/v1/hardware-profiles/<name>", "status": "404"}
    before = metric(shared_client, "advisor_requests_total", **labels)
    for name in ("aaa", "bbb", "ccc"):
        shared_client.get(f"/v1/hardware-profiles/{name}")
    assert metric(shared_client, "advisor_requests_total", **labels) == before + 3
    text = shared_client.get("/metrics").get_data(as_text=True)
    assert "/aaa" not in text
    assert 'advisor_request_seconds_bucket{le="' in text


def test_plans_findings_and_the_cache_of_profiles_are_counted(client: FlaskClient):
    def read() -> list[float]:
        return [
            metric(client, "advisor_plan_seconds_count"),
            metric(client, "advisor_plan_candidates_count"),
            metric(client, "advisor_plan_candidates_sum"),
            metric(client, "advisor_findings_total", rule="ambiguous-memory-bound"),
            metric(client, "advisor_profile_cache_total", kind="hardware", result="hit"),
            metric(client, "advisor_profile_cache_total", kind="hardware", result="miss"),
        ]

    plan = {
        "model": "qwen3-8b",
        "hardware": ["l4"],
        "workload": {"request_rate_per_s": 1, "input_tokens": 100, "output_tokens": 50},
    }
    before = read()
    total = 0
    for _ in range(3):
        total += client.post("/v1/plans", json=plan).get_json()["candidates_total"]
    client.post("/v1/terminology/checks", json={"text": "Decode is memory-bound."})
    grown = [after - then for after, then in zip(read(), before, strict=True)]
    assert grown[:4] == [3, 3, total, 1]
    assert grown[4] + grown[5] == 3
    assert grown[4] >= 2


def test_paths_and_methods_that_do_not_exist_make_no_labels(shared_client: FlaskClient):
    shared_client.open("/made/up/by/a/scanner", method="BREW")
    text = shared_client.get("/metrics").get_data(as_text=True)
    assert 'method="other",route="unmatched"' in text
    assert "BREW" not in text
    assert "scanner" not in text


def test_the_root_leads_to_the_docs(shared_client: FlaskClient):
    response = shared_client.get("/", follow_redirects=True)
    assert response.request.path == "/docs"
    assert response.content_type == "text/html; charset=utf-8"


def test_the_docs_page_and_its_assets_name_no_other_host(shared_client: FlaskClient):
    page = shared_client.get("/docs").get_data(as_text=True)
    assert "://" not in page
    assert not re.search(r"<script(?![^>]* src=)", page)
    assert not re.search(r"<style| style=| on\w+=", page)
    for address in re.findall(r'(?:src|href)="([^"]+)"', page):
        assert shared_client.get(f"/{address}", buffered=True).status_code == 200, address


@pytest.mark.parametrize("name", ["oauth2-redirect.html", "VERSION", "..%2Fdocs.html", "docs.html"])
def test_only_the_assets_that_the_page_uses_are_served(shared_client: FlaskClient, name: str):
    assert shared_client.get(f"/docs/assets/{name}").status_code == 404


def test_an_application_needs_no_database_to_start(tmp_path, app: Flask):
    from tests.web.fixtures import running_app

    for other in running_app(f"sqlite:///{tmp_path}/missing/advisor.sqlite3"):
        assert other is not app
        assert other.test_client().get("/openapi.json").status_code == 200
