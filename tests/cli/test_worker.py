"""`advisor worker`; `tests/jobs` has it at work."""

from __future__ import annotations

from tests.cli.conftest import Run


def test_on_sqlite_there_is_nothing_for_a_worker_to_do(advisor: Run, sqlite_url: str):
    done = advisor("worker", ADVISOR_DATABASE_URL=sqlite_url)
    assert done.exit_code == 1
    assert "On SQLite the service answers sweeps itself" in done.stderr
