from __future__ import annotations

import pytest

from advisor.store.engine import make_engine, unit_of_work
from advisor.store.engine import session_factory as sessions_on
from advisor.store.errors import NotFound
from advisor.store.profiles import hardware_profiles, model_profiles
from advisor.store.seeding import SeedCounts, seed
from tests.store.samples import hardware, model, outcomes_at_once

CATALOGUE = [hardware("b"), hardware("a"), hardware("c")]


def load(session_factory, documents=CATALOGUE, profiles=hardware_profiles):
    with unit_of_work(session_factory) as session:
        return seed(session, profiles, documents)


def read(session_factory, name, profiles=hardware_profiles):
    with unit_of_work(session_factory, read_only=True) as session:
        return profiles.get(session, name)


def change(session_factory, act, *arguments):
    with unit_of_work(session_factory) as session:
        return act(session, *arguments)


def test_an_empty_database_gets_every_shipped_profile(session_factory):
    assert load(session_factory) == SeedCounts(added=3)
    stored = read(session_factory, "a")
    assert (stored.document, stored.origin, stored.version) == (hardware("a"), "catalog", 1)


def test_loading_the_same_catalogue_again_changes_nothing(session_factory):
    load(session_factory)
    before = read(session_factory, "a")
    assert load(session_factory) == SeedCounts(kept=3)
    assert read(session_factory, "a") == before


def test_an_untouched_profile_follows_the_catalogue(session_factory):
    load(session_factory)
    counts = load(session_factory, [hardware("a", vendor="amd", tdp_w=700), hardware("b")])
    assert counts == SeedCounts(updated=1, kept=1)
    stored = read(session_factory, "a")
    assert (stored.document["tdp_w"], stored.origin, stored.version) == (700, "catalog", 2)
    with unit_of_work(session_factory) as session:
        assert len(hardware_profiles.page(session, 9, None, {"vendor": "amd"})[0]) == 1


def test_what_a_user_has_changed_is_never_overwritten(session_factory):
    load(session_factory)
    mine = hardware("a", tdp_w=1)
    change(session_factory, hardware_profiles.replace, "a", mine, 1)
    assert load(session_factory, [hardware("a", tdp_w=700)]) == SeedCounts(kept=1)
    assert read(session_factory, "a").document == mine


def test_what_a_user_has_created_is_never_overwritten(session_factory):
    mine = hardware("a", tdp_w=1)
    change(session_factory, hardware_profiles.create, mine)
    assert load(session_factory) == SeedCounts(added=2, kept=1)
    assert read(session_factory, "a").document == mine
    assert read(session_factory, "a").origin == "user"


def test_a_deleted_catalogue_entry_stays_deleted(session_factory):
    load(session_factory)
    change(session_factory, hardware_profiles.delete, "a", 1)
    for tdp_w in (None, 700):
        counts = load(session_factory, [hardware("a", tdp_w=tdp_w)])
        assert counts == SeedCounts(deleted=1)
        with pytest.raises(NotFound):
            read(session_factory, "a")


def test_a_catalogue_entry_that_a_user_changed_and_deleted_stays_deleted(session_factory):
    load(session_factory)
    change(session_factory, hardware_profiles.replace, "a", hardware("a", tdp_w=1), 1)
    change(session_factory, hardware_profiles.delete, "a", 2)
    assert load(session_factory) == SeedCounts(kept=2, deleted=1)


def test_a_catalogue_entry_deleted_and_created_anew_is_the_users(session_factory):
    load(session_factory)
    change(session_factory, hardware_profiles.delete, "a", 1)
    change(session_factory, hardware_profiles.create, hardware("a", tdp_w=1))
    assert load(session_factory) == SeedCounts(kept=3)
    change(session_factory, hardware_profiles.delete, "a", 3)
    assert load(session_factory) == SeedCounts(kept=2, deleted=1)


