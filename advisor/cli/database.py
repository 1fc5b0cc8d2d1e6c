"""`advisor db`: the database's schema."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from advisor.config import BadSetting, Settings
from advisor.store.errors import StoreError

if TYPE_CHECKING:
    from advisor.service.database import Database

NEWEST = "The database has the newest schema."


@contextmanager
def opened(settings: Settings) -> Iterator[Database]:
    """The database of the settings; the directory of the embedded one is made where it is missing.

    Raises `BadSetting` and ClickException.
    """
    from advisor.service.database import Database

    if settings.database_url == Settings(data_dir=settings.data_dir).database_url:
        _make_directory(settings)
    try:
        database = Database(
            settings.database_url,
            pool_size=settings.database_pool_size,
            timeout_ms=settings.database_timeout_ms,
        )
    except ValueError:
        # The reason may repeat a part of the URL, and that of a password in it.
        detail = "this is no address of a PostgreSQL database, nor of an SQLite file"
        raise BadSetting("ADVISOR_DATABASE_URL", detail) from None
    try:
        yield database
    finally:
        database.close()


@contextmanager
def migrated(settings: Settings) -> Iterator[Database]:
    """The database of the settings, brought to the newest schema."""
    from advisor.store.migrate import upgrade

    with opened(settings) as database:
        upgrade(settings.database_url)
        yield database


def require_newest(database: Database) -> None:
    """ClickException unless the database has the newest schema."""
    if not database.is_ready():
        raise click.ClickException("The schema is older, or there is none: advisor db upgrade")


def _make_directory(settings: Settings) -> None:
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        detail = f"{str(settings.data_dir)!r} cannot be made: {error.strerror}"
        raise BadSetting("ADVISOR_DATA_DIR", detail) from None


@click.group()
def db() -> None:
    """Migrate the database that ADVISOR_DATABASE_URL names."""


@db.command("upgrade")
def upgrade_command() -> None:
    """Bring the database to the newest schema, with its data."""
    with migrated(Settings.from_environment()):
        click.echo(NEWEST)


@db.command("current")
def current_command() -> None:
    """Tell whether the database has the newest schema; exit status 1 when it has not."""
    with opened(Settings.from_environment()) as database:
        require_newest(database)
    click.echo(NEWEST)


@db.command("downgrade")
@click.argument("revision")
def downgrade_command(revision: str) -> None:
    """Bring the database back to REVISION; what newer ones added is lost.

    REVISION is a file's number in migrations/versions, or `base` for an empty database.
    """
    from advisor.store.migrate import downgrade

    settings = Settings.from_environment()
    with opened(settings):
        try:
            downgrade(settings.database_url, revision)
        except StoreError:
            raise
        except Exception as error:
            # Only the store knows the classes of the migration library. What failed was undone.
            raise click.ClickException(f"The database stays as it is: {error}") from None
    click.echo(f"The database is at revision {revision}.")
