"""`make soak`, of the length that its options say."""

from __future__ import annotations

import argparse
import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from advisor.service import catalogue
from advisor.service.database import Database
from advisor.store.migrate import upgrade
from tests.chaos.clients import Clients
from tests.postgres import postgresql_server
from tests.servers import Server, running, wait_until
from tests.soak.clients import load, resident_mib
from tests.soak.generated import statuses
from tests.web.fixtures import running_app

MOST_GROWTH_MIB = 10
CLIENTS = 8
WARM_UP = 0.2
"""Share of a run after which memory is looked at."""


def main() -> None:
    """Run all, and end with 1 where something did not hold."""
    reader = argparse.ArgumentParser(prog="make soak", description=__doc__)
    reader.add_argument("--seconds", type=float, default=600, help="of mixed load")
    reader.add_argument("--requests", type=int, default=100_000, help="without an error")
    reader.add_argument("--kills", type=int, default=30, help="of a worker under load")
    reader.add_argument("--outages", type=int, default=5, help="of PostgreSQL under load")
    reader.add_argument("--generated", type=int, default=10_000, help="requests, none a 500")
    wanted = reader.parse_args()
    held = [
        mixed_load(wanted.seconds, sys.maxsize),
        mixed_load(3600, wanted.requests),
        kills(wanted.kills),
        outages(wanted.outages),
        generated_requests(wanted.generated),
    ]
    sys.exit(0 if all(held) else 1)


def mixed_load(seconds: float, requests: int) -> bool:
    """No error, and no memory that grows with the requests."""
    with _served() as (server, _):
        begun, memory, last = time.monotonic(), list[tuple[int, float]](), None
        for seen in load(server, CLIENTS, requests, seconds):
            last = seen
            if len(memory) < seen.requests // 500:
                memory.append((seen.requests, max(map(resident_mib, server.workers()))))
        spent = time.monotonic() - begun
    assert last is not None
    warm = [mib for n, mib in memory if n >= WARM_UP * last.requests]
    growth = warm[-1] - warm[0] if warm else float("nan")
    print(
        f"mixed load: {last.requests:,} requests in {spent:.0f} s, {last.errors} errors; "
        f"{dict(sorted(last.statuses.items()))}; the largest worker grew by {growth:.1f} MiB "
        f"after the first {WARM_UP:.0%}",
        flush=True,
    )
    return last.errors == 0 and growth <= MOST_GROWTH_MIB


def kills(number: int) -> bool:
    """Workers are killed under load; what is sent again is done once."""
    with _served() as (server, database):
        clients = Clients(server)
        clients.start()
        longest = 0.0
        for _ in range(number):
            before = len(clients.answers)
            wait_until(lambda: len(clients.answers) > before + 10)  # noqa: B023
            begun, before = time.monotonic(), len(clients.answers)
            os.kill(random.choice(server.workers()), signal.SIGKILL)
            wait_until(lambda: len(clients.answers) > before)  # noqa: B023
            longest = max(longest, time.monotonic() - begun)
        clients.stop()
        again = [clients.send(key) for key in clients.lost]
        with sqlite3.connect(database) as connection:
            (rows,) = connection.execute("SELECT count(*) FROM terminology_checks").fetchone()
    ids = {answer["id"] for answer in (*clients.answers.values(), *again)}
    print(
        f"kills: {number}; {len(clients.answers):,} answered, {len(clients.lost)} lost and sent "
        f"again, {rows:,} rows; {longest:.2f} s at most to the next answer",
        flush=True,
    )
    return rows == len(ids) == len(clients.answers) + len(again)


def outages(number: int) -> bool:
    """PostgreSQL is stopped and started under load; what is sent again is done once."""
    with tempfile.TemporaryDirectory() as folder, postgresql_server(durable=True) as postgresql:
        url = postgresql.url.format(database="postgres")
        upgrade(url)
        with running(url, Path(folder), {"ADVISOR_AUTHENTICATION": "off"}) as server:
            clients = Clients(server)
            clients.start()
            longest = 0.0
            for _ in range(number):
                before = len(clients.answers)
                wait_until(lambda: len(clients.answers) > before + 20)  # noqa: B023
                postgresql.stop()
                time.sleep(1)
                postgresql.start()
                begun, before = time.monotonic(), len(clients.answers)
                wait_until(lambda: len(clients.answers) > before)  # noqa: B023
                longest = max(longest, time.monotonic() - begun)
            clients.stop()
            again = [clients.send(key) for key in clients.failures]
    ids = {answer["id"] for answer in (*clients.answers.values(), *again)}
    codes = {error.status for error in clients.failures.values()}
    print(
        f"outages: {number}; {len(clients.answers):,} answered, {len(clients.failures)} refused "
        f"with {sorted(codes)} and sent again, {len(ids):,} checks; {longest:.2f} s at most from "
        "its return to the next answer",
        flush=True,
    )
    return codes <= {503} and len(ids) == len(clients.answers) + len(again) and not clients.lost


def generated_requests(number: int) -> bool:
    """No request that can be made of the specification is answered by a failure of ours."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/advisor.sqlite3"
        _catalogued(url)
        for app in running_app(url, log_level="ERROR"):
            found = statuses(app, number)
    print(f"generated: {found.total():,} requests; {dict(sorted(found.items()))}", flush=True)
    return all(status < 500 for status in found)


@contextmanager
def _served() -> Iterator[tuple[Server, Path]]:
    """A server of two workers on SQLite with the catalogue."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "advisor.sqlite3"
        url = f"sqlite:///{file}"
        _catalogued(url)
        with running(url, Path(folder), {"ADVISOR_WORKERS": "2"}) as server:
            yield server, file


def _catalogued(url: str) -> None:
    upgrade(url)
    database = Database(url)
    catalogue.load(database)
    database.close()


if __name__ == "__main__":
    main()
