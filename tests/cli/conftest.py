from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from advisor.cli import main
from tests.web.fixtures import _catalogued_sqlite, shared_client

__all__ = ["_catalogued_sqlite", "shared_client"]

Run = Callable[..., Result]


@pytest.fixture
def advisor(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `advisor` with arguments, in an environment that sets nothing but what is given."""
    for variable in [name for name in os.environ if name.startswith("ADVISOR_")]:
        monkeypatch.delenv(variable)

    def run(*arguments: str, stdin: str | None = None, columns: int = 100, **env: str) -> Result:
        # What is no message for the user passes through, and fails the test with its traceback.
        return CliRunner().invoke(
            main, arguments, stdin, {"COLUMNS": str(columns), **env}, catch_exceptions=False
        )

    return run
