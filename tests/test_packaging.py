from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import grimp
import kubernetes_validate
import pytest
import yaml

import advisor
from advisor.config import Settings, variable_name

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
LOCK_FILES = ["requirements.lock", "requirements-image.lock", "requirements-dev.lock"]


def read(name: str) -> str:
    return (ROOT / name).read_text()


def locked(name: str) -> dict[str, list[str]]:
    """Each line `package==version ; marker` of a lock file with its hashes."""
    entries: dict[str, list[str]] = {}
    for line in read(name).replace("\\\n", "").splitlines():
        if not line.startswith("#"):
            requirement, *hashes = line.split("--hash=sha256:")
            entries[requirement.strip()] = [each.strip() for each in hashes]
    return entries


def package_names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[=<>~! ;]", each, maxsplit=1)[0] for each in requirements}


@pytest.mark.parametrize("name", LOCK_FILES)
def test_every_locked_package_has_its_version_and_hashes(name: str):
    entries = locked(name)
    assert len(entries) > 20
    for requirement, hashes in entries.items():
        assert re.match(r"[a-z0-9-]+==[0-9]", requirement)
        assert hashes
        assert all(re.fullmatch(r"[0-9a-f]{64}", each) for each in hashes)


@pytest.mark.parametrize("name", LOCK_FILES)
def test_lock_files_say_nothing_of_where_packages_are_downloaded(name: str):
    assert not re.search(r"://|index|find-links|trusted-host| @ ", read(name))


def test_the_tests_run_on_the_very_versions_that_are_served():
    image = locked("requirements-image.lock").items()
    assert locked("requirements.lock").items() <= image <= locked("requirements-dev.lock").items()


def test_the_lock_files_hold_all_that_pyproject_asks_for():
    groups = PROJECT["dependency-groups"]
    served = package_names(PROJECT["project"]["dependencies"] + groups["build"])
    assert served <= package_names(list(locked("requirements.lock")))
    extras = {p for each in PROJECT["project"]["optional-dependencies"].values() for p in each}
    assert package_names(list(extras)) <= package_names(list(locked("requirements-image.lock")))
    assert package_names(groups["dev"]) <= package_names(list(locked("requirements-dev.lock")))


def test_the_core_imports_numpy_and_the_standard_library_only():
    graph = grimp.build_graph("advisor", include_external_packages=True, cache_dir=None)
    core = {"advisor.core"} | graph.find_descendants("advisor.core")
    imported = {
        name.split(".")[0]
        for module in core
        for name in graph.find_modules_directly_imported_by(module)
    }
    assert imported - sys.stdlib_module_names <= {"advisor", "numpy"}


def test_the_example_environment_lists_every_setting_with_its_default():
    listed = dict(re.findall(r"^#(ADVISOR_\w+)=(.*)$", read(".env.example"), re.MULTILINE))
    defaults = {variable_name(f): str(f.default) for f in fields(Settings)}
    assert listed == defaults


def test_the_compose_file_is_valid():
    checker = [str(BIN / "check-jsonschema"), "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run([*checker, str(ROOT / "docker-compose.yml")], capture_output=True)
    assert done.returncode == 0, done.stdout.decode()


def test_compose_sets_only_settings_that_there_are():
    for service in ("migrate", "advisor", "worker"):
        environment = COMPOSE["services"][service]["environment"]
        ours = {name: value for name, value in environment.items() if name.startswith("ADVISOR_")}
        assert Settings.from_environment(ours).database_url.startswith("postgresql")


def test_compose_serves_only_once_the_database_is_healthy_and_migrated():
    services = COMPOSE["services"]
    assert "healthcheck" in services["database"]
    assert services["migrate"]["depends_on"] == {"database": {"condition": "service_healthy"}}
    migrated = {"migrate": {"condition": "service_completed_successfully"}}
    assert services["advisor"]["depends_on"] == services["worker"]["depends_on"] == migrated


def test_the_dockerfile_passes_its_linter():
    done = subprocess.run([str(BIN / "hadolint"), str(ROOT / "Dockerfile")], capture_output=True)
    assert done.returncode == 0, done.stdout.decode()


def test_the_image_does_not_run_as_root():
    users = re.findall(r"^USER (.*)$", read("Dockerfile"), re.MULTILINE)
    assert users
    assert users[-1] not in ("root", "0")


@contextmanager
def server_answering(status: int) -> Iterator[int]:
    """A server on a free port of 127.0.0.1 that answers `status` to /healthz."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/healthz" else 404)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def image_is_healthy(port: int) -> bool:
    """Run the image's own health check against a port."""
    found = re.search(r"HEALTHCHECK (?:.*\\\n)*\s*CMD (\[.*\])", read("Dockerfile"))
    assert found
    program, *arguments = json.loads(found[1])
    assert program == "python"
    # A proxy that is named in the environment must not come between.
    environment = os.environ | {"ADVISOR_PORT": str(port), "http_proxy": "http://127.0.0.1:9"}
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True)
    return done.returncode == 0


