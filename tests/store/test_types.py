from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import insert, select, text
from sqlalchemy.exc import StatementError

from advisor.store.tables import PlanRow

FIELDS = {"model": "m", "objective": "cost", "planner_version": "1", "request": {}, "answer": ""}
AHEAD = datetime(2026, 3, 29, 3, 30, 0, 123456, tzinfo=timezone(timedelta(hours=2)))


def test_an_instant_comes_back_as_itself_in_utc_whatever_the_zones(engine):
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SET TIME ZONE 'Asia/Tokyo'"))
        connection.execute(insert(PlanRow).values(id="x", created_at=AHEAD, **FIELDS))
        read = connection.scalar(select(PlanRow.created_at))
    assert read == AHEAD
    assert read.tzinfo is UTC


def test_a_time_without_a_zone_is_refused(engine):
    with engine.begin() as connection, pytest.raises(StatementError, match="no time zone"):
        naive = AHEAD.replace(tzinfo=None)
        connection.execute(insert(PlanRow).values(id="x", created_at=naive, **FIELDS))
