"""A release serves on beside the next one, whose migrations have run: what it reads, writes and
relies on is still there."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, inspect

from advisor.store.engine import make_engine
from advisor.store.migrate import upgrade
from tests.migrations.test_migrations import ROOT, fill

REVISIONS = [
    script.revision
    for script in ScriptDirectory.from_config(
        Config(config_args={"script_location": str(ROOT / "migrations")})
    ).walk_revisions()
][::-1]


@pytest.fixture
def unmigrated(unmigrated_url: str):
    engine = make_engine(unmigrated_url)
    yield engine
    engine.dispose()


def schema(engine: Engine) -> dict[str, dict[str, Any]]:
    """Columns and constraints of each table."""
    found, inspector = {}, inspect(engine)
    for table in inspector.get_table_names():
        unique, foreign = inspector.get_unique_constraints(table), inspector.get_foreign_keys(table)
        found[table] = {
            "columns": {each["name"]: each for each in inspector.get_columns(table)},
            "primary_key": inspector.get_pk_constraint(table)["constrained_columns"],
            "checks": {each["sqltext"] for each in inspector.get_check_constraints(table)},
            "unique": sorted(each["column_names"] for each in unique),
            "foreign": sorted(each["constrained_columns"] for each in foreign),
        }
    return found


@pytest.mark.parametrize("revision", REVISIONS[:-1])
def test_a_release_can_work_on_every_later_schema(unmigrated: Engine, revision: str) -> None:
    """Whatever is new asks nothing of statements that do not know it, and nothing old is gone."""
    upgrade(unmigrated, revision)
    before = schema(unmigrated)
    upgrade(unmigrated)
    after = schema(unmigrated)
    assert before.keys() <= after.keys()
    for table, old in before.items():
        new = after[table]
        for name, column in old["columns"].items():
            now = new["columns"][name]
            assert str(now["type"]) == str(column["type"]), (table, name)
            assert now["nullable"] or not column["nullable"], (table, name)
        for name in new["columns"].keys() - old["columns"].keys():
            added = new["columns"][name]
            assert added["nullable"] or added["default"] is not None, (table, name)
        for constraint in ("primary_key", "checks", "unique", "foreign"):
            assert new[constraint] == old[constraint], (table, constraint)


@pytest.mark.parametrize("revision", REVISIONS[:-1])
def test_rows_of_an_older_release_go_into_the_newest_schema(
    unmigrated: Engine, revision: str
) -> None:
    """Each table's rows are taken out, and put back with the columns of the older release alone."""
    upgrade(unmigrated, revision)
    older = sa.MetaData()
    older.reflect(unmigrated)
    upgrade(unmigrated)
    fill(unmigrated)
    tables = [table for table in older.sorted_tables if table.name != "alembic_version"]
    assert tables
    with unmigrated.begin() as connection:
        kept = {table: connection.execute(sa.select(table)).mappings().all() for table in tables}
        for table in reversed(tables):
            connection.execute(sa.delete(table))
        for table, rows in kept.items():
            assert rows, table.name
            connection.execute(sa.insert(table), [dict(row) for row in rows])
            assert connection.execute(sa.select(table)).mappings().all() == rows
