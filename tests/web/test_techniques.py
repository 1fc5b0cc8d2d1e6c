"""`/v1/techniques` through HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from advisor.core.techniques.catalogue import catalogue
from advisor.web import examples
from tests.web.bodies import ADVICE, HARDWARE
from tests.web.problems import only_error, problem

SMALL: dict[str, Any] = {
    "model": "meta-llama-3.1-8b",
    "hardware": ["h100-sxm-80gb"],
    "workload": {"request_rate_per_s": 2, "input_tokens": 1000, "output_tokens": 100},
    "limits": {"max_accelerators": 4},
}


def advise(client: FlaskClient, **body: Any) -> dict[str, Any]:
    response = client.post("/v1/techniques/advice", json=body)
    assert response.status_code == 200, response.get_data(as_text=True)
    return dict(response.get_json())


def kept(client: FlaskClient, **changes: Any) -> dict[str, Any]:
    response = client.post("/v1/plans", json=SMALL | changes)
    assert response.status_code == 201
    return dict(response.get_json())


def test_the_list_has_every_technique_with_its_family(shared_client: FlaskClient):
    items = shared_client.get("/v1/techniques").get_json()["items"]
    assert {each["name"] for each in items} == {*catalogue()}
    for each in items:
        technique = catalogue()[each["name"]]
        assert each == technique.as_dict()
        assert each["sources"][0]["url"].startswith("https://")


def test_a_family_is_listed_by_itself_and_page_by_page(shared_client: FlaskClient):
    found: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        address = f"/v1/techniques?family=model&limit=3{cursor and '&cursor=' + cursor}"
        page = shared_client.get(address).get_json()
        found += [each["name"] for each in page["items"]]
        cursor = page["next_cursor"]
    assert sorted(found) == sorted(n for n, t in catalogue().items() if t.family == "model")
    error = only_error(shared_client.get("/v1/techniques?family=modl"), "/family")
    assert error["nearest"] == "model"


@pytest.mark.parametrize("path", ["techniques", "terminology/rules"])
def test_nothing_follows_the_last_of_a_list(shared_client: FlaskClient, path: str):
    (last,) = shared_client.get(f"/v1/{path}?limit=200").get_json()["items"][-1:]
    key = last.get("name", last.get("id"))
    assert shared_client.get(f"/v1/{path}?cursor={key}").get_json() == {
        "items": [], "next_cursor": None
    }  # fmt: skip


def test_one_technique_is_read_and_an_unknown_one_is_404_with_the_nearest(
    shared_client: FlaskClient,
):
    read = shared_client.get("/v1/techniques/prefix_caching")
    assert read.get_json() == catalogue()["prefix_caching"].as_dict()
    headers = {"If-None-Match": read.headers["ETag"]}
    assert shared_client.get("/v1/techniques/prefix_caching", headers=headers).status_code == 304
    response = shared_client.get("/v1/techniques/prefix_cashing")
    assert "prefix_caching" in problem(response, 404)["detail"]


def test_a_stored_plan_gets_the_advice_of_its_request(shared_client: FlaskClient):
    plan = kept(shared_client)
    stored = advise(shared_client, plan_id=plan["id"])
    given = advise(shared_client, plan=SMALL)
    assert stored["inputs"].pop("plan_id") == plan["id"]
    assert given["inputs"].pop("plan_id") is None
    assert stored == given
    recommended, before = plan["recommended"], stored["before"]
    assert before["cost_per_hour"] == recommended["cost"]["per_hour"]
    assert before["e2e_p95_ms"] == recommended["latency"]["e2e_ms"]["p95"]
    assert before["pools"][0]["replicas"] == recommended["replicas"]
    assert stored["inputs"]["plan"] == plan["inputs"]
    assert not any(each["code"] == "plan_made_anew" for each in stored["warnings"])


def test_another_objective_ranks_by_another_measure(shared_client: FlaskClient):
    plan = kept(shared_client)
    found = advise(shared_client, plan_id=plan["id"], objective="latency")
    assert (found["objective"], found["measure"]) == ("latency", "e2e_p95_ms")
    assert found["inputs"]["objective"] == "latency"
    assert found["inputs"]["plan"] == plan["inputs"]
    (stated,) = [each for each in found["assumptions"] if each["code"] == "asked_anew"]
    assert "for objective latency" in stated["detail"]


def test_every_applying_technique_has_figures_before_and_after(shared_client: FlaskClient):
    found = advise(
        shared_client, plan=SMALL, distilled_model="llama-3.2-3b-instruct", prefix_cache_hit=0.5
    )
    applying = [each for each in found["techniques"] if each["applies"]]
    assert {"distillation", "weight_quantization", "prefix_caching", "disaggregation"} <= {
        each["name"] for each in applying
    }
    for each in applying:
        assert each["before"] == found["before"]
        assert each["after"]["cost_per_hour"]
        assert each["effect"]["verdict"] in ("helps", "no_change", "hurts")
    assert found["disaggregation"]["aggregated"]
    assert [each["batching"] for each in found["batching"]] == ["none", "static", "continuous"]
    assert found["combinations"]


def test_a_plan_whose_hardware_has_changed_is_made_anew_with_a_warning(client: FlaskClient):
    client.post("/v1/hardware-profiles", json=HARDWARE)
    plan = kept(client, hardware=["my-h100"], model="meta-llama-3.1-70b")
    read = client.get("/v1/hardware-profiles/my-h100")
    larger = {"memory_gib": 250.0, "memory_bandwidth_gb_s": 8000}
    response = client.put(
        "/v1/hardware-profiles/my-h100", json=HARDWARE | larger,
        headers={"If-Match": read.headers["ETag"]},
    )  # fmt: skip
    assert response.status_code == 200, response.text
    found = advise(client, plan_id=plan["id"], techniques=["replicas"])
    (warning,) = [each for each in found["warnings"] if each["code"] == "plan_made_anew"]
    assert "is made anew as" in warning["detail"]


def test_a_plan_whose_model_is_gone_cannot_be_advised(client: FlaskClient):
    plan = kept(client)
    read = client.get("/v1/model-profiles/meta-llama-3.1-8b")
    gone = client.delete(
        "/v1/model-profiles/meta-llama-3.1-8b", headers={"If-Match": read.headers["ETag"]}
    )
    assert gone.status_code == 204
    response = client.post("/v1/techniques/advice", json={"plan_id": plan["id"]})
    error = only_error(response, "/plan_id")
    assert "cannot be made any more" in error["detail"]
    assert error["given"] == plan["id"]


@pytest.mark.parametrize(
    ("body", "pointer", "members"),
    [
        ({}, "/plan", {"allowed": ["plan_id", "plan"]}),
        ({"plan": SMALL, "plan_id": "abc"}, "/plan", {"allowed": ["plan_id", "plan"]}),
        ({"plan_id": "nothing"}, "/plan_id", {"given": "nothing"}),
        ({"plan": SMALL, "techniques": ["prefix_cachin"]}, "/techniques/0",
         {"given": "prefix_cachin", "nearest": "prefix_caching"}),
        ({"plan": SMALL, "distilled_model": "llama-3.2-3b-instruc"}, "/distilled_model",
         {"given": "llama-3.2-3b-instruc", "nearest": "llama-3.2-3b-instruct"}),
        ({"plan": SMALL, "prefix_cache_hit": 1.5}, "/prefix_cache_hit",
         {"given": 1.5, "allowed": {"minimum": 0, "maximum": 1}}),
        ({"plan": SMALL, "objective": "cheap"}, "/objective", {"given": "cheap"}),
        ({"plan": SMALL | {"hardware": ["h100-sxm-80g"]}}, "/plan/hardware/0",
         {"nearest": "h100-sxm-80gb"}),
        ({"plan": SMALL | {"model": "meta-llama-3.1-8"}}, "/plan/model",
         {"nearest": "meta-llama-3.1-8b"}),
        ({"plan": SMALL | {"serving": {"max_model_len": 5}}}, "/plan/serving/max_model_len",
         {"given": 5}),
        ({"plan": SMALL, "speculative": {"draft_tokens": 65, "acceptance_rate": 0.5}},
         "/speculative/draft_tokens", {"allowed": {"minimum": 1, "maximum": 64}}),
        ({"plan": SMALL, "objectiv": "cost"}, "/objectiv", {"nearest": "objective"}),
    ],
)  # fmt: skip
def test_what_cannot_be_advised_is_named(
    shared_client: FlaskClient, body: dict[str, Any], pointer: str, members: dict[str, Any]
):
    error = only_error(shared_client.post("/v1/techniques/advice", json=body), pointer)
    assert members.items() <= error.items()


def test_a_whole_smaller_model_may_be_brought_along(shared_client: FlaskClient):
    smaller = examples.MODELS["from an architecture"]
    found = advise(shared_client, plan=SMALL, distilled_model=smaller, techniques=["distillation"])
    (one,) = found["techniques"]
    assert one["after"]["model"] == found["inputs"]["distilled_model"] == "my-own-1b"


def test_only_what_is_asked_for_is_tried(shared_client: FlaskClient):
    found = advise(shared_client, **ADVICE)
    assert {each["name"] for each in found["techniques"]} == {*ADVICE["techniques"]}
    assert found["inputs"]["techniques"] == ADVICE["techniques"]
    assert found["batching"] == []
    assert found["disaggregation"] is None
