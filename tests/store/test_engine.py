from __future__ import annotations

import socket
import sqlite3
import time

import pytest
from sqlalchemy import insert, select, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from advisor.store.engine import make_engine, session_factory, unit_of_work
from advisor.store.errors import DatabaseUnavailable
from advisor.store.tables import HardwareProfileRow
from tests.store.samples import outcomes_at_once

NAMES = select(HardwareProfileRow.name)
INSERT = text(
    "INSERT INTO hardware_profiles (name, vendor, document, version, origin, catalogued, deleted,"
    " created_at, updated_at) VALUES (:name, 'nvidia', '{}', :version, 'user', false, false,"
    " '2026-01-01', '2026-01-01')"
)


def add(session, name="h100", version=1):
    session.execute(INSERT, {"name": name, "version": version})


def test_a_unit_of_work_is_kept_when_its_block_ends(session_factory):
    with unit_of_work(session_factory) as session:
        add(session)
    with unit_of_work(session_factory, read_only=True) as session:
        assert session.scalars(NAMES).all() == ["h100"]


def test_a_unit_of_work_is_undone_when_its_block_raises(session_factory):
    def fail():
        with unit_of_work(session_factory) as session:
            add(session)
            raise KeyError("of the caller")

    with pytest.raises(KeyError, match="of the caller"):
        fail()
    with unit_of_work(session_factory) as session:
        assert session.scalars(NAMES).all() == []


def test_a_savepoint_undoes_only_what_came_after_it(session_factory):
    with unit_of_work(session_factory) as session:
        add(session, "before")
        with pytest.raises(IntegrityError), session.begin_nested():
            add(session, "within")
            add(session, "before")
        add(session, "after")
    with unit_of_work(session_factory) as session:
        assert set(session.scalars(NAMES)) == {"before", "after"}


@pytest.mark.parametrize("broken", [{"name": "x", "version": 0}, {"name": "", "version": 1}])
def test_a_broken_constraint_is_no_outage(session_factory, broken):
    with pytest.raises(IntegrityError), unit_of_work(session_factory) as session:
        add(session, **broken)


def test_a_faulty_statement_is_no_outage(session_factory):
    with pytest.raises(DBAPIError), unit_of_work(session_factory) as session:
        session.execute(text("SELECT * FROM no_such_table"))


def test_a_pool_without_a_free_connection_is_an_outage(database_url):
    engine = make_engine(database_url, pool_size=1, timeout_ms=100)
    with (
        engine.connect(),
        pytest.raises(DatabaseUnavailable),
        unit_of_work(session_factory(engine), read_only=True) as session,
    ):
        session.scalar(NAMES)
    engine.dispose()


def test_a_lock_that_is_not_given_up_in_time_is_an_outage(database_url):
    engine = make_engine(database_url, timeout_ms=200)
    factory = session_factory(engine)
    with unit_of_work(factory) as session:
        add(session)
    began = time.monotonic()
    with engine.begin() as holder:
        holder.execute(text("UPDATE hardware_profiles SET version = 2"))
        with pytest.raises(DatabaseUnavailable), unit_of_work(factory) as session:
            session.execute(text("UPDATE hardware_profiles SET version = 3"))
    assert 0.2 <= time.monotonic() - began < 2
    with unit_of_work(factory) as session:
        assert session.scalar(select(HardwareProfileRow.version)) == 2
    engine.dispose()


def test_readers_do_not_wait_for_a_writer(engine, session_factory):
    with engine.begin() as writer:
        writer.execute(INSERT, {"name": "unseen", "version": 1})
        began = time.monotonic()
        with unit_of_work(session_factory, read_only=True) as session:
            assert session.scalars(NAMES).all() == []
        assert time.monotonic() - began < 1


def test_fifty_threads_that_read_and_then_write_all_succeed(session_factory):
    def count_up(index):
        with unit_of_work(session_factory) as session:
            number = len(session.scalars(NAMES).all())
            add(session, f"{index}-after-{number}")

    assert outcomes_at_once(50, count_up) == {"done": 50}


def test_json_that_is_no_json_is_refused_on_both_databases(session_factory):
    row = {"name": "x", "document": {"tdp_w": float("nan")}}
    with (
        pytest.raises(Exception, match="not JSON compliant"),
        unit_of_work(session_factory) as session,
    ):
        session.execute(insert(HardwareProfileRow).values(row))


