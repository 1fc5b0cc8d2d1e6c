"""Clients that ask one thing after the other, each under a key of its own, whatever happens."""

from __future__ import annotations

import threading
import time
from itertools import count, takewhile
from typing import Any

from tests.servers import Refused, Server

CLIENTS = 4
CHECKS = "/v1/terminology/checks"
BODY = {"text": "Decode is memory-bound."}


class Clients:
    """What they were answered, refused, and never told, by key."""

    def __init__(self, server: Server) -> None:
        self.answers: dict[str, dict[str, Any]] = {}
        self.failures: dict[str, Refused] = {}
        self.lost: dict[str, OSError] = {}
        self.slowest_failure_s = 0.0
        self._server, self._end = server, threading.Event()
        self._threads = [
            threading.Thread(target=self._ask, args=(client,)) for client in range(CLIENTS)
        ]

    def send(self, key: str) -> dict[str, Any]:
        """Ask under a key."""
        return self._server.post(CHECKS, BODY, key)

    def _ask(self, client: int) -> None:
        for number in takewhile(lambda _: not self._end.is_set(), count()):
            key, begun = f"{client}-{number}", time.monotonic()
            try:
                self.answers[key] = self.send(key)
            except Refused as error:
                self.failures[key] = error
                self.slowest_failure_s = max(self.slowest_failure_s, time.monotonic() - begun)
            except OSError as error:
                self.lost[key] = error

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()
