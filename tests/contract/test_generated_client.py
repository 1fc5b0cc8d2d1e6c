"""A client that a public generator makes of openapi.yaml, against the application."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from flask import Flask

from advisor.service.keys import Keys
from tests.web import bodies
from tests.web.fixtures import running_app

ROOT = Path(__file__).parents[2]
PACKAGE = "generated_advisor"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of the generated package, which can be imported."""
    directory = tmp_path_factory.mktemp("client")
    config = directory / "config.yaml"
    # Without hooks: formatting what nobody reads takes most of the time.
    config.write_text(f"package_name_override: {PACKAGE}\npost_hooks: []\n")
    done = subprocess.run(
        [
            Path(sys.executable).parent / "openapi-python-client", "generate", "--meta", "none",
            "--path", ROOT / "openapi.yaml", "--config", config,
            "--output-path", directory / PACKAGE,
        ],
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    sys.path.insert(0, str(directory))
    yield PACKAGE
    sys.path.remove(str(directory))


@pytest.fixture
def app(catalogued_url: str) -> Iterator[Flask]:
    yield from running_app(catalogued_url, authentication="required")


@pytest.fixture
def client(app: Flask, package: str) -> Any:
    """The generated client with a key, over the application itself."""
    module = importlib.import_module(f"{package}.client")
    key = Keys(app.extensions["advisor-database"], "").create("client", "admin")
    made = module.AuthenticatedClient(base_url="http://advisor", token=key)
    transport = httpx.WSGITransport(app=app)
    headers = {"Authorization": f"Bearer {key}"}
    return made.set_httpx_client(
        httpx.Client(transport=transport, base_url="http://advisor", headers=headers)
    )


def operation(package: str, tag: str, name: str) -> Any:
    return importlib.import_module(f"{package}.api.{tag}.{name}")


def model(package: str, name: str) -> Any:
    return getattr(importlib.import_module(f"{package}.models"), name)


def test_every_json_operation_has_a_function(package: str, app: Flask):
    document = app.test_client().get("/openapi.json").get_json()
    for item in document["paths"].values():
        for described in (each for method, each in item.items() if method != "parameters"):
            files = described.get("requestBody", {}).get("content", {}).keys() - {
                "application/json"
            }
            if not files:
                tag = described["tags"][0].replace(" ", "_")
                assert operation(package, tag, described["operationId"]).sync_detailed


def test_profiles_are_created_changed_and_deleted_by_it(package: str, client: Any):
    body = model(package, "HardwareProfile").from_dict(bodies.HARDWARE)
    created = operation(package, "hardware_profiles", "create_hardware_profile").sync_detailed(
        client=client, body=body
    )
    assert created.status_code == 201
    assert created.parsed.name == "my-h100"
    replace = operation(package, "hardware_profiles", "replace_hardware_profile").sync_detailed
    stale = replace(name="my-h100", client=client, body=body, if_match='"7"')
    assert stale.status_code == 412
    assert "ETag is now" in stale.parsed.detail
    tag = created.headers["ETag"]
    assert replace(name="my-h100", client=client, body=body, if_match=tag).status_code == 200
    listed = operation(package, "hardware_profiles", "list_hardware_profiles").sync(
        client=client, limit=200
    )
    assert "my-h100" in [each.name for each in listed.items]


def test_a_plan_is_made_and_read_by_it(package: str, client: Any, app: Flask):
    example = app.test_client().get("/openapi.json").get_json()["paths"]["/v1/plans"]["post"]
    examples = example["requestBody"]["content"]["application/json"]["examples"]
    for each in examples.values():
        body = model(package, "Plan").from_dict(each["value"])
        created = operation(package, "plans", "create_plan").sync(client=client, body=body)
        assert created.recommended.accelerators >= 1
        read = operation(package, "plans", "get_plan").sync(plan_id=created.id, client=client)
        assert read.to_dict() == created.to_dict()


def test_without_a_key_it_gets_a_problem(package: str, app: Flask):
    module = importlib.import_module(f"{package}.client")
    bare = module.Client(base_url="http://advisor")
    bare.set_httpx_client(
        httpx.Client(transport=httpx.WSGITransport(app=app), base_url="http://advisor")
    )
    answer = operation(package, "plans", "list_plans").sync_detailed(client=bare)
    assert answer.status_code == 401
    assert answer.parsed.status == 401
