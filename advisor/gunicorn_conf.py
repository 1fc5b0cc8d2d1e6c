"""gunicorn's configuration: `gunicorn --config python:advisor.gunicorn_conf`.

What an operator may change comes from `advisor.config.Settings`; the rest holds for every
deployment and is explained here.
"""

from __future__ import annotations

import atexit
import gc
import json
import logging
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from gunicorn import util
from gunicorn.arbiter import Arbiter
from gunicorn.config import Config
from gunicorn.glogging import Logger
from gunicorn.workers.base import Worker

from advisor.config import Settings
from advisor.service.keys import without_keys

if TYPE_CHECKING:
    from advisor.web.sweeps import Sweeps

_settings = Settings.from_environment()

wsgi_app = "advisor.wsgi:app"
# Workers begin as copies of a process that has read the code: one that has died is replaced in an
# instant, not in the seconds that takes.
preload_app = True
_host = f"[{_settings.host}]" if ":" in _settings.host else _settings.host
bind = f"{_host}:{_settings.port}"
worker_class = "gthread"
workers = _settings.workers
threads = _settings.threads
loglevel = _settings.log_level.lower()

# Workers touch a file there to show that they live; on a busy disk that can block for seconds.
if Path("/dev/shm").is_dir():  # noqa: S108 - gunicorn makes its own private file in it
    worker_tmp_dir = "/dev/shm"  # noqa: S108

# A worker is replaced now and then, so that a leak never grows for weeks; the jitter keeps the
# workers from leaving together.
max_requests = 50_000
max_requests_jitter = 5_000

# Seconds: a worker that is silent for `timeout` is killed; one told to stop has
# `graceful_timeout` to finish what it has begun.
timeout = 30
graceful_timeout = 30
keepalive = 5

# Past these the answer is 414 or 431. No path or query of the API comes near.
limit_request_line = 4094
limit_request_fields = 64
limit_request_field_size = 8190

# Nothing here uses the command socket, and it would be made in the home directory. Requests are
# logged by the application, with their ids, so no access log either.
control_socket_disable = True


class _FormatterWithoutKeys(logging.Formatter):
    """What another formatter makes of a record, without API keys."""

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self._inner = inner

    def format(self, record: logging.LogRecord) -> str:
        return without_keys(self._inner.format(record))


class LoggerWithoutKeys(Logger):  # type: ignore[misc]
    """The server's own log. It repeats what it cannot parse, such as a header with a key in it."""

    def setup(self, cfg: Config) -> None:
        """Set the handlers up: at the start, and again at each SIGHUP."""
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(_FormatterWithoutKeys(handler.formatter or logging.Formatter()))


logger_class = LoggerWithoutKeys


def _share_counters() -> None:
    """Give the workers one directory for their counters, so that `/metrics` adds them up.

    Files there are named by the place of a worker, not by its process: who takes the place of
    another counts on in its files. Otherwise `/metrics` would read those of all workers there ever
    were.
    """
    directory, owner = tempfile.mkdtemp(prefix="advisor-metrics-"), os.getpid()
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = directory
    # The metrics library looks at the variable on import.
    from prometheus_client import values

    values.ValueClass = values.MultiProcessValue(lambda: _place)  # type: ignore[no-untyped-call]

    @atexit.register
    def remove() -> None:
        # The workers inherit this.
        if os.getpid() == owner:
            shutil.rmtree(directory)


_place = "none"
"""Which of the workers this process is."""

# Before the application is read, which makes its counters.
_share_counters()


def when_ready(_server: Arbiter) -> None:
    """Leave what is in memory before there are workers out of garbage collection, so that they go
    on sharing it, and do not walk through it when they end, which took 1.1 s of a core."""
    gc.freeze()


def pre_fork(server: Arbiter, worker: Worker) -> None:
    """Give a worker that is about to begin the first place that no other has."""
    taken = {each.place for each in server.WORKERS.values()}
    worker.place = next(place for place in map(str, count()) if place not in taken)


def post_fork(server: Arbiter, worker: Worker) -> None:
    """Let a worker know its place."""
    global _place  # noqa: PLW0603 - a process has one
    _place = worker.place


def write_problem(client: socket.socket, status: int, _reason: str, detail: str) -> None:
    """Answer a request that is not even HTTP in the shape of the service's other errors."""
    title = HTTPStatus(status).phrase
    problem = {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": detail or title,
        # There is no path yet to refer to.
        "instance": "",
        "errors": [],
    }
    body = json.dumps(problem).encode()
    head = (
        f"HTTP/1.1 {status} {title}\r\n"
        "Connection: close\r\n"
        "Content-Type: application/problem+json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    util.write_nonblock(client, head.encode() + body)


def post_worker_init(worker: Worker) -> None:
    """Replace the HTML page that gunicorn answers to what it cannot parse, and its way to close a
    connection: the thread that takes new ones would wait up to 2 s for the client to close its
    side, and take none meanwhile. What sweeps have left open is gone on with."""
    util.write_error = write_problem
    util.close_graceful = _closed_aside(util.close_graceful)
    for sweeps in _sweeps(worker):
        sweeps.begin()


def worker_exit(_server: Arbiter, worker: Worker) -> None:
    """Let the sweep that the worker is at have what was begun."""
    for sweeps in _sweeps(worker):
        sweeps.end()


def _sweeps(worker: Worker) -> list[Sweeps]:
    """What has sweeps answered in this worker; none where it serves another application."""
    found = getattr(worker.wsgi, "extensions", {}).get("advisor-sweeps")
    return [] if found is None else [found]


def _closed_aside(close: Callable[[socket.socket], None]) -> Callable[[socket.socket], None]:
    """The same in threads of its own; at once where `_MOST_LINGERING` clients let it wait."""
    threads = ThreadPoolExecutor(_MOST_LINGERING, "closing")
    free = threading.BoundedSemaphore(_MOST_LINGERING)

    def closed(client: socket.socket) -> None:
        try:
            close(client)
        finally:
            free.release()

    def close_aside(client: socket.socket) -> None:
        if free.acquire(blocking=False):
            threads.submit(closed, client)
        else:
            util.close(client)

    return close_aside


_MOST_LINGERING = 16
"""Clients that a worker waits for at once, each in a thread: half as many as answer requests where
`ADVISOR_THREADS` is left at 32. An estimate."""
