"""A database that goes away under load, and comes back."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from advisor.store.migrate import upgrade
from tests.chaos.clients import CHECKS, CLIENTS, Clients
from tests.postgres import PostgreSQL, postgresql_server
from tests.servers import Refused, Server, running, wait_until


@pytest.fixture
def postgresql() -> Iterator[PostgreSQL]:
    """A server of one's own, to stop."""
    with postgresql_server(durable=True) as server:
        yield server


def problem(server: Server, path: str) -> tuple[int, dict[str, Any]]:
    with pytest.raises(Refused) as refused:
        server.get(path)
    return refused.value.status, refused.value.problem


def test_a_restart_of_postgresql_under_load_loses_and_doubles_nothing(
    postgresql: PostgreSQL, tmp_path: Path
) -> None:
    url = postgresql.url.format(database="postgres")
    upgrade(url)
    with running(url, tmp_path, {"ADVISOR_AUTHENTICATION": "off"}) as server:
        clients = Clients(server)
        clients.start()
        for _ in range(2):
            before = len(clients.answers)
            wait_until(lambda: len(clients.answers) > before + 20)  # noqa: B023
            postgresql.stop()
            failed = len(clients.failures)
            wait_until(lambda: len(clients.failures) > failed + CLIENTS)  # noqa: B023
            assert problem(server, "/readyz")[0] == 503
            assert json.loads(server.get("/healthz"))["status"] == "ok"
            postgresql.start()
            returned, before = time.monotonic(), len(clients.answers)
            wait_until(lambda: len(clients.answers) > before)  # noqa: B023
            assert time.monotonic() - returned < 1.5
        clients.stop()
        assert json.loads(server.get("/readyz"))["status"] == "ready"
        for error in clients.failures.values():
            assert error.status == 503
            assert error.headers["Content-Type"] == "application/problem+json"
            assert int(error.headers["Retry-After"]) >= 1
        assert clients.lost == {}
        assert clients.slowest_failure_s < 2.5 + 1  # this machine's own delays
        for key, answer in clients.answers.items():
            assert clients.send(key) == answer
        again = {key: clients.send(key) for key in clients.failures}
        ids = {answer["id"] for answer in (*clients.answers.values(), *again.values())}
        assert len(ids) == len(clients.answers) + len(clients.failures)
        for answer in clients.answers.values():
            assert json.loads(server.get(f"{CHECKS}/{answer['id']}")) == answer
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        for table in ("terminology_checks", "idempotency_keys"):
            assert connection.scalar(sa.text(f"SELECT count(*) FROM {table}")) == len(ids)
    engine.dispose()
