"""Who changed which profile when."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.service.database import Database
from advisor.store import changes
from advisor.store.changes import ProfileChange


def page(
    database: Database, limit: int, cursor: str | None, filters: Mapping[str, str]
) -> tuple[list[ProfileChange], str | None]:
    """At most `limit` changes, newest first, and the next page's cursor. Raises `BadCursor`."""
    with database.reading() as session:
        return changes.page(session, limit, cursor, filters)
