from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from sqlalchemy import inspect, text

from advisor.store import allocations, checks, idempotency, keys, plans, sweeps
from advisor.store.engine import make_engine, unit_of_work
from advisor.store.engine import session_factory as sessions_on
from advisor.store.errors import DatabaseUnavailable
from advisor.store.migrate import LOCK_KEY, current_is_head, downgrade, migrating, upgrade
from advisor.store.profiles import hardware_profiles, model_profiles
from advisor.store.tables import Base
from tests.store.samples import hardware, model, outcomes_at_once

ROOT = Path(__file__).parents[2]


@pytest.fixture
def unmigrated(unmigrated_url):
    engine = make_engine(unmigrated_url)
    yield engine
    engine.dispose()


def fill(engine):
    """A row in every table."""
    now = datetime.now(UTC)
    with unit_of_work(sessions_on(engine)) as session:
        hardware_profiles.create(session, hardware("h100"))
        model_profiles.create(session, model("llama", "alias"))
        plans.add(session, plans.StoredPlan("1", now, "llama", "cost", "0.1", {}, "{}"))
        checks.add(session, checks.StoredCheck("1", now, {}, {}))
        allocations.add(
            session, allocations.StoredAllocation("1", now, "cost", "optimal", "0.1", {}, "{}")
        )
        sweep = sweeps.add(
            session,
            sweeps.StoredSweep("1", now, "0.1", 9, 0, True, None, None, "1", {}, {}, None),
        )
        sweeps.take_next(session, sweep, 5, now, now)
        claim = idempotency.Claim("ci", "1", "0" * 64)
        idempotency.claim(session, claim, now, now - timedelta(days=1))
        keys.add(session, keys.StoredKey("0" * 64, "ci", "read", now, None))


def row_counts(engine):
    with engine.connect() as connection:
        return {
            name: connection.scalar(sa.select(sa.func.count()).select_from(table))
            for name, table in Base.metadata.tables.items()
        }


def test_the_migrated_schema_is_the_one_that_the_code_declares(engine):
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []


def test_the_migrated_schema_has_the_declared_constraints(engine):
    # What `compare_metadata` does not look at.
    inspector = inspect(engine)
    for name, table in Base.metadata.tables.items():
        declared = {c.name for c in table.constraints if isinstance(c, sa.CheckConstraint)}
        assert {c["name"] for c in inspector.get_check_constraints(name)} == declared
        assert inspector.get_pk_constraint(name)["name"] == table.primary_key.name
        references = {c.name for c in table.foreign_key_constraints}
        assert {c["name"] for c in inspector.get_foreign_keys(name)} == references


def test_postgresql_sorts_keys_by_code_point_in_the_declared_and_the_migrated_schema(
    postgresql_url,
):
    engine = make_engine(postgresql_url)
    inspector = inspect(engine)
    for name, table in Base.metadata.tables.items():
        for column in inspector.get_columns(name):
            declared = table.c[column["name"]].type.dialect_impl(engine.dialect)
            expected = getattr(declared, "collation", None)
            assert getattr(column["type"], "collation", None) == expected, (name, column["name"])
    engine.dispose()


def test_an_empty_database_goes_up_down_and_up_again(unmigrated):
    assert not current_is_head(unmigrated)
    upgrade(unmigrated)
    assert current_is_head(unmigrated)
    downgrade(unmigrated, "base")
    assert not current_is_head(unmigrated)
    assert set(inspect(unmigrated).get_table_names()) <= {"alembic_version"}
    upgrade(unmigrated)
    assert current_is_head(unmigrated)


def test_a_database_with_data_goes_down_and_up_again(engine):
    fill(engine)
    downgrade(engine, "base")
    upgrade(engine)
    assert set(row_counts(engine).values()) == {0}
    fill(engine)
    assert all(row_counts(engine).values())


def test_upgrading_a_current_database_keeps_its_data(engine):
    fill(engine)
    before = row_counts(engine)
    upgrade(engine)
    assert row_counts(engine) == before
    assert all(before.values())


def test_names_of_models_become_lower_case_and_lose_none(engine):
    models = {"one": ["one", "ONE", "Other-One"], "two-2": ["two-2", "Two"]}
    with unit_of_work(sessions_on(engine)) as session:
        for name in models:
            model_profiles.create(session, model(name))
        session.execute(sa.delete(Base.metadata.tables["model_names"]))
        session.execute(
            sa.insert(Base.metadata.tables["model_names"]),
            [{"label": label, "model": m} for m, held in models.items() for label in held],
        )
    downgrade(engine, "0001")
    upgrade(engine)
    with unit_of_work(sessions_on(engine)) as session:
        assert model_profiles.names(session) == ["one", "other-one", "two", "two-2"]
        for name, held in models.items():
            assert {model_profiles.get(session, label).name for label in held} == {name}


def test_a_url_will_do_in_place_of_an_engine(unmigrated_url):
    upgrade(unmigrated_url)
    engine = make_engine(unmigrated_url)
    assert current_is_head(engine)
    downgrade(unmigrated_url, "base")
    assert not current_is_head(engine)
    engine.dispose()


def test_migrators_at_once_are_all_content(unmigrated_url):
    assert outcomes_at_once(4, lambda _: upgrade(unmigrated_url)) == {"done": 4}
    engine = make_engine(unmigrated_url)
    assert current_is_head(engine)
    engine.dispose()


