"""Coefficients, and the data files of the core.

`coefficients.toml` and `engines.toml` state each value with unit, meaning and source; nothing else
in the core holds a fitted constant.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from advisor.core.hardware import HardwareProfile


@cache
def table(name: str) -> Mapping[str, Any]:
    """A data file of the core, by its name."""
    text = resources.files("advisor.core").joinpath(name).read_text(encoding="utf-8")
    return tomllib.loads(text)


def coefficient(name: str, hardware: HardwareProfile, engine: str) -> float:
    """One coefficient: the device's own, else its generation's, its engine's, or the default."""
    entry = table("coefficients.toml")[name]
    override = hardware.efficiency.get(name)
    if override is not None:
        return float(override)
    by_generation = entry.get("by_generation", {})
    by_engine = entry.get("by_engine", {})
    return float(by_generation.get(hardware.generation, by_engine.get(engine, entry["default"])))


def coefficient_names() -> tuple[str, ...]:
    """Every coefficient that a hardware profile may override."""
    return tuple(table("coefficients.toml"))


def coefficient_bounds(name: str) -> tuple[float, float]:
    """Least and largest value that an override may have.

    No share or factor exceeds 1: nothing is faster than its data sheet.
    """
    if name.endswith(("_us", "_ms")):
        return 0.0, 1e6
    if name in ("overlap_residue", "shared_link_exponent"):
        return 0.0, 1.0
    return 1e-3, 1.0
