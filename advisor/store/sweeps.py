"""Sweeps, and the chunks in which their questions are taken and answered."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, cast

from sqlalchemy import ColumnElement, Table, and_, func, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from advisor.store.engine import is_unique_violation
from advisor.store.errors import BadCursor, NotFound
from advisor.store.paging import Listing, read_cursor, write_cursor
from advisor.store.tables import SweepChunkRow, SweepRow


@dataclass(frozen=True, slots=True)
class SweepSummary:
    """A sweep as a list shows it."""

    id: str
    created_at: datetime
    planner_version: str
    total: int
    taken: int
    open: bool
    cancelled_at: datetime | None


@dataclass(frozen=True, slots=True)
class StoredSweep(SweepSummary):
    """A sweep with all that its questions follow from."""

    digest: str | None
    coefficients_version: str
    request: dict[str, Any]
    profiles: dict[str, Any]
    re_evaluation_of: str | None


@dataclass(frozen=True, slots=True)
class Chunk:
    """Questions that somebody has taken: `questions` of them from the number `first`."""

    sweep_id: str
    first: int
    questions: int
    attempts: int


@dataclass(frozen=True, slots=True)
class Progress:
    """What was applied so far: questions, those of them refused, the time that they took [ms], when
    the first was taken and the last applied (None before)."""

    done: int
    refused: int
    spent_ms: int
    begun_at: datetime | None
    applied_at: datetime | None


_sweeps = cast("Table", SweepRow.__table__)
_chunks = cast("Table", SweepChunkRow.__table__)
_columns = [_sweeps.c[field.name] for field in fields(StoredSweep)]
_listing = Listing(
    name="sweeps",
    columns=[_sweeps.c[field.name] for field in fields(SweepSummary)],
    key=_sweeps.c.id,
    backwards=True,
)


def add(session: Session, sweep: StoredSweep) -> StoredSweep:
    """Store a sweep, whose id comes from `advisor.store.ids.new_id`, unless another has its digest;
    the one that is there then."""
    values = {f.name: getattr(sweep, f.name) for f in fields(sweep)}
    try:
        with session.begin_nested():
            session.execute(insert(_sweeps), values)
    except IntegrityError as error:
        if not is_unique_violation(error):
            raise
        query = select(*_columns).where(_sweeps.c.digest == sweep.digest)
        return StoredSweep(**session.execute(query).one()._asdict())
    return sweep


def get(session: Session, sweep_id: str, *, to_change: bool = False) -> StoredSweep:
    """The sweep with that id, `to_change` held against others until the end of the transaction.
    Raises `NotFound`."""
    query = select(*_columns).where(_sweeps.c.id == sweep_id)
    row = session.execute(query.with_for_update() if to_change else query).one_or_none()
    if row is None:
        raise NotFound(sweep_id)
    return StoredSweep(**row._asdict())


def page(
    session: Session, limit: int, cursor: str | None = None
) -> tuple[list[SweepSummary], str | None]:
    """At most `limit` sweeps, newest first, and the cursor of the next page (None at the end).
    Raises `BadCursor`."""
    rows, next_cursor = _listing.page(session, limit, cursor)
    return [SweepSummary(**row._asdict()) for row in rows], next_cursor


def open_ids(session: Session, limit: int) -> list[str]:
    """At most `limit` sweeps with questions left to answer, the oldest first."""
    query = select(_sweeps.c.id).where(_sweeps.c.open).order_by(_sweeps.c.id).limit(limit)
    return list(session.execute(query).scalars())


def queue(session: Session) -> tuple[int, datetime | None]:
    """Questions of open sweeps that are not answered yet, and when the oldest sweep was made that
    nobody has begun."""
    applied = and_(_chunks.c.sweep_id == _sweeps.c.id, _chunks.c.applied_at.is_not(None))
    asked = select(func.coalesce(func.sum(_sweeps.c.total), 0)).where(_sweeps.c.open)
    answered = (
        select(func.coalesce(func.sum(_chunks.c.questions), 0))
        .select_from(_sweeps.join(_chunks, applied))
        .where(_sweeps.c.open)
    )
    waiting = select(func.min(_sweeps.c.created_at)).where(_sweeps.c.open, _sweeps.c.taken == 0)
    left = session.execute(asked).scalar_one() - session.execute(answered).scalar_one()
    return left, session.execute(waiting).scalar_one()


def progress(session: Session, sweep_ids: Sequence[str]) -> dict[str, Progress]:
    """How far each of these sweeps is."""
    applied = _chunks.c.applied_at.is_not(None)
    query = (
        select(
            _chunks.c.sweep_id,
            func.coalesce(func.sum(_chunks.c.questions).filter(applied), 0),
            func.coalesce(func.sum(_chunks.c.refused), 0),
            func.coalesce(func.sum(_chunks.c.spent_ms), 0),
            func.min(_chunks.c.taken_at),
            func.max(_chunks.c.applied_at),
        )
        .where(_chunks.c.sweep_id.in_(sweep_ids))
        .group_by(_chunks.c.sweep_id)
    )
    found = {row[0]: Progress(*row[1:]) for row in session.execute(query)}
    return {each: found.get(each, Progress(0, 0, 0, None, None)) for each in sweep_ids}


def take_stalled(session: Session, sweep_id: str, now: datetime, until: datetime) -> Chunk | None:
    """Take a chunk that somebody had until before `now` and never applied."""
    stalled = and_(
        _chunks.c.sweep_id == sweep_id,
        _chunks.c.applied_at.is_(None),
        _chunks.c.taken_until < now,
    )
    query = select(_chunks.c.first, _chunks.c.questions, _chunks.c.attempts).where(stalled)
    query = query.order_by(_chunks.c.first).limit(1).with_for_update(skip_locked=True)
    row = session.execute(query).one_or_none()
    if row is None:
        return None
    attempts = row.attempts + 1
    session.execute(
        update(_chunks)
        .where(_chunks.c.sweep_id == sweep_id, _chunks.c.first == row.first)
        .values(attempts=attempts, taken_until=until)
    )
    return Chunk(sweep_id, row.first, row.questions, attempts)


def take_next(
    session: Session, sweep: StoredSweep, questions: int, now: datetime, until: datetime
) -> Chunk:
    """Take the next `questions` questions of a sweep that is held to change."""
    session.execute(
        update(_sweeps).where(_sweeps.c.id == sweep.id).values(taken=sweep.taken + questions)
    )
    values = {
        "sweep_id": sweep.id, "first": sweep.taken, "questions": questions, "attempts": 1,
        "taken_at": now, "taken_until": until,
    }  # fmt: skip
    session.execute(insert(_chunks), values)
    return Chunk(sweep.id, sweep.taken, questions, 1)


def renew(session: Session, chunk: Chunk, until: datetime) -> None:
    """Keep a chunk until then, unless somebody else has taken it since."""
    session.execute(update(_chunks).where(_mine(chunk)).values(taken_until=until))


def apply(
    session: Session, chunk: Chunk, rows: Sequence[Mapping[str, Any]], refused: int,
    spent_ms: int, now: datetime,
) -> bool:  # fmt: skip
    """Keep the answers of a chunk, once and for all; False where somebody else has taken it since,
    or has applied it."""
    lines = "\n".join(json.dumps(row, allow_nan=False, separators=(",", ":")) for row in rows)
    kept = session.execute(
        update(_chunks)
        .where(_mine(chunk))
        .values(applied_at=now, refused=refused, spent_ms=spent_ms, rows=lines)
    )
    return bool(cast("Any", kept).rowcount == 1)


def _mine(chunk: Chunk) -> ColumnElement[bool]:
    """The chunk, as long as nobody else has taken it and it is not applied."""
    return and_(
        _chunks.c.sweep_id == chunk.sweep_id,
        _chunks.c.first == chunk.first,
        _chunks.c.attempts == chunk.attempts,
        _chunks.c.applied_at.is_(None),
    )


def close(session: Session, sweep_id: str) -> None:
    """No question is left."""
    session.execute(update(_sweeps).where(_sweeps.c.id == sweep_id).values(open=False))


def cancel(session: Session, sweep_id: str, now: datetime) -> None:
    """End a sweep that is open before its last question; the same may be asked again."""
    session.execute(
        update(_sweeps)
        .where(_sweeps.c.id == sweep_id, _sweeps.c.open)
        .values(open=False, cancelled_at=now, digest=None)
    )


def chunks_after(
    session: Session, sweep_id: str, item: int
) -> list[tuple[int, int, datetime | None]]:
    """First question, number of questions and time of application (None: not yet) of the chunks
    that hold the question `item` or later ones, in order."""
    query = (
        select(_chunks.c.first, _chunks.c.questions, _chunks.c.applied_at)
        .where(_chunks.c.sweep_id == sweep_id, _chunks.c.first + _chunks.c.questions > item)
        .order_by(_chunks.c.first)
    )
    return [(row.first, row.questions, row.applied_at) for row in session.execute(query)]


def rows(session: Session, sweep_id: str, first: int) -> list[dict[str, Any]]:
    """The answers of the chunk that begins with the question `first`, which was applied."""
    query = select(_chunks.c.rows).where(_chunks.c.sweep_id == sweep_id, _chunks.c.first == first)
    return [json.loads(line) for line in session.execute(query).scalar_one().split("\n")]


def rows_from(session: Session, sweep_id: str, item: int, most: int) -> list[dict[str, Any]]:
    """At most so many answers from that of the question `item` on, up to the first that is not
    there yet."""
    found: list[dict[str, Any]] = []
    for first, _, applied_at in chunks_after(session, sweep_id, item):
        at = item + len(found)
        if applied_at is None or len(found) == most:
            break
        found += rows(session, sweep_id, first)[at - first :][: most - len(found)]
    return found


def cursor_at(sweep_id: str, item: int) -> str:
    """The cursor of the rows of a sweep from the question `item` on."""
    return write_cursor({"sweep": sweep_id, "from": item})


def item_of(sweep_id: str, cursor: str) -> int:
    """The question that a cursor of these rows goes on with. Raises `BadCursor`."""
    item = read_cursor(cursor, "from")
    if type(item) is not int or cursor_at(sweep_id, item) != cursor:
        raise BadCursor
    return item
