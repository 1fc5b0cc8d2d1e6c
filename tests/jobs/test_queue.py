from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import psycopg
import pytest
from procrastinate import App
from sqlalchemy import text

from advisor.jobs.queue import Work, enqueue, make_app
from advisor.store.engine import libpq_url, make_engine, session_factory, unit_of_work
from advisor.store.migrate import downgrade, upgrade


@pytest.fixture
def sessions(postgresql_url):
    engine = make_engine(postgresql_url)
    yield session_factory(engine)
    engine.dispose()


def jobs(url: str) -> list[tuple[str, str]]:
    with psycopg.connect(libpq_url(url)) as connection:
        rows = connection.execute(
            "SELECT args->>'sweep_id', status::text FROM advisor_jobs.procrastinate_jobs"
            " WHERE task_name = 'advance_sweep' ORDER BY id"
        )
        return [(str(sweep), str(status)) for sweep, status in rows]


def change(url: str, statement: str) -> None:
    with psycopg.connect(libpq_url(url)) as connection:
        connection.execute(statement)


@dataclass
class Chunks:
    """Sweeps with so many chunks each; `order` is that in which they were answered."""

    left: dict[str, int]
    order: list[str] = field(default_factory=list)

    def advance(self, sweep_id: str) -> bool:
        if not self.left[sweep_id]:
            return False
        self.left[sweep_id] -= 1
        self.order.append(sweep_id)
        return True

    def work(self, url: str, *, slice_s: float = 30) -> None:
        """Run jobs until there are none."""

        async def until_idle(app: App) -> None:
            await app.run_worker_async(
                wait=False, install_signal_handlers=False, delete_jobs="always"
            )

        self._run(url, until_idle, slice_s)

    def look_after(self, url: str) -> None:
        async def once(app: App) -> None:
            await app.tasks["look_after"](timestamp=0)

        self._run(url, once, 0)

    def _run(self, url: str, what: Callable[[App], Awaitable[None]], slice_s: float) -> None:
        work = Work(self.advance, lambda each: self.left[each] > 0, lambda: list(self.left))
        app = make_app(libpq_url(url), work, lambda: False, slice_s=slice_s)
        # What is due each minute runs when a test says so.
        app.periodic_registry.periodic_tasks.clear()

        async def run() -> None:
            async with app.open_async():
                await what(app)

        asyncio.run(run())


def test_a_job_is_there_once_the_transaction_commits(sessions, postgresql_url):
    with unit_of_work(sessions) as session:
        enqueue(session, "one")
        assert jobs(postgresql_url) == []
    assert jobs(postgresql_url) == [("one", "todo")]


def test_a_transaction_that_is_rolled_back_leaves_no_job(sessions, postgresql_url):
    with pytest.raises(ZeroDivisionError), unit_of_work(sessions) as session:
        enqueue(session, "one")
        raise ZeroDivisionError
    assert jobs(postgresql_url) == []


def test_the_transaction_finds_its_own_tables_after_it_has_sent_jobs(sessions):
    with unit_of_work(sessions) as session:
        enqueue(session, "one")
        assert session.scalar(text("SELECT count(*) FROM plans")) == 0


def test_a_worker_answers_every_chunk_and_leaves_no_job(sessions, postgresql_url):
    with unit_of_work(sessions) as session:
        enqueue(session, "one")
        enqueue(session, "two")
    chunks = Chunks({"one": 5, "two": 3})
    chunks.work(postgresql_url)
    assert chunks.left == {"one": 0, "two": 0}
    assert jobs(postgresql_url) == []


def test_sweeps_take_turns_when_a_slice_is_over(sessions, postgresql_url):
    with unit_of_work(sessions) as session:
        enqueue(session, "one")
        enqueue(session, "two")
    chunks = Chunks({"one": 3, "two": 3})
    chunks.work(postgresql_url, slice_s=0)
    assert chunks.order == ["one", "two"] * 3


def test_whoever_works_on_a_sweep_leaves_a_job_for_others_to_take_part(sessions, postgresql_url):
    seen = []

    class Watching(Chunks):
        def advance(self, sweep_id: str) -> bool:
            seen.append(jobs(postgresql_url))
            return super().advance(sweep_id)

    with unit_of_work(sessions) as session:
        enqueue(session, "one")
    Watching({"one": 2}).work(postgresql_url)
    assert seen[:2] == [[("one", "doing")], [("one", "doing"), ("one", "todo")]]
    assert jobs(postgresql_url) == []


def test_a_sweep_that_fails_is_tried_again_once_it_is_looked_after(sessions, postgresql_url):
    class Failing(Chunks):
        def advance(self, sweep_id: str) -> bool:
            self.order.append(sweep_id)
            raise ZeroDivisionError

    with unit_of_work(sessions) as session:
        enqueue(session, "one")
    failing = Failing({"one": 1})
    failing.work(postgresql_url)
    assert failing.order == ["one"]
    assert jobs(postgresql_url) == []
    failing.look_after(postgresql_url)
    failing.look_after(postgresql_url)
    assert jobs(postgresql_url) == [("one", "todo")]


@pytest.mark.parametrize(("silent_s", "status"), [(61, "todo"), (30, "doing")])
def test_jobs_of_workers_that_have_died_and_of_no_other_are_made_again(
    sessions, postgresql_url, silent_s: int, status: str
):
    with unit_of_work(sessions) as session:
        enqueue(session, "one")
    change(
        postgresql_url,
        "SET search_path TO advisor_jobs;"
        "INSERT INTO procrastinate_workers (last_heartbeat)"
        f" VALUES (now() - interval '{silent_s} s');"
        "UPDATE procrastinate_jobs SET status = 'doing',"
        " worker_id = (SELECT id FROM procrastinate_workers)",
    )
    assert jobs(postgresql_url) == [("one", "doing")]
    Chunks({"one": 1} if status == "todo" else {}).look_after(postgresql_url)
    assert jobs(postgresql_url) == [("one", status)]


def test_the_queue_goes_down_with_jobs_in_it_and_up_again(sessions, postgresql_url):
    with unit_of_work(sessions) as session:
        enqueue(session, "one")
    downgrade(postgresql_url, "0007")
    with pytest.raises(psycopg.errors.UndefinedTable):
        jobs(postgresql_url)
    upgrade(postgresql_url)
    assert jobs(postgresql_url) == []
