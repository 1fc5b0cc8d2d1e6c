"""`/v1/plans/{plan_id}/charts`."""

from __future__ import annotations

import csv
from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient

from advisor import plots
from advisor.charts.catalogue import OF_A_PLAN
from advisor.charts.chart import Chart
from advisor.core import figures
from tests.contract.test_openapi import OPERATIONS, assert_described
from tests.web.problems import only_error, problem

BODY: dict[str, Any] = {
    "model": "meta-llama-3.1-8b",
    "hardware": ["l40s", "l4"],
    "workload": {"request_rate_per_s": 4, "input_tokens": 1000, "output_tokens": 250},
    "slo": {"ttft_p95_ms": 1000, "tpot_p95_ms": 50},
}


@pytest.fixture(scope="module")
def charts(shared_client: FlaskClient) -> str:
    """The address of a plan's charts."""
    made = shared_client.post("/v1/plans", json=BODY)
    return f"/v1/plans/{made.get_json()['id']}/charts"


def test_the_list_names_every_chart_and_each_is_as_described(
    shared_client: FlaskClient, charts: str
):
    listed = shared_client.get(charts)
    assert_described(listed.get_json(), OPERATIONS["list_charts"][2], 200)
    names = [each["name"] for each in listed.get_json()["charts"]]
    assert names == list(OF_A_PLAN)
    for each in listed.get_json()["charts"]:
        one = shared_client.get(f"{charts}/{each['name']}")
        assert_described(one.get_json(), OPERATIONS["get_chart"][2], 200)
        assert {k: one.get_json()[k] for k in each} == each
        again = {"If-None-Match": one.headers["ETag"]}
        assert shared_client.get(f"{charts}/{each['name']}", headers=again).status_code == 304


def test_each_point_of_the_curve_is_what_the_plan_of_that_rate_answers(
    shared_client: FlaskClient, charts: str
):
    plan = shared_client.get(charts.removesuffix("/charts")).get_json()["recommended"]
    table = shared_client.get(f"{charts}/load_curve").get_json()["table"]
    names = [column["name"] for column in table["columns"]]
    for row in (table["rows"][5], table["rows"][-1]):
        point = dict(zip(names, row, strict=True))
        fixed = {
            "hardware": [plan["hardware"]],
            "workload": BODY["workload"] | {"request_rate_per_s": point["load"]},
            "limits": {k: [plan[k]] for k in ("tensor_parallel", "replicas")},
        }
        made = shared_client.post("/v1/plans", json=BODY | fixed).get_json()
        (alone,) = made["candidates"]
        for metric in ("ttft", "itl"):
            for statistic in ("p50", "p95", "p99"):
                assert point[f"{metric}_{statistic}_ms"] == pytest.approx(
                    alone["latency"][f"{metric}_ms"][statistic]
                )


@pytest.mark.parametrize(
    ("accept", "given"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("text/csv", "text/csv"),
        ("image/png", "image/png"),
        ("image/avif,image/webp,image/svg+xml,image/*,*/*;q=0.8", "image/svg+xml"),
        ("text/html,application/xhtml+xml,*/*;q=0.8", "application/json"),
    ],
)
def test_accept_says_in_which_form(
    shared_client: FlaskClient, charts: str, accept: str, given: str
):
    response = shared_client.get(f"{charts}/memory", headers={"Accept": accept})
    assert (response.status_code, response.mimetype) == (200, given)
    assert "Accept" in response.vary
    assert response.headers["ETag"]


def test_the_csv_is_the_table(shared_client: FlaskClient, charts: str):
    table = shared_client.get(f"{charts}/memory").get_json()["table"]
    text = shared_client.get(f"{charts}/memory", headers={"Accept": "text/csv"}).text
    head, *rows = csv.reader(text.splitlines())
    assert head == [column["name"] for column in table["columns"]]
    assert rows == [["" if v is None else str(v) for v in row] for row in table["rows"]]


