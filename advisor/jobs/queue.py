"""The queue: what its jobs do, and how they get into it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from procrastinate import App, PsycopgConnector, SyncPsycopgConnector
from procrastinate.exceptions import AlreadyEnqueued
from procrastinate.jobs import Status
from psycopg.conninfo import conninfo_to_dict

from advisor.core.units import MS_PER_S

SCHEMA = "advisor_jobs"
TASK = "advance_sweep"
SWEEPS, MAINTENANCE = "sweeps", "maintenance"
"""Queues of jobs."""

SLICE_S = 30.0
"""After so long a job ends at a chunk's end, so that sweeps take turns [s]."""

STALLED_S = 60.0
"""A worker that has not said for so long that it lives has died [s]."""

VANISHED_S = 10
"""How long a server is waited for that does not answer [s]."""

EVERY_MINUTE = "* * * * *"


@dataclass(frozen=True)
class Work:
    """What workers do, each asked from a thread."""

    advance: Callable[[str], bool]
    """Answers the next open chunk of the sweep of an id; False when none is left to take now."""
    untaken: Callable[[str], bool]
    """Whether a sweep has questions that nobody has taken."""
    open_sweeps: Callable[[], list[str]]
    """The ids of sweeps that are not over."""


def make_app(
    conninfo: str, work: Work, ending: Callable[[], bool], *, slice_s: float = SLICE_S
) -> App:
    """The tasks that a worker runs on the database of `conninfo`, a libpq address, until it is
    `ending`.

    A sweep has one job in the queue at most. Whoever works on it puts the next one there after each
    chunk, for others to take part, while there are questions that nobody has taken.
    """
    kwargs = {
        "options": f"{conninfo_to_dict(conninfo).get('options', '')} -c search_path={SCHEMA}",
        "application_name": "inference-advisor-worker",
        # A server that vanished without closing its connections is noticed as fast.
        "connect_timeout": VANISHED_S,
        "tcp_user_timeout": round(VANISHED_S * MS_PER_S),
    }
    app = App(connector=PsycopgConnector(conninfo=conninfo, kwargs=kwargs, min_size=1, max_size=4))

    @app.task(name=TASK, queue=SWEEPS)
    async def advance_sweep(sweep_id: str) -> None:
        """Answer chunks until none is left to take, or others are to have a turn."""
        ends = time.monotonic() + slice_s
        while await asyncio.to_thread(work.advance, sweep_id):
            # Only now: a sweep that always fails would never leave the queue.
            if await asyncio.to_thread(work.untaken, sweep_id):
                await ensure(sweep_id)
            if time.monotonic() >= ends or ending():
                return

    async def ensure(sweep_id: str) -> None:
        """Have a job of this sweep in the queue."""
        with suppress(AlreadyEnqueued):
            await advance_sweep.configure(queueing_lock=sweep_id).defer_async(sweep_id=sweep_id)

    @app.periodic(cron=EVERY_MINUTE)
    @app.task(name="look_after", queue=MAINTENANCE, queueing_lock="look_after", priority=1)
    async def look_after(timestamp: int) -> None:  # noqa: ARG001 - given to periodic tasks
        """Have a job for every sweep that is not over: its last chunk may have been that of a
        worker that died, or its job have failed. Jobs of workers that have died are removed."""
        for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=STALLED_S):
            await app.job_manager.finish_job(job, Status.FAILED, delete_job=True)
        for sweep_id in await asyncio.to_thread(work.open_sweeps):
            await ensure(sweep_id)

    return app


def enqueue(session: Any, sweep_id: str) -> None:
    """Put a job of a sweep into the queue, in the transaction of an SQLAlchemy session on
    PostgreSQL.

    It is there when that commits, and never was when it is rolled back.
    """
    raw = session.connection().connection.driver_connection
    (before,) = raw.execute("SELECT current_setting('search_path')").fetchone()
    raw.execute("SELECT set_config('search_path', %s, true)", [SCHEMA])
    task = _sending.configure_task(TASK, queue=SWEEPS, queueing_lock=sweep_id, connection=raw)
    task.defer(sweep_id=sweep_id)
    raw.execute("SELECT set_config('search_path', %s, true)", [before])


# Its connector never connects: each sending brings the connection of its transaction.
_sending = App(connector=SyncPsycopgConnector())
