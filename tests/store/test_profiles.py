from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from advisor.store.engine import unit_of_work
from advisor.store.errors import NameTaken, NotFound, StaleVersion
from advisor.store.profiles import hardware_profiles, model_profiles
from tests.store.samples import hardware, model, outcomes_at_once

KINDS = [
    pytest.param(hardware_profiles, hardware, id="hardware"),
    pytest.param(model_profiles, model, id="models"),
]
each_kind = pytest.mark.parametrize(("profiles", "document"), KINDS)


@each_kind
def test_a_created_profile_is_read_back_as_it_was_given(session_factory, profiles, document):
    before = datetime.now(UTC)
    with unit_of_work(session_factory) as session:
        created = profiles.create(session, document("x", note="n"))
    with unit_of_work(session_factory) as session:
        read = profiles.get(session, "x")
    assert read == created
    assert (read.name, read.version, read.origin) == ("x", 1, "user")
    assert read.document == document("x", note="n")
    assert before <= read.created_at == read.updated_at <= datetime.now(UTC)
    assert read.created_at.utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    "text",
    ["\x00", "a\x00b", "😀 ñ 漢字", "\ud800", "x" * 100_000, "", " \t\r\n", "\\u0000", "'\"%:;--"],
    ids=["nul", "nul-within", "emoji", "surrogate", "long", "empty", "blank", "escape", "sql"],
)
def test_any_text_in_a_document_is_read_back_equal(session_factory, text):
    document = hardware("x", description=text, sources={text: text})
    with unit_of_work(session_factory) as session:
        hardware_profiles.create(session, document)
    with unit_of_work(session_factory) as session:
        assert hardware_profiles.get(session, "x").document == document


def test_numbers_and_the_order_of_keys_are_read_back_equal(session_factory):
    numbers = {"z": 5e-324, "a": -0.0, "m": 2**53 + 1, "b": 1.7976931348623157e308, "c": None}
    with unit_of_work(session_factory) as session:
        hardware_profiles.create(session, hardware("x", efficiency=numbers))
    with unit_of_work(session_factory) as session:
        read = hardware_profiles.get(session, "x").document["efficiency"]
    assert list(read.items()) == list(numbers.items())
    assert str(read["a"]) == "-0.0"


@each_kind
def test_a_name_may_have_a_hundred_characters(session_factory, profiles, document):
    with unit_of_work(session_factory) as session:
        profiles.create(session, document("n" * 100))
        assert profiles.get(session, "n" * 100).name == "n" * 100
    with (
        pytest.raises(Exception, match=r"name_length|too long"),
        unit_of_work(session_factory) as session,
    ):
        profiles.create(session, document("n" * 101))


@each_kind
def test_a_name_that_is_taken_is_refused_and_the_session_goes_on(
    session_factory, profiles, document
):
    with unit_of_work(session_factory) as session:
        profiles.create(session, document("x", note="first"))
        with pytest.raises(NameTaken) as refusal:
            profiles.create(session, document("x", note="second"))
        profiles.create(session, document("y"))
    assert refusal.value.name == "x"
    with unit_of_work(session_factory) as session:
        assert profiles.names(session) == ["x", "y"]
        assert profiles.get(session, "x").document["note"] == "first"


@each_kind
def test_of_many_creations_of_one_name_at_once_one_succeeds(session_factory, profiles, document):
    def create(index):
        with unit_of_work(session_factory) as session:
            profiles.create(session, document("x", note=index))

    assert outcomes_at_once(20, create) == {"done": 1, "NameTaken": 19}


@each_kind
def test_names_are_those_on_both_sides_of_the_one_asked_for(session_factory, profiles, document):
    with unit_of_work(session_factory) as session:
        for name in "abcdefg":
            profiles.create(session, document(name))
        profiles.delete(session, "c", 1)
        assert profiles.names(session, "D", most=2) == ["a", "b", "d", "e"]
        assert profiles.names(session, "dx", most=1) == ["d", "e"]
        assert profiles.names(session, "z", most=1) == ["g"]
        assert profiles.names(session, "\x00\ud800", most=1) == ["a"]


@each_kind
def test_what_does_not_exist_is_not_found(session_factory, profiles, document):
    with unit_of_work(session_factory) as session:
        with pytest.raises(NotFound, match="x"):
            profiles.get(session, "x")
        with pytest.raises(NotFound, match="x"):
            profiles.replace(session, "x", document("x"), 1)
        with pytest.raises(NotFound, match="x"):
            profiles.delete(session, "x", 1)
        assert profiles.get_many(session, ["x"]) == {}
        assert profiles.get_many(session, []) == {}
        assert profiles.names(session) == []


