"""Connections and transactions on SQLite and PostgreSQL."""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import sqlalchemy.exc
from sqlalchemy import URL, Connection, Engine, QueuePool, create_engine, event, make_url
from sqlalchemy.orm import Session, sessionmaker

from advisor.store.bounded import BoundedConnection
from advisor.store.errors import DatabaseUnavailable

READ_ONLY = {"postgresql_readonly": True}
"""Execution options of a transaction that only reads.

PostgreSQL refuses writes in it; on SQLite it does not wait for those who write.
"""

SQLITE_CONNECTIONS = 4
"""Most connections of one process to an SQLite file.

SQLite has one writer at a time, and those that wait for it sleep and try again: the more they are,
the longer the unluckiest waits. Threads that wait for a pooled connection are served in turn.
"""

WAIT_BEYOND_S = 0.3
"""How much longer than the server's own bound a statement is waited for: the server's answer is the
better one, and leaves the connection usable."""

ONLY_READS = ("25006", "0A000")
"""SQLSTATEs of a server that only reads, such as a standby before it takes over: of a write, and of
the beginning of a transaction that may write."""

# The same on both databases: PostgreSQL refuses NaN where SQLite would store it.
_dump_json = partial(json.dumps, allow_nan=False, separators=(",", ":"))


def make_engine(url: str, *, pool_size: int = 16, timeout_ms: int = 2000) -> Engine:
    """An engine for `sqlite:///file` or `postgresql://...`; it connects when first used.

    `pool_size` is the most connections held at once, `SQLITE_CONNECTIONS` at most on SQLite; a
    thread needs one at a time. `timeout_ms` bounds each wait: for a pooled connection, for the
    server to accept one (2 s at least, psycopg's own minimum), for one statement with the locks it
    needs (`WAIT_BEYOND_S` more where the server does not answer at all). ValueError for any other
    database, SQLite in memory included (each connection would have its own).
    """
    parsed = make_url(url)
    options: dict[str, Any] = {
        "poolclass": QueuePool,
        "pool_size": pool_size,
        "max_overflow": 0,
        "pool_timeout": timeout_ms / 1000,
        "json_serializer": _dump_json,
    }
    backend = parsed.get_backend_name()
    if backend == "sqlite":
        options["pool_size"] = min(pool_size, SQLITE_CONNECTIONS)
        return _sqlite_engine(parsed, timeout_ms, options)
    if backend == "postgresql":
        return _postgresql_engine(parsed, timeout_ms, options)
    raise ValueError(f"{backend} is not supported: use sqlite or postgresql")


def libpq_url(url: str) -> str:
    """A PostgreSQL address of `make_engine` as the server's own library reads it. ValueError for
    any other database."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "postgresql":
        raise ValueError("not the address of a PostgreSQL database")
    return parsed.set(drivername="postgresql").render_as_string(hide_password=False)


def _postgresql_engine(url: URL, timeout_ms: int, options: dict[str, Any]) -> Engine:
    given = url.query.get("options", "")
    connect_args = {
        "connect_timeout": math.ceil(timeout_ms / 1000),
        # A server that vanished without closing its connections is noticed as fast.
        "tcp_user_timeout": timeout_ms,
        "application_name": "inference-advisor",
        "options": f"{given} -c statement_timeout={timeout_ms}".strip(),
    }
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"),
        connect_args=connect_args,
        pool_pre_ping=True,
        **options,
    )

    @event.listens_for(engine, "do_connect")
    def connect(_dialect: object, _record: object, args: Any, given: Any) -> BoundedConnection:
        connection = BoundedConnection.connect(*args, **given)
        connection.longest_wait_s = timeout_ms / 1000 + WAIT_BEYOND_S
        return connection

    return engine


def _sqlite_engine(url: URL, timeout_ms: int, options: dict[str, Any]) -> Engine:
    if url.database in (None, "", ":memory:"):
        raise ValueError("an SQLite database must be a file: threads do not share one in memory")
    engine = create_engine(url, **options)

    @event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _record: object) -> None:
        # The driver would begin a transaction at the first write only, and never for a savepoint.
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout = {timeout_ms}")
        connection.execute("PRAGMA foreign_keys = ON")
        # Readers and the writer do not block each other. NORMAL: a killed process loses nothing,
        # a power cut may lose the last commits but never the database.
        _write_ahead(connection, timeout_ms)
        connection.execute("PRAGMA synchronous = NORMAL")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A transaction that reads and then writes cannot wait for another writer once it has a
        # snapshot (it fails at once), so one that may write takes its place in the queue first.
        reads = connection.get_execution_options().get("postgresql_readonly")
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")

    return engine


def _write_ahead(connection: sqlite3.Connection, timeout_ms: int) -> None:
    """Keep the journal beside the file. SQLite does not wait for another process that is at it: it
    refuses at once whatever `busy_timeout` says, so it is asked again until that time is over."""
    deadline = time.monotonic() + timeout_ms / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.01)


def session_factory(engine: Engine) -> sessionmaker[Session]:
    """A factory of sessions on `engine`; what they return stays usable after the commit."""
    return sessionmaker(engine, expire_on_commit=False)


@contextmanager
def unit_of_work(factory: sessionmaker[Session], *, read_only: bool = False) -> Iterator[Session]:
    """One transaction: committed at the end of the block, rolled back when it raises.

    `read_only` transactions do not wait for writers. On SQLite one that may write holds the only
    write lock from its beginning: keep long computations outside. Raises `DatabaseUnavailable` when
    the database cannot be reached or does not answer in time; constraint violations pass through.
    """
    with outages_named(writing=not read_only), factory.begin() as session:
        if read_only:
            session.connection(execution_options=READ_ONLY)
        yield session


@contextmanager
def outages_named(*, writing: bool = False) -> Iterator[None]:
    """Turn a database that is down, full, locked or too slow, or only reads where the block is
    meant for `writing`, into `DatabaseUnavailable`."""
    try:
        yield
    except sqlalchemy.exc.SQLAlchemyError as error:
        only_reads = isinstance(error, sqlalchemy.exc.DBAPIError) and _sqlstate(error) in ONLY_READS
        if _is_outage(error) or (writing and only_reads):
            raise DatabaseUnavailable from error
        raise


def _is_outage(error: sqlalchemy.exc.SQLAlchemyError) -> bool:
    if isinstance(error, sqlalchemy.exc.TimeoutError):
        return True
    if not isinstance(error, sqlalchemy.exc.DBAPIError):
        return False
    # SQLite reports a faulty statement in the class that is otherwise for outages.
    faulty_statement = getattr(error.orig, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR
    operational = isinstance(error, sqlalchemy.exc.OperationalError) and not faulty_statement
    return operational or error.connection_invalidated


def _sqlstate(error: sqlalchemy.exc.DBAPIError) -> str | None:
    """PostgreSQL's code of an error."""
    return getattr(error.orig, "sqlstate", None)


def is_unique_violation(error: sqlalchemy.exc.IntegrityError) -> bool:
    """Whether a row with that key exists already, rather than another constraint being broken."""
    if _sqlstate(error) == "23505":
        return True
    return getattr(error.orig, "sqlite_errorcode", None) in (
        sqlite3.SQLITE_CONSTRAINT_UNIQUE,
        sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY,
    )
