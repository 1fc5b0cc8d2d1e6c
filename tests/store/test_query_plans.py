"""Pages and look-ups read what they answer, however many rows there are: the databases' own plans
of the statements say so."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import Engine, event
from sqlalchemy.orm import Session, sessionmaker

from advisor.store import plans
from advisor.store.engine import unit_of_work
from advisor.store.profiles import hardware_profiles, model_profiles
from advisor.store.tables import HardwareProfileRow, ModelNameRow, ModelProfileRow, PlanRow

ROWS = 5_000
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def filled(engine: Engine) -> Engine:
    """A database with many rows in the tables that grow."""
    profile = {
        "document": {}, "version": 1, "origin": "user", "catalogued": False, "deleted": False,
        "created_at": NOW, "updated_at": NOW,
    }  # fmt: skip
    names = [f"name-{i:05}" for i in range(ROWS)]
    rows: dict[Any, list[dict[str, Any]]] = {
        HardwareProfileRow: [
            profile | {"name": n, "vendor": f"vendor-{i % 50}"} for i, n in enumerate(names)
        ],
        ModelProfileRow: [
            profile | {"name": n, "family": f"family-{i % 50}"} for i, n in enumerate(names)
        ],
        ModelNameRow: [{"label": n, "model": n} for n in names],
        PlanRow: [
            {
                "id": f"{i:032x}", "created_at": NOW, "model": names[i % 50], "objective": "cost",
                "planner_version": "0", "request": {}, "answer": "{}",
            }
            for i in range(ROWS)
        ],
    }  # fmt: skip
    with engine.begin() as connection:
        for table, values in rows.items():
            connection.execute(sa.insert(table), values)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(sa.text("ANALYZE"))
    return engine


QUESTIONS: dict[str, Callable[[Session], object]] = {
    "a page of devices": lambda s: hardware_profiles.page(s, 50),
    "a later page of devices": lambda s: _second(
        lambda cursor: hardware_profiles.page(s, 50, cursor)
    ),
    "a page of a vendor's": lambda s: hardware_profiles.page(s, 50, None, {"vendor": "vendor-7"}),
    "a page of models": lambda s: model_profiles.page(s, 50),
    "a page of a family": lambda s: model_profiles.page(s, 50, None, {"family": "family-7"}),
    "names near a device's": lambda s: hardware_profiles.names(s, "name-02500x"),
    "names near a model's": lambda s: model_profiles.names(s, "name-02500x"),
    "a device": lambda s: hardware_profiles.get(s, "name-02500"),
    "a model": lambda s: model_profiles.get(s, "name-02500"),
    "a page of plans": lambda s: plans.page(s, 50),
    "a plan": lambda s: plans.get(s, f"{2500:032x}"),
}


def _second(page: Callable[[str | None], tuple[object, str | None]]) -> None:
    assert page(page(None)[1])


@pytest.fixture
def statements(filled: Engine) -> Iterator[list[tuple[str, Any]]]:
    """What is sent to the database from now on."""
    sent: list[tuple[str, Any]] = []

    def note(_1, _2, statement: str, parameters: Any, _3, _4) -> None:
        if statement.lstrip().upper().startswith("SELECT"):
            sent.append((statement, parameters))

    event.listen(filled, "before_cursor_execute", note)
    yield sent
    event.remove(filled, "before_cursor_execute", note)


def test_no_question_scans_a_table_or_sorts_it(
    filled: Engine, session_factory: sessionmaker[Session], statements: list[Any]
) -> None:
    explain = "EXPLAIN QUERY PLAN " if filled.dialect.name == "sqlite" else "EXPLAIN "
    for name, question in QUESTIONS.items():
        statements.clear()
        with unit_of_work(session_factory) as session:
            question(session)
        asked = list(statements)
        assert asked, name
        for statement, parameters in asked:
            with filled.connect() as connection:
                plan = connection.exec_driver_sql(explain + statement, parameters).all()
            text = "\n".join(str(line[-1]) for line in plan)
            assert re.search(r"USING.* INDEX|Index", text), (name, text)
            scans = re.search(r"^SCAN (?!.*INDEX)|TEMP B-TREE|Seq Scan|Sort", text, re.MULTILINE)
            assert not scans, (name, text)
