"""A database that goes away under load, and comes back."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from advisor.store.engine import make_engine, session_factory, unit_of_work
from advisor.store.errors import DatabaseUnavailable
from advisor.store.migrate import upgrade
from tests.chaos.clients import BODY, CHECKS, CLIENTS, Clients
from tests.postgres import PostgreSQL, postgresql_server
from tests.servers import Refused, Server, running, wait_until
from tests.web.fixtures import running_app


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


def test_a_standby_answers_reads_and_takes_writes_once_it_is_promoted(
    postgresql: PostgreSQL,
) -> None:
    url = postgresql.url.format(database="postgres")
    upgrade(url)
    for app in running_app(url, log_level="CRITICAL"):
        client = app.test_client()
        assert client.post(CHECKS, json=BODY).status_code == 201
        postgresql.stop()
        postgresql.follow()
        postgresql.start()
        # It says that it has started before it has recovered so far as to answer.
        wait_until(lambda: client.get("/v1/plans").status_code == 200)  # noqa: B023
        for _ in range(2):
            assert client.get("/v1/plans").status_code == 200
            for headers in ({}, {"Idempotency-Key": "one"}):
                refused = client.post(CHECKS, json=BODY, headers=headers)
                assert refused.status_code == 503
                assert "Retry-After" in refused.headers
        postgresql.promote()
        wait_until(lambda: client.post(CHECKS, json=BODY).status_code == 201)  # noqa: B023


def test_a_server_that_freezes_is_given_up_and_found_again(postgresql: PostgreSQL) -> None:
    engine = make_engine(postgresql.url.format(database="postgres"), timeout_ms=200)
    factory = session_factory(engine)
    with pytest.raises(DatabaseUnavailable), unit_of_work(factory) as session:
        session.execute(sa.text("SELECT 1"))
        with postgresql.frozen():
            began = time.monotonic()
            try:
                session.execute(sa.text("SELECT 1"))
            finally:
                waited_s = time.monotonic() - began
    assert waited_s < 2.5
    for _ in range(2):
        with unit_of_work(factory) as session:
            pid = session.scalar(sa.text("SELECT pg_backend_pid()"))
    # What the server itself has refused costs no connection.
    with pytest.raises(DatabaseUnavailable), unit_of_work(factory) as session:
        session.execute(sa.text("SELECT pg_sleep(1)"))
    with unit_of_work(factory) as session:
        assert session.scalar(sa.text("SELECT pg_backend_pid()")) == pid
    engine.dispose()
