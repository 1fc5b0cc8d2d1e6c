"""Reader of the catalogue: its documents in the API's form, and profiles by name."""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

from advisor.core.errors import InvalidInput, unknown_choice
from advisor.core.hardware import HardwareProfile
from advisor.core.model import ModelProfile

Document = dict[str, Any]


def hardware_documents() -> tuple[Document, ...]:
    """Every accelerator, sorted by name; amounts of money are decimal strings.

    ValueError where two entries share a name.
    """
    return _catalogued(entry for file in _read("hardware") for entry in file["accelerators"])


def model_documents() -> tuple[Document, ...]:
    """Every model, sorted by name, with `hf_config`, `aliases` as people write them, `published`
    parameter counts [1e9] or null, and `source`.

    ValueError where two models share a spelling, whatever its case.
    """
    return _catalogued(_read("models"))


def hardware_profile(name: str) -> HardwareProfile:
    """The accelerator of that name. InvalidInput, with the nearest name, where there is none."""
    return HardwareProfile.from_mapping(_find(name, hardware_documents(), "Hardware"))


def model_profile(name: str) -> ModelProfile:
    """The model of that name or alias, in any case. InvalidInput, with the nearest spelling, where
    there is none."""
    return ModelProfile.from_mapping(_find(name, model_documents(), "Model"))


def by_spelling(documents: Iterable[Document]) -> dict[str, Document]:
    """Documents by name and alias in lower case. ValueError where two share one."""
    found: dict[str, Document] = {}
    for document in documents:
        for spelling in (document["name"], *document.get("aliases", ())):
            taken = found.setdefault(spelling.lower(), document)
            if taken is not document:
                raise ValueError(f"{spelling!r} names {taken['name']} and {document['name']}")
    return found


def _find(name: str, documents: Iterable[Document], what: str) -> Document:
    known = by_spelling(documents)
    if name.lower() not in known:
        raise InvalidInput(unknown_choice("", name, known, what))
    return known[name.lower()]


def _catalogued(entries: Iterable[Document]) -> tuple[Document, ...]:
    documents = sorted(entries, key=lambda document: str(document["name"]))
    by_spelling(documents)
    return tuple(documents)


def _read(kind: str) -> Iterable[Any]:
    folder = files("advisor.catalog").joinpath(kind)
    return (json.loads(file.read_text(encoding="utf-8")) for file in folder.iterdir())
