"""Terminology checks and the answers given to their findings."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, cast

from sqlalchemy import Table, insert, select, update
from sqlalchemy.orm import Session

from advisor.store.errors import NotFound
from advisor.store.tables import TerminologyCheckRow


@dataclass(frozen=True, slots=True)
class StoredCheck:
    """A check: what was sent, and the answer as it stands now."""

    id: str
    created_at: datetime
    request: dict[str, Any]
    answer: dict[str, Any]


_table = cast("Table", TerminologyCheckRow.__table__)
_columns = [_table.c[field.name] for field in fields(StoredCheck)]


def add(session: Session, check: StoredCheck) -> None:
    """Store a check; its id comes from `advisor.store.ids.new_id`."""
    session.execute(insert(_table), {f.name: getattr(check, f.name) for f in fields(check)})


def get(session: Session, check_id: str, *, lock: bool = False) -> StoredCheck:
    """The check with that id. Raises `NotFound`.

    With `lock`, others that lock it wait for the end of this transaction: an answer made from what
    was read can be written back without losing theirs.
    """
    query = select(*_columns).where(_table.c.id == check_id)
    row = session.execute(query.with_for_update() if lock else query).one_or_none()
    if row is None:
        raise NotFound(check_id)
    return StoredCheck(**row._asdict())


def update_answer(session: Session, check_id: str, answer: dict[str, Any]) -> None:
    """Put `answer` in place of the check's present one. Raises `NotFound`."""
    changed = session.scalar(
        update(_table).where(_table.c.id == check_id).values(answer=answer).returning(_table.c.id)
    )
    if changed is None:
        raise NotFound(check_id)
