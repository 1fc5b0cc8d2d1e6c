from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from flask.testing import FlaskClient
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from openapi_spec_validator import OpenAPIV31SpecValidator

from advisor.catalog.loader import hardware_documents
from advisor.config import Settings
from advisor.schemas.hardware import HardwareProfileBody
from advisor.web.app import create_app
from advisor.web.spec import spec_document, spec_yaml

APP = create_app(Settings())
SPEC = spec_document(APP)
COMMITTED = Path(__file__).parents[2] / "openapi.yaml"
OPERATIONS = {
    operation["operationId"]: (path, method, operation)
    for path, item in SPEC["paths"].items()
    for method, operation in item.items()
    if method != "parameters"
}
each_operation = pytest.mark.parametrize("name", OPERATIONS)


def body_of(operation: dict[str, Any]) -> dict[str, Any]:
    return dict(operation["requestBody"]["content"]["application/json"])


FILES = {n for n in OPERATIONS if n.startswith(("import_", "export_"))}
"""Operations on JSON Lines and CSV: tests/web/test_bulk.py."""
EXAMPLES = [
    (name, title)
    for name, (_, _, operation) in OPERATIONS.items()
    if "requestBody" in operation and name not in FILES
    for title in body_of(operation)["examples"]
]


def strict(schemas: dict[str, Any]) -> dict[str, Any]:
    """The schemas with every described object closed: an answer may hold nothing undescribed."""
    closed = copy.deepcopy(schemas)
    stack: list[Any] = [closed]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            if "properties" in node and node.get("type") == "object":
                node.setdefault("additionalProperties", False)
            stack += node.values()
        elif isinstance(node, list):
            stack += node
    return closed


STRICT = strict(SPEC["components"]["schemas"])


def assert_described(document: Any, operation: dict[str, Any], status: int) -> None:
    """That the answer of an operation is just what the specification says."""
    response = operation["responses"][str(status)]
    schema = response["content"]["application/json"]["schema"]
    schema = schema | {"components": {"schemas": STRICT}}
    errors = [
        f"{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}"
        for error in Draft202012Validator(schema).iter_errors(document)
    ]
    assert errors == []


def test_the_committed_specification_is_the_code_s():
    assert COMMITTED.read_text(encoding="utf-8") == spec_yaml(APP)


def test_the_specification_is_valid_openapi_3_1():
    OpenAPIV31SpecValidator(yaml.safe_load(spec_yaml(APP))).validate()
    assert SPEC["openapi"].startswith("3.1.")


@each_operation
def test_an_operation_is_described_in_full(name: str):
    path, _, operation = OPERATIONS[name]
    assert re.fullmatch("[a-z]+(_[a-z]+)+", name)
    assert operation["summary"]
    assert operation["description"]
    assert len(operation["tags"]) == 1
    statuses = operation["responses"]
    assert any(status.startswith("2") for status in statuses)
    assert {"422", "503", "default"} <= set(statuses)
    if "{" in path:
        assert "404" in statuses
    if "requestBody" in operation:
        assert {"400", "411", "413", "415"} <= set(statuses)
        if name not in FILES:
            assert body_of(operation)["examples"]


