"""The catalogue of techniques, as data: `catalogue.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from advisor.core.coefficients import table

FAMILIES = ("model", "service")
GROUPS = ("any_architecture", "attention", "decoding", "batching", "parallelism", "caching")

_PAIRS = "pairs"


@dataclass(frozen=True)
class Technique:
    """One technique: what it changes and in which terms, its price, when it helps and hurts, what
    is not computed of it, and its sources as (title, address)."""

    name: str
    title: str
    family: str
    group: str
    changes: str
    formulas: tuple[str, ...]
    price: str
    helps: str
    hurts: str
    not_computed: str
    sources: tuple[tuple[str, str], ...]

    def as_dict(self) -> dict[str, Any]:
        """The technique in its API form."""
        return vars(self) | {
            "formulas": list(self.formulas),
            "sources": [{"title": title, "url": url} for title, url in self.sources],
        }


@dataclass(frozen=True)
class Pair:
    """Two techniques that interact, and how."""

    first: str
    second: str
    how: str


@cache
def catalogue() -> Mapping[str, Technique]:
    """Every technique by name, in the order in which they are listed."""
    return {
        name: Technique(name, **_read(entry)) for name, entry in _data().items() if name != _PAIRS
    }


@cache
def pairs() -> tuple[Pair, ...]:
    """Pairs of techniques that interact."""
    return tuple(
        Pair(first, second, each["how"])
        for each in _data()[_PAIRS]
        for first, second in [each["techniques"]]
    )


def _data() -> Mapping[str, Any]:
    return table("techniques/catalogue.toml")


def _read(entry: Mapping[str, Any]) -> dict[str, Any]:
    lists = {
        "formulas": tuple(entry["formulas"]),
        "sources": tuple((title, url) for title, url in entry["sources"]),
    }
    return {**entry, **lists}
