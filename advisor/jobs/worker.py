"""A worker: runs the jobs of the queue, one at a time, until it is told to end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

import psycopg
import structlog
from procrastinate import App
from procrastinate.exceptions import ConnectorException

from advisor.jobs.queue import STALLED_S, Work, make_app
from advisor.store.errors import DatabaseUnavailable

FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 10.0
"""Between two attempts to reach a database that is away [s]; doubled from the first on."""

HEARTBEAT_S = STALLED_S / 6
"""How often a worker says that it lives [s]."""

_log = structlog.get_logger(__name__)


class Worker:
    """Runs jobs until SIGTERM or SIGINT; a chunk that is begun is finished, which takes seconds.

    A database that goes away, or that is not migrated yet, is waited for, however long.
    """

    def __init__(self, conninfo: str, work: Work, is_ready: Callable[[], bool]) -> None:
        self._ending, self._is_ready = asyncio.Event(), is_ready
        self._app = make_app(conninfo, work, self._ending.is_set)
        self._running: asyncio.Future[None] | None = None

    async def run(self) -> None:
        """Work until it is told to end."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end)
        wait_s = FIRST_WAIT_S
        while not self._ending.is_set():
            begun = loop.time()
            await self._work_while_it_answers()
            wait_s = FIRST_WAIT_S if loop.time() - begun > LONGEST_WAIT_S else wait_s
            await self._pause(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)

    async def _work_while_it_answers(self) -> None:
        try:
            if not await asyncio.to_thread(self._is_ready):
                _log.warning("the database lacks migrations of this version")
                return
            async with self._app.open_async():
                if not self._ending.is_set():
                    self._running = asyncio.ensure_future(_worked(self._app))
                    await self._running
        except asyncio.CancelledError:
            if not self._ending.is_set():
                raise
        except (DatabaseUnavailable, ConnectorException, psycopg.Error, OSError) as error:
            _log.warning("the worker waits for the database", problem=type(error).__name__)
        finally:
            self._running = None

    def _end(self) -> None:
        self._ending.set()
        if self._running is not None:
            # It takes no further job then, and waits for the one that runs.
            self._running.cancel()

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._ending.wait(), seconds)
        except TimeoutError:
            return


async def _worked(app: App) -> None:
    await app.run_worker_async(
        install_signal_handlers=False,
        # What fails is in the log; a job that is needed again is made again.
        delete_jobs="always",
        update_heartbeat_interval=HEARTBEAT_S,
        stalled_worker_timeout=STALLED_S,
    )
