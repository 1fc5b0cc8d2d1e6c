"""Connections to PostgreSQL that do not wait for ever."""

from __future__ import annotations

import time
from typing import Any

import psycopg
from psycopg.abc import PQGen


class BoundedConnection(psycopg.Connection[Any]):
    """Gives up a server that no longer answers and yet keeps its connections open.

    `statement_timeout` is the server's own clock, at which a frozen machine does not look. This is
    the clock on our side.
    """

    longest_wait_s: float | None = None
    """Longest wait for what one statement needs [s]; None: no bound."""

    def wait(self, gen: PQGen[Any], interval: float = 0.1, timeout: float | None = None) -> Any:
        """The answer. OperationalError without one in time: the connection is closed then."""
        longest_s = timeout or self.longest_wait_s
        began = time.monotonic()
        try:
            return super().wait(gen, interval, longest_s)
        except psycopg.OperationalError:
            # Any earlier one is the server's own answer, which leaves the connection usable.
            if longest_s is not None and time.monotonic() - began >= longest_s:
                self.close()
            raise
