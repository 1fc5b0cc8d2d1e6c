"""`advisor serve`, as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from advisor.catalog.loader import hardware_documents
from tests.cli.conftest import Run


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def get(port: int, path: str) -> Any:
    with urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        return json.load(answer)


@contextmanager
def serving(
    directory: Path, port: int, *arguments: str, explorer: str = "on"
) -> Iterator[subprocess.Popen[str]]:
    """The service on an embedded database in `directory`, once it answers."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("ADVISOR_")}
    ours = {"ADVISOR_DATA_DIR": str(directory), "ADVISOR_PORT": str(port), "ADVISOR_WORKERS": "1",
            "ADVISOR_EXPLORER": explorer}  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "advisor", "serve", *arguments],
        env=kept | ours | {"COLUMNS": "100"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                get(port, "/healthz")
                break
            except OSError:
                assert process.poll() is None, "the service ended"
                assert time.monotonic() < deadline, "the service does not answer"
                time.sleep(0.1)
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def ended(process: subprocess.Popen[str], by: signal.Signals) -> tuple[int, str]:
    """The exit status and everything that was printed, after a signal."""
    process.send_signal(by)
    printed, _ = process.communicate(timeout=60)
    return process.returncode, printed


def test_it_serves_the_catalogue_from_an_empty_directory_and_ends_at_a_signal(tmp_path: Path):
    devices, port = len(hardware_documents()), free_port()
    with serving(tmp_path / "data", port) as process:
        assert get(port, "/readyz")
        page = get(port, "/v1/hardware-profiles?limit=200")
        assert len(page["items"]) == devices
        status, printed = ended(process, signal.SIGTERM)
    assert status == 0
    assert f"Catalogue, hardware: {devices} added" in printed
    assert "* h100-sxm-80gb " in printed
    assert "Recommended: 1 replica x TP2 on 2 x h100-sxm-80gb" in printed
    address = f"http://127.0.0.1:{port}"
    assert f"\nExplorer: {address}/explorer/\nDocumentation: {address}/docs\n" in printed

    with serving(tmp_path / "data", port, "--no-sample", explorer="off") as process:
        status, printed = ended(process, signal.SIGINT)
    assert status == 0
    assert f"Catalogue, hardware: 0 added, 0 updated, {devices} kept" in printed
    assert "Recommended" not in printed
    assert "Explorer" not in printed


@pytest.fixture
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that starts after all fails the test, instead of taking the place of all tests."""

    def refuse(*command: object) -> None:
        raise AssertionError(command)

    monkeypatch.setattr("os.execv", refuse)


@pytest.mark.usefixtures("no_server")
def test_a_port_in_use_is_told_before_anything_else_happens(advisor: Run, tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        directory = tmp_path / "data"
        result = advisor("serve", ADVISOR_PORT=str(port), ADVISOR_DATA_DIR=str(directory))
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr == (
        f"Error: Port {port} of 127.0.0.1 is in use. Choose another: ADVISOR_PORT={port + 1}\n"
    )
    assert not directory.exists()


@pytest.mark.usefixtures("no_server")
def test_pages_without_their_libraries_are_refused_before_anything_else_happens(
    advisor: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("advisor.web.explorer.is_installed", lambda: False)
    directory = tmp_path / "data"
    result = advisor("serve", ADVISOR_EXPLORER="on", ADVISOR_DATA_DIR=str(directory))
    assert result.exit_code == 2
    assert "pip install 'inference-advisor[explorer]'" in result.stderr
    assert not directory.exists()


@pytest.mark.usefixtures("no_server")
@pytest.mark.parametrize("host", ["203.0.113.1", "::gg"])
def test_an_address_that_is_not_this_machines_is_refused(advisor: Run, tmp_path: Path, host: str):
    result = advisor("serve", ADVISOR_HOST=host, ADVISOR_DATA_DIR=str(tmp_path / "data"))
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: ADVISOR_HOST={host} ADVISOR_PORT=8000: ")
    assert result.stdout == ""
