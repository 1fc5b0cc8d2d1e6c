"""The application on a database of its own, for every test that goes through HTTP."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient

from advisor.config import Settings
from advisor.service import catalogue
from advisor.service.database import Database
from advisor.web.app import create_app


def running_app(url: str, **settings: object) -> Iterator[Flask]:
    """The application on a database, open to everyone unless the settings say otherwise."""
    settings = {"authentication": "off"} | settings
    app = create_app(Settings(database_url=url, **settings))  # type: ignore[arg-type]
    yield app
    app.extensions["advisor-sweeps"].end()
    app.extensions["advisor-database"].close()


@pytest.fixture(scope="session")
def _catalogued_sqlite(_migrated_sqlite: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = shutil.copy(_migrated_sqlite, tmp_path_factory.mktemp("catalogue") / "advisor.sqlite3")
    database = Database(f"sqlite:///{path}")
    catalogue.load(database)
    database.close()
    return Path(path)


@pytest.fixture
def catalogued_url(_catalogued_sqlite: Path, tmp_path: Path) -> str:
    """An SQLite database with the catalogue in it."""
    return f"sqlite:///{shutil.copy(_catalogued_sqlite, tmp_path / 'catalogued.sqlite3')}"


@pytest.fixture
def app(catalogued_url: str) -> Iterator[Flask]:
    """The application, with the catalogue."""
    yield from running_app(catalogued_url)


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    """A client of `app`."""
    return app.test_client()


@pytest.fixture(scope="session")
def shared_client(
    _catalogued_sqlite: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FlaskClient]:
    """A client for tests that neither change profiles nor mind what others have added."""
    path = shutil.copy(_catalogued_sqlite, tmp_path_factory.mktemp("shared") / "advisor.sqlite3")
    for app in running_app(f"sqlite:///{path}"):
        yield app.test_client()
