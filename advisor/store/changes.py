"""The history of profiles: who made which version of what, newest first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, cast

from sqlalchemy import Table, insert
from sqlalchemy.orm import Session

from advisor.store.paging import Listing
from advisor.store.tables import ProfileChangeRow


@dataclass(frozen=True, slots=True)
class ProfileChange:
    """One change: `version` and `document` are what the profile has since, `client` is the name of
    the API key it came with, if it came with one."""

    id: str
    changed_at: datetime
    kind: str
    name: str
    version: int
    change: str
    origin: str
    client: str | None
    document: dict[str, Any] | None


_table = cast("Table", ProfileChangeRow.__table__)
_insert = insert(_table)
_listing = Listing(
    name="profile changes",
    columns=[_table.c[field.name] for field in fields(ProfileChange)],
    key=_table.c.id,
    backwards=True,
    filters={"kind": _table.c.kind, "name": _table.c.name},
)


def record(session: Session, change: ProfileChange) -> None:
    """Store a change, in the transaction that makes it."""
    session.execute(_insert, {f.name: getattr(change, f.name) for f in fields(change)})


def page(
    session: Session, limit: int, cursor: str | None, filters: Mapping[str, str]
) -> tuple[list[ProfileChange], str | None]:
    """At most `limit` changes, newest first, and the cursor of the next page (None at the end).

    `filters` may name a `kind` and a `name`. Raises `BadCursor`.
    """
    rows, next_cursor = _listing.page(session, limit, cursor, filters)
    return [ProfileChange(**row._asdict()) for row in rows], next_cursor