def test_a_missing_directory_is_an_outage(tmp_path):
    engine = make_engine(f"sqlite:///{tmp_path}/nowhere/advisor.sqlite3")
    with pytest.raises(DatabaseUnavailable), unit_of_work(session_factory(engine)) as session:
        session.scalar(text("SELECT 1"))


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://localhost/advisor"])
def test_a_database_that_cannot_serve_is_refused(url):
    with pytest.raises(ValueError, match=r"must be a file|not supported"):
        make_engine(url)


def test_sqlite_keeps_a_write_ahead_log_and_checks_references(sqlite_url):
    engine = make_engine(sqlite_url)
    with engine.connect() as connection:
        assert connection.scalar(text("PRAGMA journal_mode")) == "wal"
        assert connection.scalar(text("PRAGMA foreign_keys")) == 1
    engine.dispose()


def test_many_threads_may_open_a_new_sqlite_file_at_once(tmp_path):
    def first_use(_index):
        engine = make_engine(f"sqlite:///{tmp_path}/new.sqlite3")
        with unit_of_work(session_factory(engine)) as session:
            session.scalar(text("SELECT 1"))
        engine.dispose()

    assert outcomes_at_once(20, first_use) == {"done": 20}


def test_a_file_that_is_no_database_is_not_taken_for_an_outage(tmp_path):
    path = tmp_path / "text.sqlite3"
    path.write_text("not a database " * 100)
    engine = make_engine(f"sqlite:///{path}")
    with (
        pytest.raises((DBAPIError, sqlite3.DatabaseError), match="not a database"),
        unit_of_work(session_factory(engine)) as session,
    ):
        session.scalar(text("SELECT 1"))
    engine.dispose()


def test_postgresql_refuses_a_write_in_a_reading_unit_of_work(postgresql_url):
    engine = make_engine(postgresql_url)
    factory = session_factory(engine)
    with (
        pytest.raises(DBAPIError, match="read-only transaction"),
        unit_of_work(factory, read_only=True) as session,
    ):
        add(session)
    with unit_of_work(factory) as session:
        add(session)
    engine.dispose()


def test_a_slow_postgresql_statement_is_an_outage(postgresql_url):
    engine = make_engine(postgresql_url, timeout_ms=100)
    with pytest.raises(DatabaseUnavailable), unit_of_work(session_factory(engine)) as session:
        session.execute(text("SELECT pg_sleep(10)"))
    engine.dispose()


def test_options_in_a_postgresql_url_are_kept_beside_our_own(postgresql_url):
    engine = make_engine(f"{postgresql_url}&options=-c%20search_path%3Dpg_catalog", timeout_ms=700)
    with engine.connect() as connection:
        assert connection.scalar(text("SHOW search_path")) == "pg_catalog"
        assert connection.scalar(text("SHOW statement_timeout")) == "700ms"
    engine.dispose()


def terminate_others(session):
    session.execute(
        text(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    )


def test_connections_that_died_while_pooled_are_replaced_unnoticed(postgresql_url):
    engine, other = make_engine(postgresql_url), make_engine(postgresql_url)
    for _ in range(2):
        with unit_of_work(session_factory(engine)) as session:
            assert session.scalars(NAMES).all() == []
        with unit_of_work(session_factory(other)) as session:
            terminate_others(session)
    engine.dispose()
    other.dispose()


def test_a_connection_that_dies_in_use_is_an_outage(postgresql_url):
    engine, other = make_engine(postgresql_url), make_engine(postgresql_url)
    with pytest.raises(DatabaseUnavailable), unit_of_work(session_factory(engine)) as session:
        add(session)
        with unit_of_work(session_factory(other)) as killer:
            terminate_others(killer)
        session.scalar(NAMES)
    with unit_of_work(session_factory(engine)) as session:
        assert session.scalars(NAMES).all() == []
    engine.dispose()
    other.dispose()


def test_a_server_that_refuses_connections_is_an_outage_at_once(tmp_path):
    engine = make_engine(f"postgresql://postgres@/postgres?host={tmp_path}")
    began = time.monotonic()
    with pytest.raises(DatabaseUnavailable), unit_of_work(session_factory(engine)) as session:
        session.scalar(text("SELECT 1"))
    assert time.monotonic() - began < 1


def test_a_server_that_never_answers_is_an_outage_within_two_and_a_half_seconds():
    with socket.create_server(("127.0.0.1", 0)) as server:
        engine = make_engine(
            f"postgresql://u@127.0.0.1:{server.getsockname()[1]}/d?sslmode=disable"
        )
        began = time.monotonic()
        with pytest.raises(DatabaseUnavailable), unit_of_work(session_factory(engine)) as session:
            session.scalar(text("SELECT 1"))
        assert time.monotonic() - began < 2.5
    engine.dispose()
