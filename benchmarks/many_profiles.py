"""Pages and look-ups of profiles beside a hundred times as many rows, on both databases."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from advisor.store.engine import make_engine, session_factory, unit_of_work
from advisor.store.migrate import upgrade
from advisor.store.profiles import hardware_profiles
from advisor.store.tables import HardwareProfileRow
from benchmarks.timing import least_ms
from tests.postgres import postgresql_server
from tests.web.bodies import HARDWARE

FEW, MANY = 1_000, 100_000
ROUNDS = 40
QUESTIONS: dict[str, Callable[[Session, int], object]] = {
    "first page of 50": lambda session, _: hardware_profiles.page(session, 50),
    "50 of one vendor": lambda session, _: hardware_profiles.page(
        session, 50, None, {"vendor": "vendor-7"}
    ),
    "one by name": lambda session, rows: hardware_profiles.get(session, _name(rows // 2)),
}


def main() -> None:
    """Print the least wall time of each question, and what a hundred times as many rows make it."""
    print(f"Profiles: least of {ROUNDS}, {FEW:,} and {MANY:,} rows")
    with tempfile.TemporaryDirectory() as folder, postgresql_server() as server:
        for name, urls in {
            "SQLite": [f"sqlite:///{Path(folder) / str(rows)}" for rows in (FEW, MANY)],
            "PostgreSQL": [server.url.format(database=each) for each in ("postgres", "template1")],
        }.items():
            few, many = (_times(url, rows) for url, rows in zip(urls, (FEW, MANY), strict=True))
            for question, before in few.items():
                after = many[question]
                print(
                    f"  {name}, {question}: {before:.2f} ms and {after:.2f} ms, "
                    f"{after / before:.2f} times"
                )


def _times(url: str, rows: int) -> dict[str, float]:
    with _filled(url, rows) as engine, unit_of_work(session_factory(engine)) as session:
        return {
            name: least_ms(lambda ask=ask: ask(session, rows), ROUNDS)  # type: ignore[misc]
            for name, ask in QUESTIONS.items()
        }


@contextmanager
def _filled(url: str, rows: int) -> Iterator[Engine]:
    upgrade(url)
    # Filling it takes longer than a statement of the service may.
    engine, moment = make_engine(url, timeout_ms=60_000), datetime(2026, 1, 1, tzinfo=UTC)
    row = {
        "document": HARDWARE, "version": 1, "origin": "user", "catalogued": False, "deleted": False,
        "created_at": moment, "updated_at": moment,
    }  # fmt: skip
    each = (row | {"name": _name(i), "vendor": f"vendor-{i % 10}"} for i in range(rows))
    with engine.begin() as connection:
        connection.execute(sa.insert(HardwareProfileRow), list(each))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(sa.text("ANALYZE"))
    yield engine
    engine.dispose()


def _name(number: int) -> str:
    return f"profile-{number:06}"


if __name__ == "__main__":
    main()
