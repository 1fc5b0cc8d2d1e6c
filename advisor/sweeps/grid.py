"""The questions of a sweep, each found by its number: none is kept, a million cost nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Ask = Mapping[str, Any]
"""A loaded plan request: its `model` and `hardware` are names, or whole profiles."""
Entries = dict[str, Any]
"""Names, or whole profiles, by pointer."""


@dataclass(frozen=True)
class Listed:
    """Questions that were spelled out."""

    asks: Sequence[Ask]

    @property
    def total(self) -> int:
        """How many there are."""
        return len(self.asks)

    def ask(self, item: int) -> Ask:
        """The question of that number, from 0."""
        return self.asks[item]

    def named(self) -> tuple[Entries, Entries]:
        """The models and the devices of all questions, by their pointers in the request."""
        models = {f"/requests/{i}/model": ask["model"] for i, ask in enumerate(self.asks)}
        hardware = {
            f"/requests/{i}/hardware/{k}": each
            for i, ask in enumerate(self.asks)
            for k, each in enumerate(ask["hardware"])
        }
        return models, hardware


@dataclass(frozen=True)
class Grid:
    """Every combination of the entries of the axes, by the name of the field each of them fills;
    the last axis moves first. An entry of the axis `hardware` is a list of one. `common` are the
    fields that all questions share."""

    axes: Mapping[str, Sequence[Any]]
    common: Ask

    @property
    def total(self) -> int:
        """How many there are."""
        return math.prod(len(entries) for entries in self.axes.values())

    def ask(self, item: int) -> Ask:
        """The question of that number, from 0."""
        chosen, rest = {}, item
        for name, entries in reversed(list(self.axes.items())):
            rest, place = divmod(rest, len(entries))
            chosen[name] = entries[place]
        return {**self.common, **chosen}

    def named(self) -> tuple[Entries, Entries]:
        """The models and the devices of all questions, by their pointers in the request."""
        models = {f"/grid/models/{i}": each for i, each in enumerate(self.axes["model"])}
        devices = (each for (each,) in self.axes["hardware"])
        return models, {f"/grid/hardware/{i}": each for i, each in enumerate(devices)}


Questions = Listed | Grid
