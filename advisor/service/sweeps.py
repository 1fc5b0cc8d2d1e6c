"""Sweeps: take many questions as one job, say how far it is, read its rows, end it, repeat it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from advisor import __version__
from advisor.core.coefficients import data_version
from advisor.core.errors import FieldError, InvalidInput
from advisor.service.clock import now
from advisor.service.database import Database
from advisor.service.lookup import named_profiles
from advisor.service.re_evaluation import differences
from advisor.store import sweeps as store
from advisor.store.errors import NotFound
from advisor.store.ids import new_id, refuse_impossible
from advisor.store.sweeps import Progress, StoredSweep, SweepSummary
from advisor.sweeps.rows import Row

Loader = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Reads a sweep as it was sent."""
MOST_COMPARED = 1_000
"""Questions whose rows are compared for one page: some 20 ms."""
Enqueue = Callable[[Any, str], None]
"""Told, in the transaction that stores it, that the sweep of this id has questions to answer."""


@dataclass(frozen=True)
class State:
    """A sweep and how far it is."""

    sweep: SweepSummary
    progress: Progress

    @property
    def name(self) -> str:
        """`queued`, `running`, `done` or `cancelled`."""
        if self.sweep.cancelled_at is not None:
            return "cancelled"
        if not self.sweep.open:
            return "done"
        return "running" if self.sweep.taken else "queued"

    @property
    def rate_per_s(self) -> float | None:
        """Questions answered a second; None before the first."""
        begun, applied = self.progress.begun_at, self.progress.applied_at
        if begun is None or applied is None or applied <= begun:
            return None
        return self.progress.done / (applied - begun).total_seconds()

    @property
    def estimated_end(self) -> datetime | None:
        """When the rest is answered at that rate; None where that is not known, or over."""
        rate, applied = self.rate_per_s, self.progress.applied_at
        if rate is None or applied is None or not self.sweep.open:
            return None
        return applied + timedelta(seconds=(self.sweep.total - self.progress.done) / rate)

    @property
    def finished_at(self) -> datetime | None:
        """When the last question was answered; None before, and where it was cancelled."""
        return self.progress.applied_at if self.name == "done" else None


class TooLarge(InvalidInput):
    """More questions than are taken here."""

    def __init__(self, total: int, most: int) -> None:
        detail = f"The sweep has {total:,} questions."
        super().__init__(FieldError("", detail, given=total, allowed={"maximum": most}))


def create(
    database: Database,
    body: Mapping[str, Any],
    *,
    most_items: int,
    enqueue: Enqueue,
    re_evaluation_of: str | None = None,
) -> tuple[StoredSweep, bool]:
    """Take the questions of a loaded `SweepBody`; and whether they were not taken before.

    The same request about the same versions of profiles and of the planner is the same sweep,
    unless that was cancelled. Raises InvalidInput for unknown names, and `TooLarge`.
    """
    questions = body["questions"]
    if questions.total > most_items:
        raise TooLarge(questions.total, most_items)
    profiles = named_profiles(database, *questions.named())
    digest = _digest(body["request"], profiles)
    sweep = StoredSweep(
        id=new_id(), created_at=now(), planner_version=__version__, total=questions.total,
        taken=0, open=True, cancelled_at=None, digest=digest, coefficients_version=data_version(),
        request=body["request"], profiles=profiles, re_evaluation_of=re_evaluation_of,
    )  # fmt: skip
    with database.writing() as session:
        stored = store.add(session, sweep)
        if stored is sweep:
            enqueue(session, sweep.id)
    return stored, stored is sweep


def re_evaluate(
    database: Database, sweep_id: str, load: Loader, *, most_items: int, enqueue: Enqueue
) -> tuple[StoredSweep, bool]:
    """The same questions about the profiles and the planner of now, as `create`; the sweep itself
    where nothing has changed. Raises `NotFound`."""
    sweep = read(database, sweep_id).sweep
    assert isinstance(sweep, StoredSweep)
    return create(
        database, load(sweep.request),
        most_items=most_items, enqueue=enqueue, re_evaluation_of=sweep_id,
    )  # fmt: skip


def read(database: Database, sweep_id: str) -> State:
    """The sweep of that id, and how far it is. Raises `NotFound`."""
    refuse_impossible(sweep_id)
    with database.reading() as session:
        sweep = store.get(session, sweep_id)
        return State(sweep, store.progress(session, [sweep_id])[sweep_id])


def page(database: Database, limit: int, cursor: str | None) -> tuple[list[State], str | None]:
    """At most `limit` sweeps, newest first, and the cursor of the next page. Raises `BadCursor`."""
    with database.reading() as session:
        sweeps, next_cursor = store.page(session, limit, cursor)
        found = store.progress(session, [each.id for each in sweeps])
    return [State(each, found[each.id]) for each in sweeps], next_cursor


