"""Column types that hold the same values on SQLite and PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import DateTime, Dialect, String
from sqlalchemy.types import TypeDecorator


class UtcDateTime(TypeDecorator[datetime]):
    """An instant: aware datetimes go in, UTC ones come out.

    SQLite keeps no zone, so what it stores is UTC by this type alone.
    """

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        """UTC for the database; ValueError for a datetime without a zone."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        """UTC for the caller, whatever zone the session runs in."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def key_text(length: int) -> String:
    """Text that is sorted and looked up by code point on every database.

    PostgreSQL would otherwise sort by the locale that the database was created with, and an index
    in that order breaks when the system's locale data change.
    """
    return String(length).with_variant(String(length, collation="C"), "postgresql")