def test_the_image_is_healthy_only_while_the_service_answers_200():
    with server_answering(200) as port:
        assert image_is_healthy(port)
    assert not image_is_healthy(port)
    with server_answering(503) as port:
        assert not image_is_healthy(port)


def test_the_image_starts_the_server_with_this_projects_configuration(tmp_path: Path):
    found = re.search(r"^CMD (\[.*\])$", read("Dockerfile"), re.MULTILINE)
    assert found
    program, *arguments = json.loads(found[1])
    # gunicorn reads the configuration, imports the application, and ends.
    done = subprocess.run(
        [str(BIN / program), *arguments, "--check-config"],
        env=os.environ | {"ADVISOR_DATA_DIR": str(tmp_path)},
        cwd=ROOT,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr.decode()


MANIFEST = {
    f"{each['kind']} {each['metadata']['name']}": each
    for each in yaml.safe_load_all(read("deploy/kubernetes.yaml"))
    if each
}
PODS = ("Job advisor-migrate", "Deployment advisor", "Deployment advisor-worker")


def containers() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The one container of each pod, with the pod."""
    pods = [MANIFEST[each]["spec"]["template"]["spec"] for each in PODS]
    return [(pod, container) for pod in pods for container in pod["containers"]]


@pytest.mark.parametrize("name", MANIFEST)
def test_the_manifest_is_what_kubernetes_takes(name: str):
    kubernetes_validate.validate(MANIFEST[name], "1.32", strict=True)


def test_the_manifest_sets_only_settings_that_there_are():
    settings = dict(MANIFEST["ConfigMap advisor"]["data"])
    for _, container in containers():
        assert container["envFrom"] == [{"configMapRef": {"name": "advisor"}}]
        # A secret's value is not there.
        own = {each["name"]: each.get("value", "x") for each in container["env"]}
        given = Settings.from_environment(settings | own)
        assert given.database_url.startswith("postgresql")
        assert given.requires_keys


def test_the_manifest_runs_the_image_of_this_version_without_privileges():
    for pod, container in containers():
        assert container["image"] == f"inference-advisor:{advisor.__version__}"
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
        assert str(pod["securityContext"]["runAsUser"]) == re.findall(
            r"^USER (.*)$", read("Dockerfile"), re.MULTILINE
        )[-1]  # fmt: skip
        privileges = container["securityContext"]
        assert privileges["allowPrivilegeEscalation"] is False
        assert privileges["readOnlyRootFilesystem"] is True


def test_the_manifest_probes_what_the_service_answers():
    (container,) = [each for _, each in containers() if each["name"] == "advisor"]
    probes = {
        name: container[f"{name}Probe"]["httpGet"]["path"]
        for name in ("startup", "liveness", "readiness")
    }
    assert probes == {"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"}
    assert container["ports"] == [{"name": "http", "containerPort": Settings().port}]
    pods = MANIFEST["Deployment advisor"]["spec"]["template"]["metadata"]["labels"]
    for kind in ("Service", "PodDisruptionBudget"):
        selector = MANIFEST[f"{kind} advisor"]["spec"]["selector"]
        assert selector.get("matchLabels", selector).items() <= pods.items()


def test_the_migration_is_the_one_of_the_compose_file():
    (_, container), *_ = containers()
    assert container["command"] == COMPOSE["services"]["migrate"]["command"]


def test_workers_are_the_same_in_the_manifest_and_the_compose_file():
    (container,) = [each for _, each in containers() if each["name"] == "worker"]
    assert container["command"] == COMPOSE["services"]["worker"]["command"]
    port = container["ports"][0]["containerPort"]
    assert {"name": "ADVISOR_WORKER_METRICS_PORT", "value": str(port)} in container["env"]
    (deployment,) = [MANIFEST[each] for each in PODS if each.endswith("worker")]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == labels
    # The service's addresses lead to no worker.
    assert not MANIFEST["Service advisor"]["spec"]["selector"].items() <= labels.items()
