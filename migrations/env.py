"""What Alembic runs to migrate a database: one transaction, one migrator at a time."""

from __future__ import annotations

from typing import Literal

from alembic import context
from alembic.autogenerate.api import AutogenContext

from advisor.config import Settings
from advisor.store.engine import make_engine
from advisor.store.migrate import migrating
from advisor.store.tables import Base
from advisor.store.types import UtcDateTime


def render_item(kind: str, item: object, _context: AutogenContext) -> str | Literal[False]:
    """Write our own types in a new revision as what they are in the database."""
    if kind == "type" and isinstance(item, UtcDateTime):
        return "sa.DateTime(timezone=True)"
    return False


# `advisor.store.migrate` hands over its engine; the `alembic` command has none.
engine = context.config.attributes.get("engine") or make_engine(
    Settings.from_environment().database_url
)

with migrating(engine) as connection:
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        render_item=render_item,
        # SQLite can alter a table only by making it anew, which batch operations do.
        render_as_batch=connection.dialect.name == "sqlite",
        # The engine begins SQLite's transactions itself, so a schema change is rolled back too.
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()