@each_operation
def test_every_error_is_a_problem_document(name: str):
    for status, response in OPERATIONS[name][2]["responses"].items():
        if status[0] in "45d":
            described = SPEC["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
            (media,) = described["content"].items()
            assert media == (
                "application/problem+json",
                {"schema": {"$ref": "#/components/schemas/ProblemAnswer"}},
            )


def objects(node: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(node, dict):
        if node.get("type") == "object":
            yield place, node
        for key, inner in node.items():
            yield from objects(inner, f"{place}/{key}")
    elif isinstance(node, list):
        for index, inner in enumerate(node):
            yield from objects(inner, f"{place}/{index}")


def test_every_object_of_a_request_is_closed_but_a_raw_config():
    requests = {k: v for k, v in SPEC["components"]["schemas"].items() if "Answer" not in k}
    requests = {k: v for k, v in requests.items() if not k.endswith("Page")}
    open_objects = {
        place
        for place, schema in objects(requests)
        if schema.get("additionalProperties", True) is True
    }
    assert open_objects == {
        "/ModelProfile/properties/hf_config",
        "/ModelProfile/properties/hf_quant_config",
    }


def test_every_schema_and_every_number_of_a_request_is_described_and_bounded():
    for name, schema in SPEC["components"]["schemas"].items():
        assert schema["description"], name
        if name.endswith(("Answer", "Page")):
            continue
        for field, prop in schema["properties"].items():
            types = prop.get("type", ())
            if {"number", "integer"} & set([types] if isinstance(types, str) else types):
                assert {"minimum", "maximum"} <= set(prop), f"{name}.{field}"
            if "string" in types and "enum" not in prop and "format" not in prop:
                assert "maxLength" in prop, f"{name}.{field}"


def send(client: FlaskClient, name: str, body: dict[str, Any]) -> Any:
    """Send a body to an operation, what it needs beside made before."""
    path, method, _ = OPERATIONS[name]
    headers = {}
    if method == "put":
        created = client.post(path.removesuffix("/{name}"), json=body)
        headers["If-Match"] = created.headers["ETag"]
        path = path.replace("{name}", body["name"])
    if "{check_id}" in path:
        text = next(iter(body_of(OPERATIONS["create_terminology_check"][2])["examples"].values()))
        check = client.post("/v1/terminology/checks", json=text["value"]).get_json()
        path = path.replace("{check_id}", check["id"])
    if path.endswith("/charts/{name}"):
        charts = {"break-even": "break_even", "sensitivity": "tornado"}
        path = path.replace("{name}", charts.get(path.split("/")[3], "self_host_vs_api"))
    return client.open(path, method=method, json=body, headers=headers)


@pytest.mark.parametrize(("name", "title"), EXAMPLES)
def test_an_example_works_when_pasted_and_its_answer_is_as_described(
    client: FlaskClient, name: str, title: str
):
    operation = OPERATIONS[name][2]
    described = body_of(operation)
    body = described["examples"][title]["value"]
    schema = described["schema"] | {"components": SPEC["components"]}
    Draft202012Validator(schema).validate(body)
    response = send(client, name, body)
    assert response.status_code in (200, 201, 202), response.text
    assert str(response.status_code) in operation["responses"]
    assert_described(response.get_json(), operation, response.status_code)


@pytest.mark.parametrize(
    "name",
    [n for n, (path, method, _) in OPERATIONS.items() if method == "get" and "{" not in path],
)
def test_what_is_read_is_as_described(client: FlaskClient, name: str):
    path, _, operation = OPERATIONS[name]
    for example in body_of(OPERATIONS["create_plan"][2])["examples"].values():
        client.post("/v1/plans", json=example["value"])
    query = "?limit=200" if "ETag" in operation["responses"]["200"].get("headers", ()) else ""
    response = client.get(path + query)
    assert response.status_code == 200
    if name != "get_metrics" and name not in FILES:
        assert_described(response.get_json(), operation, 200)


SITUATIONS: dict[str, dict[str, Any]] = {
    "open, several devices": {"hardware": ["h100-sxm-80gb", "mi300x", "l4"]},
    "overloaded": {"workload": {"request_rate_per_s": 500}, "limits": {"replicas": [1]}},
    "too big": {
        "model": "meta-llama-3.1-405b",
        "hardware": ["l4"],
        "limits": {"max_accelerators": 1},
    },
    "closed": {"workload": {"concurrency": 16}},
    "burst": {"workload": {"concurrency": 16, "start": "burst"}},
    "verified": {"slo": {"ttft_p95_ms": 1000}, "verify": True},
    "verified, overloaded": {
        "workload": {"request_rate_per_s": 500},
        "limits": {"replicas": [1]},
        "verify": True,
    },
    "saturated": {"workload": {"saturate": True}, "objective": "throughput"},
    "experts": {"model": "qwen3-30b-a3b", "objective": "latency"},
    "impossible SLO": {"slo": {"ttft_p95_ms": 0.001}},
    "balanced": {"objective": "balanced", "workload": {"request_rate_per_s": 20}},
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_plan_of_any_outcome_is_as_described(client: FlaskClient, situation: str):
    body = {"model": "meta-llama-3.1-8b", "hardware": ["h100-sxm-80gb"]} | SITUATIONS[situation]
    load = body.get("workload") or {"request_rate_per_s": 2}
    body["workload"] = {"input_tokens": 1000, "output_tokens": {"mean": 200, "p95": 400}} | load
    response = client.post("/v1/plans", json=body)
    assert response.status_code == 201, response.text
    assert_described(response.get_json(), OPERATIONS["create_plan"][2], 201)


@pytest.mark.parametrize("document", hardware_documents(), ids=lambda d: d["name"])
def test_the_catalogue_s_hardware_is_what_the_contract_takes(document: dict[str, Any]):
    assert HardwareProfileBody().load(document) == document
