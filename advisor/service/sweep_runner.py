"""Sweeps answered by a thread of the service itself, where no other process does it."""

from __future__ import annotations

import threading

import structlog

from advisor.service.database import Database
from advisor.service.sweep_work import Worker
from advisor.service.sweeps import Loader, open_sweeps
from advisor.store.errors import DatabaseUnavailable

LOOK_S = 2.0
"""How often open sweeps are looked for that nobody has told of [s]: another process's, and those
from before a restart."""

_log = structlog.get_logger()


class SweepRunner:
    """A thread that answers whatever sweeps are open, a chunk at a time; every process of the
    service may have one."""

    def __init__(self, database: Database, load: Loader) -> None:
        self._database, self._worker = database, Worker(database, load)
        self._told, self._ending = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def tell(self) -> None:
        """There may be something to do: now, and from now on in this process."""
        self._told.set()
        with self._lock:
            if self._thread is None and not self._ending.is_set():
                self._thread = threading.Thread(target=self._run, name="sweeps", daemon=True)
                self._thread.start()

    def end(self) -> None:
        """Stop after the chunk at hand."""
        self._ending.set()
        self._told.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._ending.is_set():
            self._told.clear()
            try:
                for sweep_id in open_sweeps(self._database):
                    self._answer(sweep_id)
            except DatabaseUnavailable:
                _log.warning("sweeps wait for the database")
            self._told.wait(LOOK_S)

    def _answer(self, sweep_id: str) -> None:
        try:
            while not self._ending.is_set() and self._worker.advance(sweep_id):
                pass
        except DatabaseUnavailable:
            raise
        except Exception:
            # One that cannot be answered holds up no other; its chunk is given out again.
            _log.exception("sweep failed", sweep_id=sweep_id)
