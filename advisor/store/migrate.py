"""Bringing a database to the schema of this code, and asking whether it is there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

from advisor.store.engine import READ_ONLY, make_engine, outages_named

LOCK_KEY = 5_927_340_118
"""PostgreSQL advisory lock that migrators of this service agree on; any number no one else uses."""

MIGRATOR_WAIT_S = 60
"""How long a migrator waits for another one to finish [s]."""

TABLE_WAIT_S = 5
"""How long a migration waits for a table that requests are using [s]; they queue behind it."""

_alembic = threading.Lock()
"""Alembic keeps what a running migration works on in a module, once for all threads."""


def upgrade(target: Engine | str, revision: str = "head") -> None:
    """Migrate the database at an engine or a URL up to `revision`, with its data.

    Several at once are safe: they run one after another, and the later ones find nothing to do. A
    failed migration leaves nothing behind. Raises `DatabaseUnavailable`.
    """
    with _alembic, _engine_of(target) as engine:
        command.upgrade(_config(engine), revision)


def downgrade(target: Engine | str, revision: str) -> None:
    """Migrate down to `revision` (`base`: an empty database). Raises `DatabaseUnavailable`."""
    with _alembic, _engine_of(target) as engine:
        command.downgrade(_config(engine), revision)


def current_is_head(engine: Engine) -> bool:
    """Whether this code can work on the database: it is at the newest revision known here.

    A revision unknown here counts as newer still: the next release has migrated the database while
    this one serves on, which a migration must allow for. Raises `DatabaseUnavailable`.
    """
    known, heads = _revisions()
    with outages_named(), engine.connect().execution_options(**READ_ONLY) as connection:
        current = set(MigrationContext.configure(connection).get_current_heads())
    return current == heads or not current <= known


@contextmanager
def migrating(engine: Engine) -> Iterator[Connection]:
    """A transaction in which no one else migrates, committed at the end.

    For `migrations/env.py`. Raises `DatabaseUnavailable`.
    """
    with outages_named(writing=True), engine.connect() as connection:
        # Its settings differ from a pooled connection's, so it is closed rather than given back.
        connection.detach()
        on_sqlite = engine.dialect.name == "sqlite"
        if on_sqlite:
            _prepare_sqlite(connection)
        with connection.begin():
            if not on_sqlite:
                _lock_postgresql(connection)
            yield connection
            if on_sqlite:
                _check_references(connection)


def _prepare_sqlite(connection: Connection) -> None:
    # SQLite alters most things by copying a table and dropping the old one, which would take the
    # rows that refer to it along. These settings have no effect inside a transaction.
    cursor = connection.connection.cursor()
    cursor.execute("PRAGMA foreign_keys = OFF")
    cursor.execute(f"PRAGMA busy_timeout = {MIGRATOR_WAIT_S * 1000}")
    cursor.close()


def _check_references(connection: Connection) -> None:
    broken = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
    if broken:
        raise RuntimeError(f"the migration leaves references without their rows: {broken}")


def _lock_postgresql(connection: Connection) -> None:
    # A large table may take long to be altered.
    connection.connection.dbapi_connection.longest_wait_s = None  # type: ignore[union-attr]
    connection.execute(text("SET LOCAL statement_timeout = 0"))
    connection.execute(text(f"SET LOCAL lock_timeout = '{MIGRATOR_WAIT_S}s'"))
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK_KEY})
    connection.execute(text(f"SET LOCAL lock_timeout = '{TABLE_WAIT_S}s'"))


@contextmanager
def _engine_of(target: Engine | str) -> Iterator[Engine]:
    if isinstance(target, Engine):
        yield target
        return
    engine = make_engine(target)
    try:
        yield engine
    finally:
        engine.dispose()


def _config(engine: Engine | None = None) -> Config:
    config = Config()
    # The option is a template, in which a percent sign of the path has to be doubled.
    config.set_main_option("script_location", str(_directory()).replace("%", "%%"))
    config.attributes["engine"] = engine
    return config


def _directory() -> Path:
    """The migrations: inside the package where it is installed, beside it in a source tree."""
    package = Path(__file__).resolve().parents[1]
    for directory in (package / "migrations", package.parent / "migrations"):
        if (directory / "env.py").is_file():
            return directory
    raise FileNotFoundError(f"no migrations in {package} or beside it")


@cache
def _revisions() -> tuple[frozenset[str], frozenset[str]]:
    """All revisions known here, and the newest."""
    scripts = ScriptDirectory.from_config(_config())
    return frozenset(s.revision for s in scripts.walk_revisions()), frozenset(scripts.get_heads())
