from __future__ import annotations

import base64
import json
import random

import pytest
from sqlalchemy import event, text

from advisor.store import plans
from advisor.store.engine import unit_of_work
from advisor.store.errors import BadCursor
from advisor.store.profiles import hardware_profiles, model_profiles
from tests.store.samples import hardware, model
from tests.store.test_plans import plan


def add(session_factory, *names, vendor="nvidia"):
    with unit_of_work(session_factory) as session:
        for name in names:
            hardware_profiles.create(session, hardware(name, vendor))


def read_pages(session_factory, limit, filters=None, between=lambda: None):
    """Every name in the order read; `between` runs after each page."""
    names, cursor = [], None
    while True:
        with unit_of_work(session_factory, read_only=True) as session:
            items, cursor = hardware_profiles.page(session, limit, cursor, filters)
        names += [item.name for item in items]
        assert len(items) <= limit
        if cursor is None:
            return names
        between()


def test_names_are_listed_in_the_order_of_their_code_points_on_both_databases(session_factory):
    names = ["a_b", "a-b", "a.b", "ab", "a", "a1", "b", "0", "a-a", "aa"]
    add(session_factory, *names)
    assert read_pages(session_factory, 100) == sorted(names)


@pytest.mark.parametrize("limit", [1, 2, 3, 6, 7, 8])
def test_pages_of_any_size_give_every_profile_once(session_factory, limit):
    names = [f"n{i}" for i in range(7)]
    add(session_factory, *names)
    assert read_pages(session_factory, limit) == names


def test_a_page_that_ends_the_list_has_no_next_cursor(session_factory):
    add(session_factory, "a", "b")
    with unit_of_work(session_factory) as session:
        assert hardware_profiles.page(session, 2)[1] is None
        assert hardware_profiles.page(session, 1)[1] is not None


def test_profiles_inserted_and_deleted_between_pages_cause_no_repeat_and_no_gap(session_factory):
    lasting = [f"n{i:03}" for i in range(0, 100, 2)]
    add(session_factory, *lasting, "n001")
    newcomers = [f"n{i:03}" for i in range(3, 100, 2)]
    random.Random(1).shuffle(newcomers)

    def change():
        for _ in range(3):
            add(session_factory, newcomers.pop())
        with unit_of_work(session_factory) as session:
            if "n001" in hardware_profiles.names(session):
                hardware_profiles.delete(session, "n001", 1)

    names = read_pages(session_factory, 7, between=change)
    assert names == sorted(set(names))
    assert set(lasting) <= set(names)


def test_a_cursor_outlives_the_profile_it_points_at(session_factory):
    add(session_factory, "a", "b", "c")
    with unit_of_work(session_factory) as session:
        items, cursor = hardware_profiles.page(session, 2)
        hardware_profiles.delete(session, "b", 1)
        rest, _ = hardware_profiles.page(session, 2, cursor)
    assert [item.name for item in items + rest] == ["a", "b", "c"]


def test_a_vendor_filter_lists_only_that_vendor(session_factory):
    add(session_factory, "a", "c", "e", vendor="nvidia")
    add(session_factory, "b", "d", vendor="amd")
    assert read_pages(session_factory, 2, {"vendor": "nvidia"}) == ["a", "c", "e"]
    assert read_pages(session_factory, 1, {"vendor": "amd"}) == ["b", "d"]
    assert read_pages(session_factory, 1, {"vendor": "intel"}) == []


def test_a_filter_follows_what_a_replacement_says(session_factory):
    with unit_of_work(session_factory) as session:
        model_profiles.create(session, model("a", family="llama"))
        model_profiles.replace(session, "a", model("a", family="qwen3"), 1)
        assert model_profiles.page(session, 9, None, {"family": "llama"}) == ([], None)
        assert len(model_profiles.page(session, 9, None, {"family": "qwen3"})[0]) == 1


def test_a_filter_that_does_not_exist_is_an_error_of_the_caller(session_factory):
    with unit_of_work(session_factory) as session, pytest.raises(KeyError, match="colour"):
        hardware_profiles.page(session, 1, None, {"colour": "green"})


def encoded(content):
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode()


@pytest.fixture
def good_cursor(session_factory):
    add(session_factory, "a", "b")
    with unit_of_work(session_factory) as session:
        return hardware_profiles.page(session, 1)[1]


