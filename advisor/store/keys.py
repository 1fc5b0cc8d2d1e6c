"""API keys: digests under the names of the clients that hold the keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import cast

from sqlalchemy import ColumnElement, Table, bindparam, insert, or_, select, update
from sqlalchemy.orm import Session

from advisor.store.tables import ApiKeyRow


@dataclass(frozen=True, slots=True)
class StoredKey:
    """What is known of a key; it works until `ends_at`, without one for ever."""

    digest: str
    name: str
    scope: str
    created_at: datetime
    ends_at: datetime | None

    def works(self, moment: datetime) -> bool:
        """Whether requests may carry it at `moment`."""
        return self.ends_at is None or moment < self.ends_at


_table = cast("Table", ApiKeyRow.__table__)
_columns = [_table.c[field.name] for field in fields(StoredKey)]
_by_digest = select(*_columns).where(_table.c.digest == bindparam("digest"))


def add(session: Session, key: StoredKey) -> None:
    """Store a key."""
    session.execute(insert(_table), {f.name: getattr(key, f.name) for f in fields(key)})


def find(session: Session, digest: str) -> StoredKey | None:
    """The key with that digest, whether it still works or not."""
    row = session.execute(_by_digest, {"digest": digest}).one_or_none()
    return None if row is None else StoredKey(**row._asdict())


def all_keys(session: Session) -> Sequence[StoredKey]:
    """Every key there ever was, by name and age."""
    rows = session.execute(select(*_columns).order_by(_table.c.name, _table.c.created_at))
    return [StoredKey(**row._asdict()) for row in rows]


def working(session: Session, name: str, moment: datetime) -> Sequence[StoredKey]:
    """The keys of `name` that work at `moment`, oldest first."""
    query = select(*_columns).where(_table.c.name == name, _works(moment))
    rows = session.execute(query.order_by(_table.c.created_at))
    return [StoredKey(**row._asdict()) for row in rows]


def end(session: Session, name: str, moment: datetime) -> int:
    """Let no key of `name` work after `moment`; how many this has cut short."""
    cut = update(_table).where(_table.c.name == name, _works(moment)).values(ends_at=moment)
    return len(session.scalars(cut.returning(_table.c.digest)).all())


def _works(moment: datetime) -> ColumnElement[bool]:
    return or_(_table.c.ends_at.is_(None), _table.c.ends_at > moment)
