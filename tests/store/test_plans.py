from __future__ import annotations

import json
import time
from datetime import UTC, datetime

import pytest

from advisor.store import ids, plans
from advisor.store.engine import unit_of_work
from advisor.store.errors import NotFound
from tests.store.samples import outcomes_at_once

ANSWER = '{"b": 1.50, "a": "\\u0000 \\ud83d\\ude00", "cost": "0.10", "e": 1e2}'


def plan(plan_id, model="llama", answer=ANSWER):
    return plans.StoredPlan(
        id=plan_id,
        created_at=datetime.now(UTC),
        model=model,
        objective="cost",
        planner_version="0.1.0",
        request={"model": model, "hardware": ["h100"]},
        answer=answer,
    )


def test_a_plan_is_read_back_with_the_exact_text_of_its_answer(session_factory):
    stored = plan(ids.new_id())
    with unit_of_work(session_factory) as session:
        plans.add(session, stored)
    with unit_of_work(session_factory, read_only=True) as session:
        assert plans.get(session, stored.id) == stored


def test_an_answer_of_a_megabyte_is_read_back(session_factory):
    stored = plan(ids.new_id(), answer=json.dumps({"text": "漢" * 1_000_000}, ensure_ascii=False))
    with unit_of_work(session_factory) as session:
        plans.add(session, stored)
    with unit_of_work(session_factory) as session:
        assert plans.get(session, stored.id).answer == stored.answer


def test_a_plan_that_was_never_made_is_not_found(session_factory):
    with unit_of_work(session_factory) as session, pytest.raises(NotFound) as refusal:
        plans.get(session, "no-such-plan")
    assert refusal.value.name == "no-such-plan"


def test_plans_are_listed_newest_first_without_their_answers(session_factory):
    made = []
    for _ in range(5):
        made.append(plan(ids.new_id()))
        time.sleep(0.002)
        with unit_of_work(session_factory) as session:
            plans.add(session, made[-1])
    with unit_of_work(session_factory) as session:
        first, cursor = plans.page(session, 3)
        rest, end = plans.page(session, 3, cursor)
    assert [p.id for p in first + rest] == [p.id for p in reversed(made)]
    assert end is None
    assert first[0] == plans.PlanSummary(
        **{name: getattr(made[-1], name) for name in plans.PlanSummary.__slots__}
    )


def test_plans_made_between_pages_cause_no_repeat_and_no_gap(session_factory):
    def make(number):
        with unit_of_work(session_factory) as session:
            for _ in range(number):
                plans.add(session, plan(ids.new_id()))

    make(20)
    with unit_of_work(session_factory) as session:
        before = {p.id for p in plans.page(session, 100)[0]}
    seen: list[str] = []
    cursor = None
    while cursor is not None or not seen:
        with unit_of_work(session_factory) as session:
            items, cursor = plans.page(session, 6, cursor)
        seen += [p.id for p in items]
        time.sleep(0.002)
        make(2)
    assert len(seen) == len(set(seen))
    assert set(seen) == before


def test_plans_are_listed_by_model(session_factory):
    with unit_of_work(session_factory) as session:
        for model in ("llama", "qwen", "llama"):
            plans.add(session, plan(ids.new_id(), model))
        found, _ = plans.page(session, 10, None, {"model": "llama"})
    assert [p.model for p in found] == ["llama", "llama"]


def test_ids_sort_by_the_time_they_were_made_and_never_repeat():
    made = []
    for _ in range(20):
        made.append(ids.new_id())
        time.sleep(0.0015)
    assert made == sorted(made)
    assert len({ids.new_id() for _ in range(10_000)}) == 10_000
    assert all(len(i) == 32 and i.isalnum() and i == i.lower() for i in made)


def test_many_plans_may_be_stored_at_once(session_factory):
    def make(_index):
        with unit_of_work(session_factory) as session:
            plans.add(session, plan(ids.new_id()))

    assert outcomes_at_once(50, make) == {"done": 50}
    with unit_of_work(session_factory) as session:
        assert len(plans.page(session, 100)[0]) == 50
