"""The queue of jobs, on PostgreSQL: procrastinate's tables in a schema of their own."""

from __future__ import annotations

from importlib.metadata import version

from alembic import op
from procrastinate.schema import SchemaManager

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

SCHEMA = "advisor_jobs"
WRITTEN_FOR = "3.10."
"""Versions of procrastinate whose tables these are; a later one needs a migration of its own."""


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    found = version("procrastinate")
    if not found.startswith(WRITTEN_FOR):
        raise RuntimeError(f"procrastinate {found} has tables that no migration here makes yet")
    raw = op.get_bind().connection.dbapi_connection
    assert raw is not None
    (before,) = raw.execute("SELECT current_setting('search_path')").fetchone()
    raw.execute(f"CREATE SCHEMA {SCHEMA}")
    raw.execute("SELECT set_config('search_path', %s, true)", [SCHEMA])
    raw.execute(SchemaManager.get_schema())
    raw.execute("SELECT set_config('search_path', %s, true)", [before])


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"DROP SCHEMA {SCHEMA} CASCADE")