@each_kind
def test_a_replaced_profile_has_its_new_document_and_the_next_version(
    session_factory, profiles, document
):
    with unit_of_work(session_factory) as session:
        created = profiles.create(session, document("x", note="old"), "catalog")
    with unit_of_work(session_factory) as session:
        replaced = profiles.replace(session, "x", document("x", note="new"), created.version)
    with unit_of_work(session_factory) as session:
        read = profiles.get(session, "x")
    assert read == replaced
    assert (read.version, read.origin, read.document["note"]) == (2, "user", "new")
    assert read.created_at == created.created_at < read.updated_at


@each_kind
def test_a_stale_version_changes_nothing(session_factory, profiles, document):
    with unit_of_work(session_factory) as session:
        profiles.create(session, document("x", note="first"))
        profiles.replace(session, "x", document("x", note="second"), 1)
    with unit_of_work(session_factory) as session:
        for stale in (1, 3):
            with pytest.raises(StaleVersion) as refusal:
                profiles.replace(session, "x", document("x", note="third"), stale)
            assert refusal.value.current_version == 2
            with pytest.raises(StaleVersion):
                profiles.delete(session, "x", stale)
    with unit_of_work(session_factory) as session:
        assert profiles.get(session, "x").document["note"] == "second"


@each_kind
def test_of_fifty_replacements_of_one_version_at_once_one_succeeds(
    session_factory, profiles, document
):
    with unit_of_work(session_factory) as session:
        profiles.create(session, document("x"))

    def replace(index):
        with unit_of_work(session_factory) as session:
            profiles.replace(session, "x", document("x", note=index), 1)

    assert outcomes_at_once(50, replace) == {"done": 1, "StaleVersion": 49}
    with unit_of_work(session_factory) as session:
        assert profiles.get(session, "x").version == 2


@each_kind
def test_of_many_deletions_at_once_one_succeeds(session_factory, profiles, document):
    with unit_of_work(session_factory) as session:
        profiles.create(session, document("x"))

    def delete(_index):
        with unit_of_work(session_factory) as session:
            profiles.delete(session, "x", 1)

    assert outcomes_at_once(20, delete) == {"done": 1, "NotFound": 19}


def test_a_document_of_another_name_cannot_replace(session_factory):
    with unit_of_work(session_factory) as session:
        hardware_profiles.create(session, hardware("x"))
        with pytest.raises(ValueError, match="named 'y'"):
            hardware_profiles.replace(session, "x", hardware("y"), 1)


@each_kind
def test_a_deleted_profile_is_gone_from_every_read(session_factory, profiles, document):
    with unit_of_work(session_factory) as session:
        profiles.create(session, document("x"))
        profiles.delete(session, "x", 1)
    with unit_of_work(session_factory) as session:
        with pytest.raises(NotFound):
            profiles.get(session, "x")
        assert profiles.get_many(session, ["x"]) == {}
        assert profiles.names(session) == []
        assert profiles.page(session, 10) == ([], None)
        with pytest.raises(NotFound):
            profiles.delete(session, "x", 2)


@each_kind
def test_a_name_whose_profile_was_deleted_can_be_created_again(session_factory, profiles, document):
    with unit_of_work(session_factory) as session:
        first = profiles.create(session, document("x", note="old"))
        profiles.delete(session, "x", 1)
    with unit_of_work(session_factory) as session:
        again = profiles.create(session, document("x", note="new"))
        assert profiles.get(session, "x") == again
    assert again.document["note"] == "new"
    assert again.created_at > first.created_at


@each_kind
def test_a_version_from_before_a_deletion_is_stale_for_what_came_after(
    session_factory, profiles, document
):
    with unit_of_work(session_factory) as session:
        old = profiles.create(session, document("x"))
        profiles.delete(session, "x", old.version)
        profiles.create(session, document("x"))
        with pytest.raises(StaleVersion):
            profiles.replace(session, "x", document("x"), old.version)


@each_kind
def test_of_many_that_create_a_deleted_name_at_once_one_succeeds(
    session_factory, profiles, document
):
    with unit_of_work(session_factory) as session:
        profiles.create(session, document("x"))
        profiles.delete(session, "x", 1)

    def create(index):
        with unit_of_work(session_factory) as session:
            profiles.create(session, document("x", note=index))

    assert outcomes_at_once(20, create) == {"done": 1, "NameTaken": 19}


def test_several_profiles_are_read_by_the_names_they_were_asked_for(session_factory):
    with unit_of_work(session_factory) as session:
        for name in ("a", "b", "c"):
            hardware_profiles.create(session, hardware(name))
    with unit_of_work(session_factory) as session:
        found = hardware_profiles.get_many(session, ["c", "missing", "a", "a"])
    assert {asked: profile.name for asked, profile in found.items()} == {"a": "a", "c": "c"}
