"""Answering the questions of sweeps, a chunk at a time, by as many processes as there are."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

from advisor.core.units import MS_PER_S
from advisor.service import metrics
from advisor.service.clock import now
from advisor.service.database import Database
from advisor.service.lookup import KeptProfiles
from advisor.service.sweeps import Loader
from advisor.store import sweeps as store
from advisor.store.sweeps import Chunk, StoredSweep
from advisor.sweeps.answers import answer
from advisor.sweeps.grid import Questions
from advisor.sweeps.rows import Row, refused
from advisor.sweeps.sizing import chunk_items

LEASE_S = 60
"""How long who takes a chunk has it [s], and has it again after each of its questions where a
`RENEWED` part of that is over: many times what a question takes."""
RENEWED = 0.25
MOST_ATTEMPTS = 3
"""How often a chunk is taken: one that has ended so many processes is not given to another."""
LOST = "Whoever worked on this question ended before answering it, several times."


class Worker:
    """Answers questions of one sweep after the other; what a sweep is made of is read once."""

    def __init__(self, database: Database, load: Loader) -> None:
        self._database, self._load = database, load
        self._kept: tuple[str, Questions, KeptProfiles] | None = None

    def advance(self, sweep_id: str) -> bool:
        """Take the next chunk of a sweep, answer it and apply it, once and for all; False when none
        is left to take now. Any number of processes may do so at once."""
        with self._database.writing() as session:
            sweep, chunk = _taken(session, sweep_id)
        if chunk is None:
            return False
        begun = time.perf_counter()
        rows = list(self._held(chunk, self._answers(sweep, chunk)))
        spent_s = time.perf_counter() - begun
        turned_down = sum(row["status"] == "refused" for row in rows)
        with self._database.writing() as session:
            applied = store.apply(
                session, chunk, rows, turned_down, round(spent_s * MS_PER_S), now()
            )
            if applied:
                _close_if_over(session, sweep)
        if applied:
            metrics.sweep_items_total.inc(len(rows))
            metrics.sweep_item_seconds.observe(spent_s / len(rows))
        return True

    def _answers(self, sweep: StoredSweep, chunk: Chunk) -> Iterator[Row]:
        questions, profiles = self._asked(sweep)
        for item in range(chunk.first, chunk.first + chunk.questions):
            ask = questions.ask(item)
            if chunk.attempts > MOST_ATTEMPTS:
                yield refused(item, ask, "", LOST)
            else:
                yield answer(item, ask, profiles.model, profiles.hardware)

    def _held(self, chunk: Chunk, rows: Iterable[Row]) -> Iterator[Row]:
        """The same rows, while the chunk stays ours however long they take."""
        since = now()
        for row in rows:
            yield row
            moment = now()
            if moment - since > RENEWED * timedelta(seconds=LEASE_S):
                since = moment
                with self._database.writing() as session:
                    store.renew(session, chunk, _lease_end(moment))

    def _asked(self, sweep: StoredSweep) -> tuple[Questions, KeptProfiles]:
        if self._kept is None or self._kept[0] != sweep.id:
            questions: Questions = self._load(sweep.request)["questions"]
            self._kept = sweep.id, questions, KeptProfiles(sweep.profiles)
        return self._kept[1:]


def _taken(session: Any, sweep_id: str) -> tuple[StoredSweep, Chunk | None]:
    """The sweep, and the chunk of it that is ours until its time is over."""
    sweep = store.get(session, sweep_id, to_change=True)
    moment = now()
    until = _lease_end(moment)
    if not sweep.open:
        return sweep, None
    stalled = store.take_stalled(session, sweep_id, moment, until)
    if stalled is not None:
        return sweep, stalled
    if sweep.taken == sweep.total:
        return sweep, None
    so_far = store.progress(session, [sweep_id])[sweep_id]
    items = chunk_items(so_far.done, so_far.spent_ms / MS_PER_S, sweep.total - sweep.taken)
    return sweep, store.take_next(session, sweep, items, moment, until)


def _lease_end(moment: datetime) -> datetime:
    return moment + timedelta(seconds=LEASE_S)


def _close_if_over(session: Any, sweep: StoredSweep) -> None:
    """Once the last chunk is applied; of several that are applied at once the last one sees it."""
    store.get(session, sweep.id, to_change=True)
    if store.progress(session, [sweep.id])[sweep.id].done == sweep.total:
        store.close(session, sweep.id)
