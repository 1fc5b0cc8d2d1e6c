"""Which rows may be fitted to and which test: dense by model and device, MoE by whole model."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources

from advisor.accuracy.rows import Row


@dataclass(frozen=True)
class Fold:
    """Rows to fit, and rows held out that test the fit."""

    name: str
    fit: tuple[Row, ...]
    test: tuple[Row, ...]


def dense_folds(rows: Iterable[Row]) -> Iterator[Fold]:
    """One fold for each model and device of the dense rows, that pair's rows held out."""
    dense = [row for row in rows if row.kind == "dense"]
    for pair in sorted({(row.model, row.device) for row in dense}):
        yield _fold(" on ".join(pair), dense, [r for r in dense if (r.model, r.device) == pair])


def moe_fold(rows: Iterable[Row]) -> Fold:
    """The MoE rows, by `moe_split.toml`. ValueError at a model that it does not name."""
    split = _moe_split()
    sparse = [row for row in rows if row.kind == "moe"]
    unknown = {row.model for row in sparse} - {*split["fit"], *split["test"]}
    if unknown:
        raise ValueError(f"moe_split.toml does not name {sorted(unknown)}")
    return _fold("moe_split.toml", sparse, [row for row in sparse if row.model in split["test"]])


def _fold(name: str, rows: list[Row], held_out: list[Row]) -> Fold:
    kept = {row.id for row in held_out}
    return Fold(name, tuple(row for row in rows if row.id not in kept), tuple(held_out))


@cache
def _moe_split() -> dict[str, list[str]]:
    text = resources.files("advisor.accuracy").joinpath("moe_split.toml").read_text("utf-8")
    return tomllib.loads(text)
