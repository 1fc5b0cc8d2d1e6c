"""Databases for the tests. Each test that asks for one gets its own, migrated and empty.

What needs more than numpy is imported where it is used: `tests/core` also runs without.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.postgres import postgresql_server

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from sqlalchemy import Engine
    from sqlalchemy.orm import Session, sessionmaker

    MakeDatabase = Callable[[str | None], AbstractContextManager[str]]


@pytest.fixture(scope="session")
def _make_postgresql() -> Iterator[MakeDatabase]:
    """Makes databases, empty or as copies of another one, on a server that runs while tests do."""
    import psycopg

    with (
        postgresql_server() as server,
        psycopg.connect(
            _plain(server.url.format(database="postgres")), autocommit=True
        ) as maintenance,
    ):
        numbers = count(1)

        @contextmanager
        def make(template: str | None) -> Iterator[str]:
            name = f"test_{next(numbers)}"
            maintenance.execute(f"CREATE DATABASE {name} TEMPLATE {template or 'template1'}")
            yield server.url.format(database=name)
            maintenance.execute(f"DROP DATABASE {name} WITH (FORCE)")

        yield make


def _plain(url: str) -> str:
    """The URL without the part that only SQLAlchemy knows."""
    return url.replace("+psycopg", "", 1)


@pytest.fixture(scope="session")
def _migrated_postgresql(_make_postgresql: MakeDatabase) -> Iterator[str]:
    """The name of a migrated database to copy."""
    from sqlalchemy import make_url

    from advisor.store.migrate import upgrade

    with _make_postgresql(None) as url:
        upgrade(url)
        yield str(make_url(url).database)


@pytest.fixture(scope="session")
def _migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated database file to copy."""
    from advisor.store.migrate import upgrade

    path = tmp_path_factory.mktemp("sqlite") / "migrated.sqlite3"
    upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture
def postgresql_url(_make_postgresql: MakeDatabase, _migrated_postgresql: str) -> Iterator[str]:
    """A migrated, empty PostgreSQL database."""
    with _make_postgresql(_migrated_postgresql) as url:
        yield url


@pytest.fixture
def sqlite_url(_migrated_sqlite: Path, tmp_path: Path) -> str:
    """A migrated, empty SQLite database, for tests to which the database makes no difference."""
    return f"sqlite:///{shutil.copy(_migrated_sqlite, tmp_path / 'advisor.sqlite3')}"


@pytest.fixture
def unmigrated_postgresql_url(_make_postgresql: MakeDatabase) -> Iterator[str]:
    """A PostgreSQL database without any table."""
    with _make_postgresql(None) as url:
        yield url


@pytest.fixture
def unmigrated_sqlite_url(tmp_path: Path) -> str:
    """An SQLite database without any table."""
    return f"sqlite:///{tmp_path / 'unmigrated.sqlite3'}"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """A migrated, empty database; the test runs once on each kind."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture(params=["sqlite", "postgresql"])
def unmigrated_url(request: pytest.FixtureRequest) -> str:
    """A database without any table; the test runs once on each kind."""
    return str(request.getfixturevalue(f"unmigrated_{request.param}_url"))


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """An engine on `database_url`."""
    from advisor.store.engine import make_engine

    engine = make_engine(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def session_factory(engine: Engine) -> sessionmaker[Session]:
    """A factory of sessions on `engine`, for `unit_of_work`."""
    from advisor.store.engine import session_factory

    return session_factory(engine)