def test_a_cursor_says_nothing_that_a_caller_could_read_at_a_glance(good_cursor):
    assert good_cursor.isascii()
    assert not set(good_cursor) & set("{}\"':/+ ")


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "====",
        "😀",
        "\x00",
        "a" * 5000,
        "[" * 4000,
        encoded(None),
        encoded("a"),
        encoded({}),
        encoded({"after": "a"}),
        encoded({"after": 1, "filters": {}, "list": "hardware_profiles"}),
        encoded({"after": ["a"], "filters": {}, "list": "hardware_profiles"}),
        encoded({"after": "\x00", "filters": {}, "list": "hardware_profiles"}),
        encoded({"after": "\ud800", "filters": {}, "list": "hardware_profiles"}),
        encoded({"after": "a", "filters": {}, "list": "model_profiles"}),
        encoded({"after": "a", "filters": {"vendor": "amd"}, "list": "hardware_profiles"}),
        encoded({"list": "hardware_profiles", "filters": {}, "after": "a"}),
        base64.urlsafe_b64encode(b"[" * 3000).decode(),
        base64.urlsafe_b64encode(b"\xff\xfe").decode(),
    ],
)
def test_a_forged_cursor_is_refused(session_factory, cursor):
    with unit_of_work(session_factory) as session, pytest.raises(BadCursor):
        hardware_profiles.page(session, 1, cursor)


def test_a_cursor_with_a_stray_character_anywhere_is_refused(session_factory, good_cursor):
    for position in range(len(good_cursor) + 1):
        forged = f"{good_cursor[:position]}!{good_cursor[position:]}"
        with unit_of_work(session_factory) as session, pytest.raises(BadCursor):
            hardware_profiles.page(session, 1, forged)


def test_a_cursor_of_another_list_or_filter_is_refused(session_factory, good_cursor):
    with unit_of_work(session_factory) as session:
        assert hardware_profiles.page(session, 1, good_cursor)[0][0].name == "b"
        with pytest.raises(BadCursor):
            hardware_profiles.page(session, 1, good_cursor, {"vendor": "nvidia"})
        with pytest.raises(BadCursor):
            model_profiles.page(session, 1, good_cursor)
        with pytest.raises(BadCursor):
            plans.page(session, 1, good_cursor)


def test_a_cursor_with_the_longest_filter_is_accepted(session_factory):
    vendor = "😀" * 100
    add(session_factory, "a" * 100, "b" * 100, vendor=vendor)
    assert len(read_pages(session_factory, 1, {"vendor": vendor})) == 2


MANY = 5000


@pytest.fixture
def many_profiles(engine, session_factory):
    """Thousands of profiles, as many tombstones, and the planner's statistics of them."""
    with unit_of_work(session_factory) as session:
        session.execute(
            text(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :many)"
                " INSERT INTO hardware_profiles (name, vendor, document, version, origin,"
                " catalogued, deleted, created_at, updated_at)"
                " SELECT 'n' || i, CASE WHEN i % 10 = 1 THEN 'amd' ELSE 'nvidia' END, '{}', 1,"
                " 'user', false, i % 2 = 0, '2026-01-01', '2026-01-01' FROM n"
            ),
            {"many": MANY},
        )
        for i in range(50):
            plans.add(session, plan(f"{i:032x}"))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE"))


@pytest.mark.parametrize(
    ("filters", "index"),
    [
        ({}, "ix_hardware_profiles_deleted_name"),
        ({"vendor": "amd"}, "ix_hardware_profiles_deleted_vendor_name"),
    ],
)
def test_a_page_is_read_from_an_index_in_its_order(
    engine, session_factory, many_profiles, filters, index
):
    statements = []

    @event.listens_for(engine, "before_cursor_execute")
    def remember(_connection, _cursor, statement, parameters, _context, _many):
        statements.append((statement, parameters))

    with unit_of_work(session_factory) as session:
        _, cursor = hardware_profiles.page(session, 50, None, filters)
        hardware_profiles.page(session, 50, cursor, filters)
        query, parameters = statements[-1]
        explain = "EXPLAIN QUERY PLAN " if engine.dialect.name == "sqlite" else "EXPLAIN "
        rows = session.connection().exec_driver_sql(explain + query, parameters).all()
    steps = "\n".join(str(row) for row in rows)
    assert index in steps
    assert "sort" not in steps.lower()
    assert "TEMP B-TREE" not in steps
