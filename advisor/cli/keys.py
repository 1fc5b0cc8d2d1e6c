"""`advisor keys`: API keys of the service."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import click

from advisor.cli.database import opened, require_newest
from advisor.cli.tables import Figures, console
from advisor.config import Settings
from advisor.store.errors import NameTaken, NotFound

if TYPE_CHECKING:
    from advisor.service.keys import Keys

SCOPES = ("read", "write", "admin")
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
LONGEST_DAYS = 3650


class KeyName(click.ParamType[str]):
    """The name of a client."""

    name = "name"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name itself."""
        if not NAME.fullmatch(value):
            self.fail("A name has up to 100 of a-z, 0-9, '.', '_' and '-'.", param, ctx)
        return value


name_argument = click.argument("name", type=KeyName())
days_option = click.option(
    "--days", type=click.IntRange(1, LONGEST_DAYS), help="End the key after so many days."
)


@click.group()
def keys() -> None:
    """API keys of the service whose database ADVISOR_DATABASE_URL names.

    A key is sent as `Authorization: Bearer KEY`. Its NAME stands for the client that holds it: in
    logs, in the history of profiles, and for rate limits.
    """


@keys.command("create")
@name_argument
@click.option(
    "--scope", type=click.Choice(SCOPES), default="write", show_default=True,
    help="What it may do: admin includes write, and write includes read.",
)  # fmt: skip
@days_option
def create(name: str, scope: str, days: int | None) -> None:
    """Make a key for the client NAME and print it, this one time."""
    with _opened() as service:
        try:
            key = service.create(name, scope, _days(days))
        except NameTaken:
            detail = f"{name} has a key that works. A new one: advisor keys rotate {name}"
            raise click.ClickException(detail) from None
    click.echo(key)


@keys.command("rotate")
@name_argument
@click.option(
    "--overlap-hours", type=click.IntRange(0, 24 * LONGEST_DAYS), default=24, show_default=True,
    help="How long the present key goes on working.",
)  # fmt: skip
@days_option
def rotate(name: str, overlap_hours: int, days: int | None) -> None:
    """Make a new key of the same scope for NAME and print it, this one time."""
    with _opened() as service, _known(name):
        key = service.rotate(name, timedelta(hours=overlap_hours), _days(days))
    click.echo(key)


@keys.command("revoke")
@name_argument
def revoke(name: str) -> None:
    """Let no key of NAME work any more, from the next request on."""
    with _opened() as service, _known(name):
        count = service.revoke(name)
    click.echo(f"{count} {'key' if count == 1 else 'keys'} of {name} revoked.")


@keys.command("list")
def list_command() -> None:
    """List the keys there are and were; the keys themselves are not kept."""
    with _opened() as service:
        rows = [[k.name, k.scope, _date(k.created_at), _date(k.ends_at)] for k in service.listed()]
    headers = ["name", "scope", "created (UTC)", "ends (UTC)"]
    console().print(Figures(headers, rows, texts=len(headers)))


@contextmanager
def _opened() -> Iterator[Keys]:
    from advisor.service.keys import Keys

    settings = Settings.from_environment()
    with opened(settings) as database:
        require_newest(database)
        yield Keys(database, settings.api_key_pepper)


@contextmanager
def _known(name: str) -> Iterator[None]:
    try:
        yield
    except NotFound:
        raise click.ClickException(f"{name} has no key that works: advisor keys list") from None


def _days(days: int | None) -> timedelta | None:
    return None if days is None else timedelta(days=days)


def _date(moment: datetime | None) -> str:
    return "-" if moment is None else moment.strftime("%Y-%m-%d %H:%M")
