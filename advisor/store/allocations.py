"""Allocations that were answered, newest first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, cast

from sqlalchemy import Table, insert, select
from sqlalchemy.orm import Session

from advisor.store.errors import NotFound
from advisor.store.paging import Listing
from advisor.store.tables import AllocationRow


@dataclass(frozen=True, slots=True)
class AllocationSummary:
    """An allocation as a list shows it."""

    id: str
    created_at: datetime
    objective: str
    status: str
    planner_version: str


@dataclass(frozen=True, slots=True)
class StoredAllocation(AllocationSummary):
    """An allocation with what was asked, and the text of the JSON that was answered."""

    request: dict[str, Any]
    answer: str


_table = cast("Table", AllocationRow.__table__)
_columns = [_table.c[field.name] for field in fields(StoredAllocation)]
_listing = Listing(
    name="allocations",
    columns=[_table.c[field.name] for field in fields(AllocationSummary)],
    key=_table.c.id,
    backwards=True,
    filters={"status": _table.c.status},
)


def add(session: Session, allocation: StoredAllocation) -> None:
    """Store an allocation; its id comes from `advisor.store.ids.new_id`."""
    session.execute(
        insert(_table), {f.name: getattr(allocation, f.name) for f in fields(allocation)}
    )


def get(session: Session, allocation_id: str) -> StoredAllocation:
    """The allocation with that id. Raises `NotFound`."""
    query = select(*_columns).where(_table.c.id == allocation_id)
    row = session.execute(query).one_or_none()
    if row is None:
        raise NotFound(allocation_id)
    return StoredAllocation(**row._asdict())


def page(
    session: Session,
    limit: int,
    cursor: str | None = None,
    filters: Mapping[str, str] | None = None,
) -> tuple[list[AllocationSummary], str | None]:
    """At most `limit` allocations, newest first, and the cursor of the next page (None at the end).

    `filters` may name a `status`. Raises `BadCursor`.
    """
    rows, next_cursor = _listing.page(session, limit, cursor, filters)
    return [AllocationSummary(**row._asdict()) for row in rows], next_cursor