def test_a_users_own_deleted_profile_does_not_bar_the_name_to_the_catalogue(session_factory):
    change(session_factory, hardware_profiles.create, hardware("a", tdp_w=1))
    change(session_factory, hardware_profiles.delete, "a", 1)
    assert load(session_factory) == SeedCounts(added=3)
    assert read(session_factory, "a").document == hardware("a")
    assert read(session_factory, "a").origin == "catalog"


def test_an_entry_that_is_no_longer_shipped_stays(session_factory):
    load(session_factory)
    assert load(session_factory, []) == SeedCounts()
    assert read(session_factory, "a").document == hardware("a")


def test_a_shipped_alias_that_a_user_gave_away_is_left_out(session_factory):
    change(session_factory, model_profiles.create, model("mine", "taken"))
    shipped = [model("shipped", "taken", "free")]
    assert load(session_factory, shipped, model_profiles) == SeedCounts(added=1)
    assert read(session_factory, "taken", model_profiles).name == "mine"
    assert read(session_factory, "free", model_profiles).document["aliases"] == ["free"]
    assert load(session_factory, shipped, model_profiles) == SeedCounts(kept=1)


def test_an_alias_that_was_left_out_comes_back_when_it_is_free_again(session_factory):
    change(session_factory, model_profiles.create, model("mine", "taken"))
    shipped = [model("shipped", "taken")]
    load(session_factory, shipped, model_profiles)
    change(session_factory, model_profiles.delete, "mine", 1)
    assert load(session_factory, shipped, model_profiles) == SeedCounts(updated=1)
    assert read(session_factory, "taken", model_profiles).name == "shipped"


def test_a_shipped_name_that_is_a_users_alias_is_left_to_the_user(session_factory):
    change(session_factory, model_profiles.create, model("mine", "shipped"))
    assert load(session_factory, [model("shipped")], model_profiles) == SeedCounts(kept=1)
    assert read(session_factory, "shipped", model_profiles).name == "mine"


def test_an_alias_can_become_a_profile_of_its_own_in_one_load(session_factory):
    load(session_factory, [model("z", "a")], model_profiles)
    counts = load(session_factory, [model("a"), model("z")], model_profiles)
    assert counts == SeedCounts(added=1, updated=1)
    assert read(session_factory, "a", model_profiles).name == "a"


@pytest.mark.parametrize(
    ("profiles", "document"),
    [
        pytest.param(hardware_profiles, hardware, id="hardware"),
        pytest.param(model_profiles, model, id="models"),
    ],
)
def test_processes_that_load_at_once_add_everything_once(database_url, profiles, document):
    documents = [document(f"n{i:02}") for i in range(30)]
    engines = [make_engine(database_url, timeout_ms=20_000) for _ in range(4)]
    counts = []
    try:
        outcomes = outcomes_at_once(
            4, lambda i: counts.append(load(sessions_on(engines[i]), documents, profiles))
        )
        assert outcomes == {"done": 4}
        assert sum(c.added for c in counts) == 30
        assert sum(c.kept for c in counts) == 90
        with unit_of_work(sessions_on(engines[0])) as session:
            assert len(profiles.names(session)) == 30
    finally:
        for engine in engines:
            engine.dispose()


def test_processes_that_load_a_new_catalogue_at_once_update_everything_once(database_url):
    first = [hardware(f"n{i:02}") for i in range(30)]
    second = [hardware(f"n{i:02}", tdp_w=700) for i in range(30)]
    engines = [make_engine(database_url, timeout_ms=20_000) for _ in range(4)]
    counts = []
    try:
        load(sessions_on(engines[0]), first)
        outcomes = outcomes_at_once(
            4, lambda i: counts.append(load(sessions_on(engines[i]), second))
        )
        assert outcomes == {"done": 4}
        assert sum(c.updated for c in counts) == 30
        with unit_of_work(sessions_on(engines[0])) as session:
            items, _ = hardware_profiles.page(session, 50)
        assert {(item.version, item.document["tdp_w"]) for item in items} == {(2, 700)}
    finally:
        for engine in engines:
            engine.dispose()
