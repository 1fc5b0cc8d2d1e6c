"""Coefficients fitted without some rows, to predict those rows: what a fit is worth elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from advisor.accuracy.calibrate import Fit, Key
from advisor.accuracy.compare import Predictor, Residual, compare
from advisor.accuracy.rows import Row, device_of
from advisor.accuracy.splits import dense_folds, moe_fold
from advisor.core.coefficients import changed


@dataclass(frozen=True)
class HeldOut:
    """Rows that a fit did not see: of one dense model on one device, of the MoE models that only
    test, or of a whole generation."""

    name: str
    basis: str
    rows: tuple[Row, ...]


def held_out(rows: Iterable[Row]) -> Iterator[HeldOut]:
    """Every fold."""
    known = tuple(rows)
    for fold in dense_folds(known):
        yield HeldOut(fold.name, "interpolated", fold.test)
    yield HeldOut("moe_split.toml", "interpolated", moe_fold(known).test)
    generations = {device_of(row).generation for row in known}
    for generation in sorted(generations):
        of_it = tuple(row for row in known if device_of(row).generation == generation)
        yield HeldOut(f"generation {generation}", "physics", of_it)


def refitted(fit: Fit, rows: Iterable[Row]) -> dict[str, dict[str, float]]:
    """For each fold the coefficients that the other rows give, as `held_out.json` keeps them."""
    found = {}
    for fold in held_out(rows):
        hidden = {row.id for row in fold.rows}
        values = fit.without(hidden)
        found[fold.name] = {f"{n}.{key}": float(f"{v:.4g}") for (n, key), v in values.items()}
    return found


@cache
def _kept() -> Mapping[str, Mapping[Key, float]]:
    text = resources.files("advisor.accuracy").joinpath("held_out.json").read_text("utf-8")
    return {
        fold: {tuple(name.split(".", 1)): value for name, value in values.items()}
        for fold, values in json.loads(text).items()
    }


def residuals(rows: Iterable[Row], predict: Predictor, basis: str) -> list[Residual]:
    """Residuals of the folds of a basis, each predicted without having been fitted."""
    found: list[Residual] = []
    for fold in held_out(rows):
        if fold.basis == basis and fold.name in _kept():
            with changed(_kept()[fold.name]):
                found += compare(fold.rows, predict).residuals
    return found
