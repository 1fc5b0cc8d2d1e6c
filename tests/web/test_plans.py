from __future__ import annotations

import copy
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient

from advisor.core.trace import MOST_TRACED
from advisor.service import catalogue
from tests.web.bodies import HARDWARE, MODEL, PLAN
from tests.web.fixtures import running_app
from tests.web.problems import only_error, problem

SMALL: dict[str, Any] = {
    "model": "meta-llama-3.1-8b",
    "hardware": ["h100-sxm-80gb"],
    "workload": {"request_rate_per_s": 2, "input_tokens": 1000, "output_tokens": 100},
    "limits": {"max_accelerators": 4},
}
BURST: dict[str, Any] = {
    "concurrency": 16,
    "start": "burst",
    "input_tokens": 1000,
    "output_tokens": 100,
}


@pytest.fixture
def either_client(database_url: str) -> Iterator[FlaskClient]:
    """A client with the catalogue, once on each kind of database."""
    for app in running_app(database_url):
        catalogue.load(app.extensions["advisor-database"])
        yield app.test_client()


CHAT: dict[str, Any] = {
    "name": "chat",
    "weight": 3,
    "input_tokens": {"mean": 600, "p95": 1500},
    "output_tokens": 300,
    "slo": {"ttft_p95_ms": 900},
}
SEARCH: dict[str, Any] = {
    "weight": 1e-6,
    "input_tokens": {"values": [2000, 5000]},
    "output_tokens": {"values": [1, 80], "weights": [0, 2]},
    "prefix_cache_hit": 0.25,
}
TWO: dict[str, Any] = {"request_rate_per_s": 2, "prefix_cache_hit": 0.5, "classes": [CHAT, SEARCH]}


def changed(path: str, value: Any) -> dict[str, Any]:
    body = copy.deepcopy(SMALL)
    *parents, last = path.split(".")
    inner = body
    for key in parents:
        inner = inner.setdefault(key, {})
    inner[last] = value
    return body


def test_a_plan_is_answered_kept_and_read_again_word_for_word(either_client: FlaskClient):
    created = either_client.post("/v1/plans", json=SMALL)
    assert created.status_code == 201
    plan = created.get_json()
    assert created.headers["Location"] == f"/v1/plans/{plan['id']}"
    read = either_client.get(created.headers["Location"])
    assert read.data == created.data
    assert read.headers["ETag"] == created.headers["ETag"]
    unchanged = {"If-None-Match": read.headers["ETag"]}
    assert either_client.get(created.headers["Location"], headers=unchanged).status_code == 304
    (item,) = either_client.get("/v1/plans").get_json()["items"]
    assert item == {
        "id": plan["id"],
        "created_at": plan["created_at"],
        "model": "meta-llama-3.1-8b",
        "objective": "cost",
        "planner_version": plan["planner_version"],
        "request": SMALL,
    }


def test_classes_are_answered_with_their_latencies_and_asked_again(shared_client: FlaskClient):
    first = shared_client.post("/v1/plans", json=SMALL | {"workload": TWO, "verify": True})
    plan = first.get_json()
    assert first.status_code == 201, plan
    names = ["chat", "class-2"]
    assert [one["name"] for one in plan["recommended"]["classes"]] == names
    assert [one["name"] for one in plan["recommended"]["verification"]["classes"]] == names
    asked = plan["inputs"]["workload"]
    assert asked["input_tokens"] is asked["output_tokens"] is None
    assert asked["classes"][0]["prefix_cache_hit"] == 0.5
    assert asked["classes"][1]["weight"] == 1e-6
    assert asked["classes"][1]["input_tokens"] == {"values": [2000, 5000], "weights": [0.5, 0.5]}
    again = shared_client.post("/v1/plans", json=plan["inputs"]).get_json()
    differing = {key for key in plan if plan[key] != again[key]}
    assert differing <= {"id", "created_at"}


