"""Answers kept under the keys that clients gave their requests, to be given again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import cast

from sqlalchemy import Table, delete, insert, select, tuple_, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from advisor.store.engine import is_unique_violation
from advisor.store.errors import StoreError
from advisor.store.tables import KeptAnswerRow

MOST_REMOVED = 20
"""Expired answers that one new one removes."""


class KeyClaimed(StoreError):
    """Another transaction has kept an answer under this key."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The `key` that a `client` gave to a request, and the digest of that request."""

    client: str
    key: str
    digest: str


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """An answer, and the digest of the request that it is the answer to."""

    digest: str
    status: int
    headers: dict[str, str]
    body: str


_table = cast("Table", KeptAnswerRow.__table__)
_key = tuple_(_table.c.client, _table.c.key)


def find(session: Session, client: str, key: str, since: datetime) -> KeptAnswer | None:
    """The answer kept under a key of a client since then."""
    columns = [_table.c[name] for name in KeptAnswer.__slots__]
    query = select(*columns).where(
        _table.c.client == client, _table.c.key == key, _table.c.created_at > since
    )
    row = session.execute(query).one_or_none()
    return None if row is None else KeptAnswer(**row._asdict())


def claim(session: Session, claim: Claim, moment: datetime, expired: datetime) -> None:
    """Hold a key for the answer that the same transaction will keep under it.

    Others that claim it wait for the end of this transaction. Answers from before `expired` are
    removed, that of this key first. Raises `KeyClaimed`, after which the transaction is lost.
    """
    own = (_table.c.client == claim.client) & (_table.c.key == claim.key)
    session.execute(delete(_table).where(own, _table.c.created_at <= expired))
    old = select(_table.c.client, _table.c.key).where(_table.c.created_at <= expired)
    old = old.order_by(_table.c.created_at).limit(MOST_REMOVED).with_for_update(skip_locked=True)
    session.execute(delete(_table).where(_key.in_(old)))
    nothing = {"status": 0, "headers": {}, "body": ""}
    values = {"client": claim.client, "key": claim.key, "digest": claim.digest} | nothing
    try:
        session.execute(insert(_table), values | {"created_at": moment})
    except IntegrityError as error:
        if not is_unique_violation(error):
            raise
        raise KeyClaimed(claim.key) from error


def keep(session: Session, claim: Claim, answer: KeptAnswer) -> None:
    """Put the answer under the key that this transaction holds."""
    own = (_table.c.client == claim.client) & (_table.c.key == claim.key)
    values = {"status": answer.status, "headers": answer.headers, "body": answer.body}
    session.execute(update(_table).where(own).values(**values))
