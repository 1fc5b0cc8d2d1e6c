from __future__ import annotations

import pytest

from advisor.store.engine import unit_of_work
from advisor.store.errors import NameTaken, NotFound
from advisor.store.profiles import model_profiles
from tests.store.samples import model, outcomes_at_once

ORGANISED = "meta-llama/Llama-3.1-70B"


def called(session, name):
    return model_profiles.get(session, name).name


def test_a_model_is_found_by_its_name_and_by_each_alias(session_factory):
    with unit_of_work(session_factory) as session:
        created = model_profiles.create(session, model("llama-70b", "llama", ORGANISED))
    with unit_of_work(session_factory) as session:
        for name in ("llama-70b", "llama", ORGANISED):
            assert model_profiles.get(session, name) == created
        found = model_profiles.get_many(session, ["llama", ORGANISED, "other"])
        assert found == {"llama": created, ORGANISED: created}
        assert model_profiles.names(session) == sorted(["llama", "llama-70b", ORGANISED.lower()])


def test_a_model_is_found_in_any_case_and_its_names_are_taken_in_every_case(session_factory):
    with unit_of_work(session_factory) as session:
        created = model_profiles.create(session, model("llama-70b", ORGANISED))
        for name in ("LLAMA-70B", ORGANISED.lower(), ORGANISED.upper()):
            assert model_profiles.get(session, name) == created
            assert model_profiles.get_many(session, [name, ORGANISED]) == {
                name: created, ORGANISED: created
            }  # fmt: skip
        with pytest.raises(NameTaken) as refusal:
            model_profiles.create(session, model("other", ORGANISED.upper()))
        assert refusal.value.name == "llama-70b"
        assert model_profiles.without_taken_aliases(
            session, model("other", ORGANISED.upper(), "Mine")
        )["aliases"] == ["Mine"]


def test_a_model_may_list_its_own_name_among_its_aliases_and_one_alias_twice(session_factory):
    with unit_of_work(session_factory) as session:
        model_profiles.create(session, model("a", "a", "b", "b"))
        assert model_profiles.names(session) == ["a", "b"]


@pytest.mark.parametrize(
    "newcomer",
    [model("new", "first"), model("new", "alias"), model("alias"), model("alias", "other")],
    ids=["alias-as-name", "alias-as-alias", "name-as-alias", "name-as-alias-with-alias"],
)
def test_no_name_or_alias_is_given_to_two_models(session_factory, newcomer):
    with unit_of_work(session_factory) as session:
        model_profiles.create(session, model("first", "alias"))
        with pytest.raises(NameTaken) as refusal:
            model_profiles.create(session, newcomer)
        assert refusal.value.name == "first"
        assert model_profiles.names(session) == ["alias", "first"]
        model_profiles.create(session, model("second"))


def test_a_replacement_drops_old_aliases_and_takes_new_ones(session_factory):
    with unit_of_work(session_factory) as session:
        model_profiles.create(session, model("a", "old", "kept"))
        model_profiles.replace(session, "a", model("a", "kept", "new"), 1)
    with unit_of_work(session_factory) as session:
        assert called(session, "kept") == called(session, "new") == called(session, "a") == "a"
        with pytest.raises(NotFound):
            model_profiles.get(session, "old")
        model_profiles.create(session, model("b", "old"))


def test_a_replacement_cannot_take_the_alias_of_another_model(session_factory):
    with unit_of_work(session_factory) as session:
        model_profiles.create(session, model("a", "mine"))
        model_profiles.create(session, model("b", "theirs"))
        with pytest.raises(NameTaken) as refusal:
            model_profiles.replace(session, "a", model("a", "theirs"), 1)
        assert refusal.value.name == "b"
    with unit_of_work(session_factory) as session:
        assert model_profiles.get(session, "a").version == 1
        assert called(session, "mine") == "a"
        assert called(session, "theirs") == "b"


def test_a_deleted_model_gives_up_its_name_and_aliases(session_factory):
    with unit_of_work(session_factory) as session:
        model_profiles.create(session, model("a", "alias"))
        model_profiles.delete(session, "a", 1)
        with pytest.raises(NotFound):
            model_profiles.get(session, "alias")
        model_profiles.create(session, model("b", "a", "alias"))
        assert called(session, "a") == "b"
        with pytest.raises(NameTaken) as refusal:
            model_profiles.create(session, model("a"))
    assert refusal.value.name == "b"


def test_of_many_models_that_claim_one_alias_at_once_one_gets_it(session_factory):
    def create(index):
        with unit_of_work(session_factory) as session:
            model_profiles.create(session, model(f"m{index}", "alias", "another"))

    assert outcomes_at_once(20, create) == {"done": 1, "NameTaken": 19}
    with unit_of_work(session_factory) as session:
        winner = called(session, "alias")
        assert model_profiles.names(session) == ["alias", "another", winner]
