"""Lists read in pages.

A cursor holds the last key that was seen, so rows inserted meanwhile shift nothing.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Column, ColumnElement, Row, select
from sqlalchemy.orm import Session

from advisor.store.errors import BadCursor

MAX_CURSOR_LENGTH = 4096


def page_of_names(
    names: Iterable[str], limit: int, cursor: str | None = None
) -> tuple[list[str], str | None]:
    """At most `limit` names in order after the one that `cursor` is, and the next page's cursor:
    for lists that are in memory and never change. Raises `BadCursor`."""
    ordered = sorted(names)
    if cursor is not None and cursor not in ordered:
        raise BadCursor
    start = 0 if cursor is None else ordered.index(cursor) + 1
    page = ordered[start : start + limit]
    return page, page[-1] if page and page[-1] != ordered[-1] else None


@dataclass(frozen=True)
class Listing:
    """A list sorted by one unique text `key`, optionally backwards, filtered by equality.

    `name` tells its cursors from those of other lists; `condition` is what every row fulfils.
    """

    name: str
    columns: Sequence[Column[Any]]
    key: Column[str]
    backwards: bool = False
    filters: Mapping[str, Column[str]] = field(default_factory=dict)
    condition: ColumnElement[bool] | None = None

    def page(
        self,
        session: Session,
        limit: int,
        cursor: str | None = None,
        filters: Mapping[str, str] | None = None,
    ) -> tuple[Sequence[Row[Any]], str | None]:
        """At most `limit` rows after `cursor`, and the cursor of the next page or None at the end.

        Raises `BadCursor` when the cursor was not given out for this list and these filters, and
        KeyError for a filter that the list does not have.
        """
        filters = dict(filters or {})
        query = select(*self.columns).limit(limit + 1)
        query = query.order_by(self.key.desc() if self.backwards else self.key)
        if self.condition is not None:
            query = query.where(self.condition)
        for name, value in filters.items():
            query = query.where(self.filters[name] == value)
        if cursor is not None:
            last = self._read(cursor, filters)
            query = query.where(self.key < last if self.backwards else self.key > last)
        rows = session.execute(query).all()
        if len(rows) <= limit:
            return rows, None
        rows = rows[:limit]
        return rows, self._cursor(getattr(rows[-1], self.key.name), filters)

    def _cursor(self, last: str, filters: Mapping[str, str]) -> str:
        return write_cursor({"list": self.name, "filters": filters, "after": last})

    def _read(self, cursor: str, filters: Mapping[str, str]) -> str:
        """The key a cursor holds."""
        last = read_cursor(cursor, "after")
        # Keys are printable; the database would refuse a NUL.
        if not isinstance(last, str) or not (last.isascii() and last.isprintable()):
            raise BadCursor
        if self._cursor(last, filters) != cursor:
            raise BadCursor
        return last


def write_cursor(content: Mapping[str, Any]) -> str:
    """A cursor that holds `content`."""
    return base64.urlsafe_b64encode(json.dumps(content, sort_keys=True).encode()).decode()


def read_cursor(cursor: str, name: str) -> Any:
    """What a cursor holds under `name`. Raises `BadCursor` where there is no such thing; whether it
    was given out here, the caller sees by writing it again."""
    if len(cursor) > MAX_CURSOR_LENGTH:
        raise BadCursor
    try:
        return json.loads(base64.urlsafe_b64decode(cursor))[name]
    except (ValueError, binascii.Error, RecursionError, KeyError, TypeError):
        raise BadCursor from None