@pytest.mark.parametrize(
    ("workload", "pointer", "expected"),
    [
        ({"input_tokens": 100, "classes": [CHAT]}, "input_tokens", {}),
        ({"input_tokens": 100}, "output_tokens", {}),
        ({"classes": []}, "classes", {"allowed": {"minimum_items": 1, "maximum_items": 16}}),
        ({"classes": [CHAT] * 17}, "classes", {}),
        ({"classes": [CHAT, CHAT]}, "classes/1/name", {"given": "chat"}),
        ({"classes": [{"weight": 1, "input_tokens": {"values": [*range(1, 65)]},
                       "output_tokens": {"values": [*range(1, 65)]}}] * 3}, "classes",
         {"allowed": {"maximum_lengths": 64}}),
        ({"classes": [SEARCH, SEARCH | {"name": "class-1"}]}, "classes/1/name", {}),
        ({"classes": [CHAT | {"name": "Chat room"}]}, "classes/0/name", {"given": "Chat room"}),
        ({"classes": [CHAT | {"weight": 0}]}, "classes/0/weight", {"given": 0}),
        ({"classes": [{"input_tokens": 1, "output_tokens": 1}]}, "classes/0/weight", {}),
        ({"classes": [CHAT | {"slo": {"itl_p95_ms": 9}}]}, "classes/0/slo/itl_p95_ms",
         {"nearest": "ttft_p95_ms"}),
        ({"classes": [CHAT | {"output_tokens": 1, "slo": {"tpot_p95_ms": 9}}]},
         "classes/0/slo/tpot_p95_ms", {}),
        ({"classes": [CHAT | {"output_token": 1}]}, "classes/0/output_token",
         {"nearest": "output_tokens"}),
        ({"input_tokens": {"values": [5, 7], "weights": [1]}, "output_tokens": 1},
         "input_tokens/weights", {"allowed": {"minimum_items": 2, "maximum_items": 2}}),
        ({"input_tokens": {"values": [5], "weights": [0]}, "output_tokens": 1},
         "input_tokens/weights", {}),
        ({"input_tokens": {"values": [5, 5]}, "output_tokens": 1}, "input_tokens/values/1",
         {"given": 5}),
        ({"input_tokens": {"values": []}, "output_tokens": 1}, "input_tokens/values", {}),
        ({"input_tokens": {"weights": [1]}, "output_tokens": 1}, "input_tokens/values", {}),
        ({"input_tokens": {"values": [5], "mean": 7}, "output_tokens": 1}, "input_tokens/mean", {}),
    ],
)  # fmt: skip
def test_lengths_and_classes_that_make_no_sense_are_refused(
    shared_client: FlaskClient, workload: dict[str, Any], pointer: str, expected: dict[str, Any]
):
    body = SMALL | {"workload": {"request_rate_per_s": 2} | workload}
    answer = shared_client.post("/v1/plans", json=body)
    assert answer.status_code == 422
    (error,) = answer.get_json()["errors"]
    assert error["pointer"] == f"/workload/{pointer}"
    assert error.items() >= expected.items()


def test_the_cheapest_plan_that_holds_is_recommended(shared_client: FlaskClient):
    plan = shared_client.post("/v1/plans", json=SMALL).get_json()
    best = plan["recommended"]
    assert best["accelerators"] == best["replicas"] * best["tensor_parallel"]
    assert best["slo"]["met"]
    assert best["load"]["verdict"] == "stable"
    assert best == plan["candidates"][0]
    assert plan["explanation"]
    assert plan["reason"] is plan["nearest"] is None


def test_the_inputs_of_an_answer_are_a_request_with_the_same_answer(shared_client: FlaskClient):
    first = shared_client.post("/v1/plans", json=PLAN).get_json()
    second = shared_client.post("/v1/plans", json=first["inputs"]).get_json()
    for own in ("id", "created_at"):
        assert first.pop(own) != second.pop(own)
    assert first == second


@pytest.mark.parametrize(("given", "meant"), [({}, 160), ({"num_requests": 40}, 40)])
def test_a_burst_has_ten_requests_a_client_unless_told(
    shared_client: FlaskClient, given: dict[str, Any], meant: int
):
    body = SMALL | {"workload": BURST | given}
    plan = shared_client.post("/v1/plans", json=body).get_json()
    assert plan["inputs"]["workload"]["num_requests"] == meant
    assert plan["recommended"]["load"]["verdict"] == "closed_loop"
    again = shared_client.post("/v1/plans", json=plan["inputs"]).get_json()
    assert again["candidates"] == plan["candidates"]


def test_a_burst_too_long_to_simulate_is_refused_by_its_number_of_requests(
    shared_client: FlaskClient,
):
    load = BURST | {"num_requests": 100_000, "input_tokens": 100_000}
    response = shared_client.post("/v1/plans", json=SMALL | {"workload": load})
    assert only_error(response, "/workload/num_requests")["given"] == 100_000


def test_a_verified_plan_gives_both_answers(shared_client: FlaskClient):
    plain = shared_client.post("/v1/plans", json=SMALL).get_json()["recommended"]
    plan = shared_client.post("/v1/plans", json=SMALL | {"verify": True}).get_json()
    checked = plan["recommended"]
    found = checked["verification"]
    assert plain["verification"] is None
    assert plain["latency"] == checked["latency"]
    assert found["slo_met"]
    for metric, ratios in found["agreement"].items():
        if metric != "throughput":
            for statistic, ratio in ratios.items():
                values = [each["latency"][f"{metric}_ms"][statistic] for each in (checked, found)]
                assert ratio == pytest.approx(values[0] / values[1], rel=1e-4)


