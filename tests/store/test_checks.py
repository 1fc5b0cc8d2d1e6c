from __future__ import annotations

from datetime import UTC, datetime

import pytest

from advisor.store import checks, ids
from advisor.store.engine import unit_of_work
from advisor.store.errors import NotFound
from tests.store.samples import outcomes_at_once


@pytest.fixture
def check(session_factory):
    stored = checks.StoredCheck(
        id=ids.new_id(),
        created_at=datetime.now(UTC),
        request={"text": "memory-bound \x00 😀", "format": "plain", "plan_id": None},
        answer={"findings": [], "answered": 0},
    )
    with unit_of_work(session_factory) as session:
        checks.add(session, stored)
    return stored


def test_a_check_is_read_back_as_it_was_given(session_factory, check):
    with unit_of_work(session_factory, read_only=True) as session:
        assert checks.get(session, check.id) == check


def test_an_updated_check_has_its_new_answer_and_nothing_else_changed(session_factory, check):
    with unit_of_work(session_factory) as session:
        checks.update_answer(session, check.id, {"findings": ["one"]})
    with unit_of_work(session_factory) as session:
        read = checks.get(session, check.id)
    assert read.answer == {"findings": ["one"]}
    assert (read.request, read.created_at) == (check.request, check.created_at)


def test_a_check_that_was_never_made_is_not_found(session_factory):
    with unit_of_work(session_factory) as session:
        with pytest.raises(NotFound):
            checks.get(session, "no-such-check")
        with pytest.raises(NotFound):
            checks.update_answer(session, "no-such-check", {})


def test_answers_given_at_once_are_all_kept(session_factory, check):
    def answer(_index):
        with unit_of_work(session_factory) as session:
            answered = checks.get(session, check.id, lock=True).answer["answered"]
            checks.update_answer(session, check.id, {"answered": answered + 1})

    assert outcomes_at_once(20, answer) == {"done": 20}
    with unit_of_work(session_factory) as session:
        assert checks.get(session, check.id).answer == {"answered": 20}