def test_migrating_processes_at_once_are_all_content(unmigrated_url):
    program = "import sys; from advisor.store.migrate import upgrade; upgrade(sys.argv[1])"
    command = [sys.executable, "-c", program, unmigrated_url]
    started = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE) for _ in range(2)]
    for process in started:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors.decode()
    engine = make_engine(unmigrated_url)
    assert current_is_head(engine)
    fill(engine)
    engine.dispose()


def test_a_first_connection_waits_for_who_writes_the_new_file(tmp_path):
    """Until one has turned the file to write-ahead logging, a writer keeps others from it."""
    path = tmp_path / "new.db"
    writer = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    writer.execute("BEGIN IMMEDIATE")
    threading.Timer(0.3, writer.rollback).start()
    engine = make_engine(f"sqlite:///{path}", timeout_ms=10_000)
    with engine.connect() as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
    engine.dispose()
    writer.close()


def test_a_migrator_waits_for_another_one_beyond_the_time_a_request_may_take(postgresql_url):
    impatient, other = make_engine(postgresql_url, timeout_ms=100), make_engine(postgresql_url)
    with other.connect() as holder:
        holder.execute(text("SELECT pg_advisory_lock(:key)"), {"key": LOCK_KEY})
        times = {}

        def act(index):
            if index == 0:
                upgrade(impatient)
                times["ended"] = time.monotonic()
            else:
                time.sleep(0.5)
                times["released"] = time.monotonic()
                holder.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": LOCK_KEY})

        assert outcomes_at_once(2, act) == {"done": 2}
    assert times["ended"] > times["released"]
    impatient.dispose()
    other.dispose()


def test_a_migrator_does_not_queue_requests_behind_a_busy_table_for_long(
    postgresql_url, monkeypatch
):
    monkeypatch.setattr("advisor.store.migrate.TABLE_WAIT_S", 0.2)
    engine = make_engine(postgresql_url)
    with engine.begin() as busy:
        busy.execute(text("LOCK TABLE plans IN ACCESS SHARE MODE"))
        began = time.monotonic()
        with pytest.raises(DatabaseUnavailable):
            downgrade(engine, "base")
        assert time.monotonic() - began < 2
    assert current_is_head(engine)
    engine.dispose()


def test_a_failed_migration_leaves_nothing_behind(engine):
    def fail():
        with migrating(engine) as connection:
            operations = Operations(MigrationContext.configure(connection))
            operations.create_table("half_done", sa.Column("id", sa.Integer))
            raise KeyError("half way")

    with pytest.raises(KeyError, match="half way"):
        fail()
    assert not inspect(engine).has_table("half_done")


def test_a_pooled_connection_is_unchanged_by_a_migration(sqlite_url):
    engine = make_engine(sqlite_url, pool_size=1, timeout_ms=1234)
    upgrade(engine)
    with engine.connect() as connection:
        assert connection.scalar(text("PRAGMA foreign_keys")) == 1
        assert connection.scalar(text("PRAGMA busy_timeout")) == 1234
    engine.dispose()


def test_a_table_that_others_refer_to_can_be_made_anew_with_its_data(engine):
    fill(engine)
    with migrating(engine) as connection:
        operations = Operations(MigrationContext.configure(connection))
        with operations.batch_alter_table("model_profiles", recreate="auto") as batch:
            batch.alter_column("origin", type_=sa.String(20), existing_nullable=False)
    with unit_of_work(sessions_on(engine)) as session:
        assert model_profiles.get(session, "alias").name == "llama"


def test_a_migration_that_loses_rows_others_refer_to_is_undone_on_sqlite(sqlite_url):
    engine = make_engine(sqlite_url)
    fill(engine)
    with pytest.raises(RuntimeError, match="references"), migrating(engine) as connection:
        connection.execute(text("DELETE FROM model_profiles"))
    assert row_counts(engine)["model_profiles"] == 1
    engine.dispose()


def test_a_database_that_a_newer_release_has_migrated_is_served(engine):
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = 'of_the_future'"))
    assert current_is_head(engine)


def test_asking_for_the_revision_does_not_wait_for_a_writer(engine):
    with engine.begin() as writer:
        writer.execute(text("DELETE FROM plans"))
        began = time.monotonic()
        assert current_is_head(engine)
        assert time.monotonic() - began < 1


def test_asking_an_unreachable_database_is_an_outage(tmp_path):
    engine = make_engine(f"postgresql://postgres@/postgres?host={tmp_path}")
    with pytest.raises(DatabaseUnavailable):
        current_is_head(engine)
    with pytest.raises(DatabaseUnavailable):
        upgrade(engine)


def test_migrations_are_found_from_any_directory(unmigrated_sqlite_url, tmp_path):
    program = "import sys; from advisor.store.migrate import upgrade; upgrade(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", program, unmigrated_sqlite_url],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=True,
    )
    engine = make_engine(unmigrated_sqlite_url)
    assert current_is_head(engine)
    engine.dispose()


def test_the_alembic_command_migrates_the_database_of_the_settings(unmigrated_url):
    subprocess.run(
        [sys.executable, "-m", "alembic", "upgrade", "head"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "ADVISOR_DATABASE_URL": unmigrated_url},
        check=True,
    )
    engine = make_engine(unmigrated_url)
    assert current_is_head(engine)
    engine.dispose()