def test_plans_are_listed_newest_first_and_by_model(client: FlaskClient):
    made = [client.post("/v1/plans", json=SMALL).get_json()["id"] for _ in range(3)]
    other = client.post("/v1/plans", json=SMALL | {"model": "qwen3-8b"}).get_json()["id"]
    items = client.get("/v1/plans").get_json()["items"]
    assert [item["id"] for item in items] == [other, *reversed(made)]
    items = client.get("/v1/plans?model=qwen3-8b").get_json()["items"]
    assert [item["id"] for item in items] == [other]
    page = client.get("/v1/plans?limit=2").get_json()
    rest = client.get(f"/v1/plans?cursor={page['next_cursor']}").get_json()
    assert [item["id"] for item in rest["items"]] == [made[1], made[0]]


def test_a_plan_takes_whole_profiles_in_place_of_names(shared_client: FlaskClient):
    by_name = shared_client.post("/v1/plans", json=SMALL).get_json()
    config = {"name": "mine", "hf_config": MODEL["hf_config"]}
    hardware = HARDWARE | {"name": "inline", "price": None}
    inline = shared_client.post("/v1/plans", json=SMALL | {"model": config, "hardware": [hardware]})
    plan = inline.get_json()
    assert inline.status_code == 201
    assert (plan["inputs"]["model"], plan["inputs"]["hardware"]) == ("mine", ["inline"])
    assert plan["recommended"] is None or plan["recommended"]["cost"]["per_hour"] is None
    assert "no_price" in [warning["code"] for warning in plan["warnings"]]
    assert by_name["recommended"]["hardware"] == "h100-sxm-80gb"


@pytest.mark.parametrize(
    "spelling",
    ["Meta-Llama-3.1-8B", "META-LLAMA-3.1-8B", "meta-llama/Llama-3.1-8B-Instruct"],
)
def test_a_model_is_found_by_other_spellings(shared_client: FlaskClient, spelling: str):
    plan = shared_client.post("/v1/plans", json=SMALL | {"model": spelling}).get_json()
    assert plan["inputs"]["model"] == "meta-llama-3.1-8b"


