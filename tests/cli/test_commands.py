"""The commands around the service: its database, its catalogue, its description."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import advisor as package
from advisor.catalog.loader import hardware_documents, model_documents
from advisor.service.database import Database
from advisor.service.profiles import HARDWARE
from tests.cli.conftest import Run

H100 = "h100-sxm-80gb"


def test_the_version_is_the_packages(advisor: Run):
    assert advisor("--version").stdout == f"advisor {package.__version__}\n"


def test_the_package_runs_as_a_module(tmp_path: Path):
    command = [sys.executable, "-m", "advisor", "--version"]
    done = subprocess.run(command, capture_output=True, check=True)
    assert done.stdout.decode() == f"advisor {package.__version__}\n"


@pytest.mark.parametrize(
    "command", ["plan", "allocate", "serve", "catalog", "db", "keys", "openapi", "lint"]
)
def test_every_command_has_help(advisor: Run, command: str):
    result = advisor(command, "-h")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: main {command}")


def test_a_database_is_migrated_up_and_down(advisor: Run, unmigrated_url: str):
    env = {"ADVISOR_DATABASE_URL": unmigrated_url}
    before = advisor("db", "current", **env)
    assert (before.exit_code, before.stdout) == (1, "")
    assert "advisor db upgrade" in before.stderr
    newest = "The database has the newest schema.\n"
    assert advisor("db", "upgrade", **env).stdout == newest
    assert advisor("db", "current", **env).stdout == newest
    assert advisor("db", "downgrade", "base", **env).exit_code == 0
    assert advisor("db", "current", **env).exit_code == 1


def test_a_revision_that_does_not_exist_changes_nothing(advisor: Run, sqlite_url: str):
    env = {"ADVISOR_DATABASE_URL": sqlite_url}
    result = advisor("db", "downgrade", "nonsense", **env)
    assert result.exit_code == 1
    assert "'nonsense'" in result.stderr
    assert advisor("db", "current", **env).exit_code == 0


def test_the_directory_of_the_embedded_database_is_made(advisor: Run, tmp_path: Path):
    directory = tmp_path / "new" / "data"
    assert advisor("db", "upgrade", ADVISOR_DATA_DIR=str(directory)).exit_code == 0
    assert (directory / "advisor.sqlite3").is_file()


def test_a_directory_that_cannot_be_made_is_named(advisor: Run, tmp_path: Path):
    (tmp_path / "file").touch()
    result = advisor("db", "upgrade", ADVISOR_DATA_DIR=str(tmp_path / "file" / "data"))
    assert result.exit_code == 2
    assert result.stderr.startswith("ADVISOR_DATA_DIR: ")


@pytest.mark.parametrize(
    "command",
    [("db", "upgrade"), ("db", "current"), ("db", "downgrade", "base"), ("catalog", "load")],
    ids=" ".join,
)
def test_a_database_that_does_not_answer_ends_the_command_without_its_password(
    advisor: Run, command: tuple[str, ...]
):
    result = advisor(*command, ADVISOR_DATABASE_URL="postgresql://u:secret@127.0.0.1:1/x")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: The database cannot be used: connection failed")
    assert "secret" not in result.output


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "postgresql://u:p@h:secret/x"])
def test_an_address_that_is_no_database_is_refused_unrepeated(advisor: Run, url: str):
    result = advisor("db", "upgrade", ADVISOR_DATABASE_URL=url)
    assert result.exit_code == 2
    assert result.stderr.startswith("ADVISOR_DATABASE_URL: ")
    assert "secret" not in result.output


def test_a_misspelt_setting_stops_the_command(advisor: Run):
    result = advisor("db", "upgrade", ADVISOR_DATABASE_ULR="sqlite:///x")
    assert result.exit_code == 2
    assert "did you mean ADVISOR_DATABASE_URL?" in result.stderr


def test_loading_the_catalogue_says_what_became_of_it(advisor: Run, tmp_path: Path):
    env = {"ADVISOR_DATA_DIR": str(tmp_path)}
    devices, models = len(hardware_documents()), len(model_documents())
    assert advisor("catalog", "load", **env).stdout.splitlines() == [
        f"hardware: {devices} added, 0 updated, 0 kept, 0 deleted",
        f"models: {models} added, 0 updated, 0 kept, 0 deleted",
    ]
    database = Database(f"sqlite:///{tmp_path / 'advisor.sqlite3'}")
    document = HARDWARE.read(database, H100).document | {"description": "ours"}
    HARDWARE.replace(database, H100, document, 1)
    HARDWARE.delete(database, "mi300x", 1)
    assert advisor("catalog", "load", **env).stdout.splitlines() == [
        f"hardware: 0 added, 0 updated, {devices - 1} kept, 1 deleted",
        f"models: 0 added, 0 updated, {models} kept, 0 deleted",
    ]
    assert HARDWARE.read(database, H100).document["description"] == "ours"
    database.close()


def test_the_catalogue_lists_every_name(advisor: Run):
    both = advisor("catalog", "list").stdout
    hardware = advisor("catalog", "list", "hardware").stdout
    models = advisor("catalog", "list", "models").stdout
    first_words = [line.split()[0] for line in both.splitlines() if line]
    for document in hardware_documents():
        assert document["name"] in first_words
        assert document["name"] in hardware
        assert document["name"] not in models.split()
    for document in model_documents():
        assert document["name"] in first_words
        assert document["name"] in models
        assert document["name"] not in hardware


def test_the_catalogue_lists_figures_with_the_price_and_its_date(advisor: Run):
    (document,) = (d for d in hardware_documents() if d["name"] == H100)
    lines = advisor("catalog", "list", "hardware").stdout.splitlines()
    (row,) = (line.split() for line in lines if line.startswith(H100))
    price = document["price"]
    assert row[2:] == [
        *(f"{document[key]:g}" for key in ("memory_gib", "memory_bandwidth_gb_s")),
        *(f"{document['dense_tflops'][key]:g}" for key in ("bf16", "fp8")),
        price["amount_per_hour"],
        price["currency"],
        price["as_of"],
    ]
    models = advisor("catalog", "list", "models").stdout
    assert "bf16 70.6 69.5 131,072 327,680" in " ".join(models.split())


def test_the_description_is_checked_against_the_file(
    advisor: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    missing = advisor("openapi", "--check")
    assert missing.exit_code == 1
    assert "advisor openapi --write" in missing.stderr
    assert advisor("openapi", "--write").exit_code == 0
    assert advisor("openapi", "--check").output == ""
    written = Path("openapi.yaml").read_text()
    assert advisor("openapi").stdout == written
    Path("openapi.yaml").write_text(written.replace("/healthz", "/health"))
    changed = advisor("openapi", "--check")
    assert changed.exit_code == 1
    assert "-  /health:\n+  /healthz:\n" in changed.stderr


def test_the_description_is_an_openapi_document(advisor: Run):
    document = yaml.safe_load(advisor("openapi").stdout)
    assert document["openapi"] == "3.1.0"
    assert "/v1/plans" in document["paths"]


def test_checking_and_writing_exclude_each_other(advisor: Run):
    assert advisor("openapi", "--check", "--write").exit_code == 2
