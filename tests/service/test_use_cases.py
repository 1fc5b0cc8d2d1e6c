from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from advisor.catalog.loader import hardware_documents, model_documents
from advisor.core.errors import InvalidInput
from advisor.core.hardware import HardwareProfile
from advisor.core.suspicions import suspicions
from advisor.core.terminology.vocabulary import standard
from advisor.service import catalogue, lookup, plans, terminology
from advisor.service.database import Database
from advisor.service.errors import UnknownName
from advisor.service.profiles import HARDWARE, MODELS
from advisor.store.errors import StaleVersion
from tests.web.bodies import HARDWARE as HARDWARE_BODY
from tests.web.bodies import MODEL as MODEL_BODY


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """An empty, migrated database, once of each kind."""
    database = Database(database_url)
    yield database
    database.close()


@pytest.fixture
def catalogued(catalogued_url: str) -> Iterator[Database]:
    """A database with the catalogue."""
    database = Database(catalogued_url)
    yield database
    database.close()


def test_the_catalogue_is_loaded_once(database: Database):
    first = catalogue.load(database)
    assert first["hardware"].added == len(hardware_documents())
    assert first["models"].added == len(model_documents())
    second = catalogue.load(database)
    assert second["hardware"].kept == len(hardware_documents())
    assert second["models"].kept == len(model_documents())


def test_a_model_of_the_catalogue_is_stored_with_what_follows_from_its_shape(catalogued: Database):
    stored = MODELS.read(catalogued, "meta-llama-3.1-70b")
    assert stored.origin == "catalog"
    assert stored.document["kv_cache"]["bytes_per_token_by_precision"]["bf16"] == 327_680


def test_a_profile_is_parsed_once_and_anew_after_a_change(catalogued: Database):
    def resolved() -> HardwareProfile:
        (device,) = lookup.resolve(catalogued, "qwen3-8b", ["l4"]).hardware
        return device

    first = resolved()
    assert resolved() is first
    stored = HARDWARE.read(catalogued, "l4")
    HARDWARE.replace(catalogued, "l4", stored.document | {"memory_gib": 20.0}, stored.version)
    assert resolved().memory_gib == 20.0


def test_a_cache_of_profiles_does_not_grow_without_end(catalogued: Database):
    cache = lookup.ProfileCache("hardware", HardwareProfile.from_mapping)
    stored = HARDWARE.read(catalogued, "l4")
    kept = [
        cache.profile(type(stored)(f"{i}", stored.document, 1, "user", *[stored.updated_at] * 2))
        for i in range(lookup.MOST_KEPT + 10)
    ]
    assert len(cache._kept) == lookup.MOST_KEPT
    assert kept[-1].name == "l4"


def test_a_deleted_profile_is_unknown_at_once(catalogued: Database):
    lookup.resolve(catalogued, "qwen3-8b", ["l4"])
    HARDWARE.delete(catalogued, "l4", HARDWARE.read(catalogued, "l4").version)
    with pytest.raises(InvalidInput) as refusal:
        lookup.resolve(catalogued, "qwen3-8b", ["l4"])
    assert refusal.value.errors[0].pointer == "/hardware/0"


def test_of_fifty_replacements_at_once_one_succeeds(database: Database):
    HARDWARE.create(database, HARDWARE_BODY)

    def replace(number: int) -> str:
        try:
            HARDWARE.replace(database, "my-h100", HARDWARE_BODY | {"notes": f"{number}"}, 1)
        except StaleVersion as stale:
            return f"stale, now {stale.current_version}"
        return f"{number}"

    with ThreadPoolExecutor(16) as pool:
        outcomes = list(pool.map(replace, range(50)))
    (winner,) = [outcome for outcome in outcomes if outcome != "stale, now 2"]
    assert HARDWARE.read(database, "my-h100").document["notes"] == winner


def test_answers_given_at_once_are_all_kept(database: Database):
    sentences = ["Decode is memory-bound."] * 8
    ask = {"text": " ".join(sentences), "format": "plain", "language": None, "plan_id": None}
    check = terminology.create(database, standard(), ask)
    assert check["summary"]["flagged"] == 8

    def answer(index: int) -> None:
        reply = [{"finding": index, "sense": "bandwidth"}]
        terminology.answer_findings(database, check["id"], reply)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(answer, range(8)))
    assert terminology.read(database, check["id"])["summary"]["resolved"] == 8


def test_a_refused_body_leaves_nothing_behind(database: Database):
    broken = MODEL_BODY | {"hf_config": MODEL_BODY["hf_config"] | {"hidden_size": -1}}
    with pytest.raises(InvalidInput):
        MODELS.create(database, broken)
    with pytest.raises(UnknownName):
        MODELS.read(database, MODEL_BODY["name"])


@pytest.mark.parametrize("name", ["", "\x00", "a b", "😀", "x" * 201, "\ud800"])
def test_a_name_that_nothing_can_have_is_unknown_on_every_database(database: Database, name: str):
    with pytest.raises(UnknownName):
        HARDWARE.read(database, name)
    with pytest.raises(UnknownName):
        MODELS.delete(database, name, 1)


def test_plans_of_a_deleted_model_stay(catalogued: Database):
    from advisor.schemas.plans import PlanBody

    body: dict[str, Any] = {
        "model": "qwen3-8b",
        "hardware": ["l4"],
        "workload": {"concurrency": 1, "input_tokens": 100, "output_tokens": 10},
    }
    plan = plans.create(catalogued, PlanBody().load(body))
    MODELS.delete(catalogued, "qwen3-8b", MODELS.read(catalogued, "qwen3-8b").version)
    assert plans.read(catalogued, plan.id) == plan


@pytest.mark.parametrize("document", hardware_documents(), ids=lambda d: d["name"])
def test_no_figure_of_the_catalogue_is_suspected(document: dict[str, Any]):
    assert suspicions(HardwareProfile.from_mapping(document)) == []
