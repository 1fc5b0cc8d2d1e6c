"""Plans that were answered, newest first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, cast

from sqlalchemy import Table, bindparam, insert, select
from sqlalchemy.orm import Session

from advisor.store.errors import NotFound
from advisor.store.paging import Listing
from advisor.store.tables import PlanRow


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """A plan as a list shows it."""

    id: str
    created_at: datetime
    model: str
    objective: str
    planner_version: str
    request: dict[str, Any]


@dataclass(frozen=True, slots=True)
class StoredPlan(PlanSummary):
    """A plan with the text of the JSON that was answered."""

    answer: str


_table = cast("Table", PlanRow.__table__)
_summary_columns = [_table.c[field.name] for field in fields(PlanSummary)]
_by_id = select(*_summary_columns, _table.c.answer).where(_table.c.id == bindparam("id"))
_listing = Listing(
    name="plans",
    columns=_summary_columns,
    key=_table.c.id,
    backwards=True,
    filters={"model": _table.c.model},
)
_insert = insert(_table)


def add(session: Session, plan: StoredPlan) -> None:
    """Store a plan; its id comes from `advisor.store.ids.new_id`, which the list is sorted by."""
    session.execute(_insert, {f.name: getattr(plan, f.name) for f in fields(plan)})


def get(session: Session, plan_id: str) -> StoredPlan:
    """The plan with that id. Raises `NotFound`."""
    row = session.execute(_by_id, {"id": plan_id}).one_or_none()
    if row is None:
        raise NotFound(plan_id)
    return StoredPlan(**row._asdict())


def page(
    session: Session,
    limit: int,
    cursor: str | None = None,
    filters: Mapping[str, str] | None = None,
) -> tuple[list[PlanSummary], str | None]:
    """At most `limit` plans, newest first, and the cursor of the next page (None at the end).

    `filters` may name a `model`. Raises `BadCursor`.
    """
    rows, next_cursor = _listing.page(session, limit, cursor, filters)
    return [PlanSummary(**row._asdict()) for row in rows], next_cursor