def test_looking_for_near_names_is_bounded_over_the_whole_request(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("advisor.service.lookup.MOST_COMPARED", 100)
    body = {"model": "meta-llama-3.1-70b", "hardware": [f"h100-sxm-80gb{i}" for i in range(64)]}
    workload = {"request_rate_per_s": 1, "input_tokens": 10, "output_tokens": 10}
    errors = problem(client.post("/v1/plans", json=body | {"workload": workload}), 422)["errors"]
    assert errors[0]["nearest"] == "h100-sxm-80gb"
    assert "nearest" not in errors[-1]


def test_unknown_names_are_refused_together_each_with_the_nearest(shared_client: FlaskClient):
    body = SMALL | {
        "model": "meta-llama-3.1-8c",
        "hardware": ["h100-sxm-80gb", "h200-sxm-141g", HARDWARE | {"name": "inline"}],
    }
    errors = problem(shared_client.post("/v1/plans", json=body), 422)["errors"]
    assert [(e["pointer"], e["given"], e["nearest"]) for e in errors] == [
        ("/model", "meta-llama-3.1-8c", "meta-llama-3.1-8b"),
        ("/hardware/1", "h200-sxm-141g", "h200-sxm-141gb"),
    ]


def test_an_inline_profile_is_refused_by_pointers_into_the_request(shared_client: FlaskClient):
    broken = MODEL["hf_config"] | {"num_attention_heads": 0}
    body = SMALL | {"model": {"name": "x", "hf_config": broken}}
    response = shared_client.post("/v1/plans", json=body)
    only_error(response, "/model/hf_config/num_attention_heads")
    body = SMALL | {"hardware": [HARDWARE | {"memory_gib": "80"}]}
    error = only_error(shared_client.post("/v1/plans", json=body), "/hardware/0/memory_gib")
    assert error["given"] == "80"


def test_a_request_too_large_to_be_kept_is_refused(shared_client: FlaskClient):
    config = MODEL["hf_config"] | {"padding": ["x" * 1000] * 140}
    body = SMALL | {"model": {"name": "x", "hf_config": config}}
    error = only_error(shared_client.post("/v1/plans", json=body), "")
    assert error["allowed"] == {"maximum_bytes": 131_072}


def test_a_search_without_bounds_is_refused_before_it_begins(shared_client: FlaskClient):
    degrees = list(range(1, 33))
    every = dict.fromkeys(("tensor_parallel", "pipeline_parallel", "expert_parallel"), degrees)
    began = time.process_time()
    response = shared_client.post("/v1/plans", json=SMALL | {"limits": every})
    assert only_error(response, "/limits")["given"]["layouts"] == 32**3
    many = {"tensor_parallel": degrees, "pipeline_parallel": degrees[:16]}
    counts = {"replicas": list(range(1, 257))}
    response = shared_client.post("/v1/plans", json=SMALL | {"limits": many | counts})
    assert only_error(response, "/limits")["given"]["candidates"] == 32 * 16 * 256
    assert time.process_time() - began < 1


def test_hardware_listed_twice_is_refused(shared_client: FlaskClient):
    body = SMALL | {"hardware": ["h100-sxm-80gb", "h200-sxm-141gb", "H100-SXM-80GB"]}
    error = only_error(shared_client.post("/v1/plans", json=body), "/hardware/2")
    assert "/hardware/0" in error["detail"]


TRACE: dict[str, Any] = {
    "sent_s": [i / 4 for i in range(40)],
    "input_tokens": [1000 + i for i in range(40)],
    "output_tokens": [50 + i for i in range(40)],
}


def traced(**changes: Any) -> dict[str, Any]:
    return {"trace": TRACE | changes}


def test_a_trace_is_replayed_and_its_inputs_are_a_request_with_the_same_answer(
    shared_client: FlaskClient,
):
    first = shared_client.post("/v1/plans", json=SMALL | {"workload": traced()}).get_json()
    measured = first["trace"]
    assert (measured["requests"], measured["duration_s"]) == (40, 9.75)
    assert measured["request_rate_per_s"] == 4.0
    assert measured["input_tokens"] == {"mean": 1019.5, "p95": 1037.05}
    assert first["recommended"]["verification"]["requests"] == 40
    assert first["inputs"]["workload"]["request_rate_per_s"] is None
    again = shared_client.post("/v1/plans", json=first["inputs"]).get_json()
    assert again["candidates"] == first["candidates"]
    assert again["inputs"] == first["inputs"]


def test_a_plan_of_a_trace_stands_for_a_serving_cost(shared_client: FlaskClient):
    plan = shared_client.post("/v1/plans", json=SMALL | {"workload": traced()}).get_json()
    cost = shared_client.post("/v1/economics/serving-cost", json={"plan_id": plan["id"]})
    assert cost.status_code == 200, cost.text
    assert cost.get_json()["per_hour"] == plan["recommended"]["cost"]["per_hour"]


def test_a_trace_as_long_as_is_taken_is_kept(shared_client: FlaskClient):
    """Its request is not too large to keep, nor its answer slow."""
    count = MOST_TRACED
    whole = traced(
        sent_s=[round(i / 3, 3) for i in range(count)],
        input_tokens=[1000 + i % 777 for i in range(count)],
        output_tokens=[100 + i % 99 for i in range(count)],
    )
    began = time.process_time()
    response = shared_client.post("/v1/plans", json=SMALL | {"workload": whole})
    assert response.status_code == 201, response.text
    assert time.process_time() - began < 20
    assert response.get_json()["recommended"]["verification"]["requests"] == count


REFUSED = [
    ("workload", traced(sent_s=[0.0] * 40), ["/workload/trace/sent_s"]),
    ("workload", traced(sent_s=[1.0, 0.5, *[2.0] * 38]), ["/workload/trace/sent_s/1"]),
    ("workload", traced(output_tokens=[5] * 39), ["/workload/trace/output_tokens"]),
    ("workload", traced(output_tokens=[5] * 19), ["/workload/trace/output_tokens"]),
    ("workload", traced(input_tokens=[0] + [5] * 39), ["/workload/trace/input_tokens/0"]),
    (
        "workload",
        traced() | {"request_rate_per_s": 2},
        ["/workload/request_rate_per_s", "/workload/trace"],
    ),
    (
        "workload",
        traced() | {"arrival_cv": 2, "input_tokens": 5},
        ["/workload/input_tokens", "/workload/arrival_cv"],
    ),
    ("workload", traced() | {"start": "burst"}, ["/workload/start"]),
    ("workload", {"request_rate_per_s": 2}, ["/workload/input_tokens", "/workload/output_tokens"]),
    ("workload.concurrency", 8, ["/workload/request_rate_per_s", "/workload/concurrency"]),
    ("workload.request_rate_per_s", None, ["/workload"]),
    ("workload.saturate", True, ["/workload/request_rate_per_s", "/workload/saturate"]),
    ("workload.input_tokens", {"mean": 100, "p95": 100}, ["/workload/input_tokens/p95"]),
    ("workload.input_tokens", {"mean": 100, "p95": 387}, ["/workload/input_tokens/p95"]),
    ("workload.input_tokens", {"mean": 100}, ["/workload/input_tokens/p95"]),
    ("workload.output_tokens", 131_000, ["/workload"]),
    ("workload.start", "burst", ["/workload/start"]),
    ("slo.ttft_p95", 100, ["/slo/ttft_p95"]),
    ("slo.ttft_p95_ms", None, ["/slo/ttft_p95_ms"]),
    ("objective", "costs", ["/objective"]),
    ("precision.weights", ["fp7"], ["/precision/weights/0"]),
    ("precision.kv_cache", ["fp8", "fp8"], ["/precision/kv_cache/1"]),
    ("limits.tensor_parallel", [], ["/limits/tensor_parallel"]),
    ("limits.tensor_parallel", 8, ["/limits/tensor_parallel"]),
    ("limits.pipeline_parallel", None, ["/limits/pipeline_parallel"]),
    ("serving.engine", "vlm", ["/serving/engine"]),
    ("serving.routing", "least-loaded", ["/serving/routing"]),
    ("hardware", [], ["/hardware"]),
    ("hardware", "h100-sxm-80gb", ["/hardware"]),
    ("hardware", ["h100-sxm-80gb"] * 65, ["/hardware"]),
    ("model", 3, ["/model"]),
    ("verify", "yes", ["/verify"]),
    ("workload.num_requests", 10, ["/workload/num_requests"]),
    ("workload", BURST | {"start": "bursts"}, ["/workload/start"]),
    ("workload", BURST | {"num_requests": 15}, ["/workload/num_requests"]),
    ("workload", BURST | {"num_requests": 100_001}, ["/workload/num_requests"]),
    ("workload", BURST | {"concurrency": 10_001}, ["/workload/num_requests"]),
    ("workload", BURST | {"start": "steady", "num_requests": 16}, ["/workload/num_requests"]),
    ("workload", BURST | {"concurrency": None, "saturate": True}, ["/workload/start"]),
]


@pytest.mark.parametrize(("path", "value", "pointers"), REFUSED)
def test_a_request_that_contradicts_the_contract_is_refused_by_its_pointers(
    shared_client: FlaskClient, path: str, value: Any, pointers: list[str]
):
    errors = problem(shared_client.post("/v1/plans", json=changed(path, value)), 422)["errors"]
    assert [error["pointer"] for error in errors] == pointers


def test_a_wrong_choice_is_refused_with_all_choices_and_the_nearest(shared_client: FlaskClient):
    response = shared_client.post("/v1/plans", json=changed("serving.engine", "sglng"))
    error = only_error(response, "/serving/engine")
    assert error["allowed"] == ["vllm", "sglang", "tensorrt_llm", "generic"]
    assert error["nearest"] == "sglang"


@pytest.mark.parametrize(
    "workload",
    [
        {"concurrency": 8},
        {"saturate": True},
        {"concurrency": 8, "saturate": False, "request_rate_per_s": None},
        {"request_rate_per_s": 1000},
        {"request_rate_per_s": 1e-6},
        {"request_rate_per_s": 2, "prefix_cache_hit": 1},
        {"request_rate_per_s": 2, "arrival_cv": 0},
        {"request_rate_per_s": 2, "arrival_cv": 100},
        {"request_rate_per_s": 2, "input_tokens": 1, "output_tokens": 1},
        {"concurrency": 1, "output_tokens": 1.5},
        {"concurrency": 1_000_000},
    ],
)
def test_every_kind_of_load_is_answered_in_plain_json(
    shared_client: FlaskClient, workload: dict[str, Any]
):
    lengths = {"input_tokens": 500, "output_tokens": 50}
    response = shared_client.post("/v1/plans", json=SMALL | {"workload": lengths | workload})
    assert response.status_code == 201, response.text

    def refuse(name: str) -> None:
        raise AssertionError(name)

    plan = json.loads(response.data, parse_constant=refuse)
    assert plan["candidates"] or plan["rejected"]
    assert (plan["recommended"] is None) == (plan["reason"] is not None)


def test_a_plan_that_does_not_exist_is_404(shared_client: FlaskClient):
    problem(shared_client.get("/v1/plans/0123456789abcdef"), 404)