def test_a_picture_may_carry_its_styles_and_no_script(shared_client: FlaskClient, charts: str):
    response = shared_client.get(f"{charts}/memory", headers={"Accept": "image/svg+xml"})
    assert response.text.startswith("<svg")
    policy = response.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "script-src" not in policy


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
@pytest.mark.parametrize("accept", ["image/svg+xml", "image/png"])
def test_a_picture_that_the_client_holds_is_not_drawn_again(
    shared_client: FlaskClient, charts: str, monkeypatch: pytest.MonkeyPatch, accept: str,
    encoding: str,
):  # fmt: skip
    headers = {"Accept": accept, "Accept-Encoding": encoding}
    tag = shared_client.get(f"{charts}/memory", headers=headers).headers["ETag"]
    drawn: list[str] = []

    def draw(chart: Chart, _: str) -> bytes:
        drawn.append(chart.name)
        return b"anew"

    monkeypatch.setattr(plots, "draw", draw)
    again = shared_client.get(f"{charts}/memory", headers=headers | {"If-None-Match": tag})
    assert (again.status_code, again.data, again.headers["ETag"]) == (304, b"", tag)
    assert "Accept" in again.vary
    assert drawn == []
    for other in ("step_time", "memory"):
        unlike = tag if other == "step_time" else '"another"'
        fresh = shared_client.get(f"{charts}/{other}", headers=headers | {"If-None-Match": unlike})
        assert (fresh.status_code, fresh.data) == (200, b"anew")
    assert drawn == ["step_time", "memory"]


def test_a_chart_is_read_with_the_figures_of_its_own_alone(
    shared_client: FlaskClient, charts: str, monkeypatch: pytest.MonkeyPatch
):
    computed: list[str] = []

    def noted(name: str, make: Callable[..., Any]) -> Callable[..., Any]:
        def make_and_note(*given: Any) -> Any:
            computed.append(name)
            return make(*given)

        return make_and_note

    for name in ("load_curve", "roofline", "_ways", "_crossings"):
        monkeypatch.setattr(figures, name, noted(name, getattr(figures, name)))
    assert shared_client.get(f"{charts}/roofline").status_code == 200
    assert computed == ["roofline"]
    assert shared_client.get(f"{charts}/load_curve").status_code == 200
    assert computed == ["roofline", "load_curve"]


def test_another_form_is_a_406_that_names_those_there_are(shared_client: FlaskClient, charts: str):
    response = shared_client.get(f"{charts}/memory", headers={"Accept": "application/pdf"})
    (error,) = problem(response, 406)["errors"]
    assert error["allowed"] == ["application/json", "text/csv", "image/svg+xml", "image/png"]


def test_without_matplotlib_pictures_are_a_406_with_what_there_is(
    shared_client: FlaskClient, charts: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(plots, "find_spec", lambda _: None)
    response = shared_client.get(f"{charts}/memory", headers={"Accept": "image/png"})
    document = problem(response, 406)
    assert "matplotlib" in document["detail"]
    assert document["errors"][0]["allowed"] == ["application/json", "text/csv"]
    either = {"Accept": "image/png, application/json;q=0.1"}
    assert shared_client.get(f"{charts}/memory", headers=either).mimetype == "application/json"


def test_an_unknown_chart_is_404_with_the_nearest(shared_client: FlaskClient, charts: str):
    error = only_error(shared_client.get(f"{charts}/roof"), "/name", status=404)
    assert error["nearest"] == "roofline"


def test_a_chart_that_the_plan_has_not_is_404_with_the_reason(shared_client: FlaskClient):
    overload = {
        "hardware": ["l40s"],
        "workload": BODY["workload"] | {"request_rate_per_s": 500},
        "limits": {"tensor_parallel": [1], "replicas": [1]},
    }
    plan = shared_client.post("/v1/plans", json=BODY | overload).get_json()["id"]
    listed = shared_client.get(f"/v1/plans/{plan}/charts").get_json()
    missing = {each["name"]: each["reason"] for each in listed["not_available"]}
    assert set(missing) == {"pareto", "replicas_vs_tensor_parallel"}
    for name, reason in missing.items():
        detail = problem(shared_client.get(f"/v1/plans/{plan}/charts/{name}"), 404)["detail"]
        assert reason in detail


def test_a_plan_that_cannot_be_made_any_more_keeps_the_charts_of_its_answer(client: FlaskClient):
    plan = client.post("/v1/plans", json=BODY | {"hardware": ["l4"]}).get_json()["id"]
    profile = client.get("/v1/hardware-profiles/l4")
    match = {"If-Match": profile.headers["ETag"]}
    assert client.delete("/v1/hardware-profiles/l4", headers=match).status_code == 204
    listed = client.get(f"/v1/plans/{plan}/charts").get_json()
    assert [each["name"] for each in listed["charts"]] == ["pareto", "memory", "step_time"]
    assert client.get(f"/v1/plans/{plan}/charts/memory").status_code == 200
    detail = problem(client.get(f"/v1/plans/{plan}/charts/roofline"), 404)["detail"]
    assert "cannot be made any more" in detail
