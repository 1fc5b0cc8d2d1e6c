from __future__ import annotations

from decimal import Decimal

import pytest

from advisor.catalog.loader import (
    by_spelling,
    hardware_documents,
    hardware_profile,
    model_documents,
    model_profile,
)
from advisor.core.errors import InvalidInput


def test_documents_come_sorted_by_name():
    for documents in (hardware_documents(), model_documents()):
        names = [document["name"] for document in documents]
        assert names == sorted(names)


def test_changing_a_document_does_not_change_the_catalogue():
    hardware_documents()[0]["memory_gib"] = 1
    assert hardware_documents()[0]["memory_gib"] != 1


def test_a_price_is_read_exactly():
    price = hardware_profile("a100-sxm-80gb").price
    assert price is not None
    assert price.amount_per_hour == Decimal("3.43088125")


def test_hardware_is_found_by_name_in_any_case():
    assert hardware_profile("MI300X").name == "mi300x"


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("qwen3-32b", "qwen3-32b"),
        ("Qwen/Qwen3-32B", "qwen3-32b"),
        ("llama-3.1-70b", "meta-llama-3.1-70b"),
        ("meta-llama/Llama-3.1-70B-Instruct", "meta-llama-3.1-70b"),
        ("META-LLAMA/META-LLAMA-3.1-70B", "meta-llama-3.1-70b"),
    ],
)
def test_a_model_is_found_by_name_or_alias_in_any_case(spelling, name):
    assert model_profile(spelling).name == name


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(InvalidInput) as refused:
        hardware_profile("h100-sxm")
    (error,) = refused.value.errors
    assert (error.given, error.nearest) == ("h100-sxm", "h100-sxm-80gb")

    with pytest.raises(InvalidInput) as refused:
        model_profile("lama-3.1-70b")
    assert refused.value.errors[0].nearest == "llama-3.1-70b"


def test_two_documents_may_not_share_a_spelling_in_any_case():
    one = {"name": "a", "aliases": ["Org/A"]}
    with pytest.raises(ValueError, match="names a and b"):
        by_spelling([one, {"name": "b", "aliases": ["org/a"]}])
    with pytest.raises(ValueError, match="names a and a"):
        by_spelling([one, {"name": "A".lower(), "aliases": []}])