def open_sweeps(database: Database) -> list[str]:
    """Ids of sweeps with questions left to answer, the oldest first, the first hundred."""
    with database.reading() as session:
        return store.open_ids(session, 100)


def queue(database: Database) -> tuple[int, float]:
    """Questions that wait for an answer, and how long the sweep has waited that has waited longest
    of those that nobody has begun [s], 0 where there is none."""
    with database.reading() as session:
        left, since = store.queue(session)
    return left, 0.0 if since is None else (now() - since).total_seconds()


def untaken(database: Database, sweep_id: str) -> bool:
    """Whether the sweep has questions that nobody has taken. Raises `NotFound`."""
    sweep = read(database, sweep_id).sweep
    return sweep.open and sweep.taken < sweep.total


def cancel(database: Database, sweep_id: str) -> None:
    """Answer no further questions; what was answered stays. One that has ended stays as it is.
    Raises `NotFound`."""
    refuse_impossible(sweep_id)
    with database.writing() as session:
        store.get(session, sweep_id, to_change=True)
        store.cancel(session, sweep_id, now())


def rows_page(
    database: Database, sweep_id: str, limit: int, cursor: str | None
) -> tuple[list[Row], str | None]:
    """At most `limit` rows in order, and the cursor of what follows; None once all were read.

    While the sweep goes on a page ends before the first question that is not answered yet, and its
    cursor, asked again later, goes on from there. Raises `NotFound` and `BadCursor`.
    """
    refuse_impossible(sweep_id)
    with database.reading() as session:
        sweep = store.get(session, sweep_id)
        at = 0 if cursor is None else store.item_of(sweep_id, cursor)
        found = store.rows_from(session, sweep_id, at, limit)
    at += len(found)
    over = _over(sweep, at, fewer=len(found) < limit)
    return found, None if over else store.cursor_at(sweep_id, at)


def differences_page(
    database: Database, sweep_id: str, against: str | None, limit: int, cursor: str | None
) -> tuple[list[dict[str, Any]], str | None]:
    """At most `limit` questions whose rows differ from those of another sweep of the same request,
    that which this one is the re-evaluation of unless `against` names it, and the cursor of what
    follows, as `rows_page` gives it. A page looks at `MOST_COMPARED` questions.

    Raises `NotFound`, `BadCursor`, and InvalidInput at /against.
    """
    refuse_impossible(sweep_id)
    with database.reading() as session:
        now_made = store.get(session, sweep_id)
        then_made = _other(session, now_made, against)
        first = 0 if cursor is None else store.item_of(sweep_id, cursor)
        then = store.rows_from(session, then_made.id, first, MOST_COMPARED)
        at_now = store.rows_from(session, sweep_id, first, len(then))
    found, at = list[dict[str, Any]](), first
    for before, after in zip(then, at_now, strict=False):
        if len(found) == limit:
            return found, store.cursor_at(sweep_id, at)
        at += 1
        changes = list(differences(before, after, ""))
        if changes:
            same = {name: after[name] for name in ("item", "model", "hardware", "objective")}
            found.append(same | {"differences": changes})
    fewer = at - first < MOST_COMPARED
    over = _over(now_made, at, fewer=fewer) and _over(then_made, at, fewer=fewer)
    return found, None if over else store.cursor_at(sweep_id, at)


def _other(session: Any, sweep: StoredSweep, against: str | None) -> StoredSweep:
    """The sweep that another is compared with."""
    name = sweep.re_evaluation_of if against is None else against
    try:
        if name is None:
            raise InvalidInput(FieldError("/against", "This sweep is not made again of another."))
        refuse_impossible(name)
        other = store.get(session, name)
    except NotFound:
        detail = "There is no sweep with this id."
        raise InvalidInput(FieldError("/against", detail, given=name)) from None
    if other.request != sweep.request:
        detail = "That sweep asks something else."
        raise InvalidInput(FieldError("/against", detail, given=name))
    return other


def _over(sweep: StoredSweep, at: int, *, fewer: bool) -> bool:
    """Whether no row follows the question before `at`; `fewer` came than were asked for."""
    return not sweep.open and (at == sweep.total or fewer)


def rows(database: Database, sweep_id: str) -> Iterator[list[Row]]:
    """All rows there are, a chunk at a time, so that no transaction lasts as long as the reader
    takes. Raises `NotFound` at the first."""
    refuse_impossible(sweep_id)
    with database.reading() as session:
        store.get(session, sweep_id)
        chunks = store.chunks_after(session, sweep_id, 0)
    for first, _, applied_at in chunks:
        if applied_at is None:
            continue
        with database.reading() as session:
            chunk = store.rows(session, sweep_id, first)
        yield chunk


def _digest(request: Mapping[str, Any], profiles: Mapping[str, Any]) -> str:
    content = {
        "request": request,
        "profiles": profiles,
        "coefficients": data_version(),
        "planner": __version__,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
