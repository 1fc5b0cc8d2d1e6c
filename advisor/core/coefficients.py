"""Coefficients, and the data files of the core.

`coefficients.toml` and `engines.toml` state each value with unit, meaning and source; nothing else
in the core holds a fitted constant.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import resources
from typing import Any

from advisor.core.hardware import HardwareProfile


@cache
def table(name: str) -> Mapping[str, Any]:
    """A data file of the core, by its name."""
    text = resources.files("advisor.core").joinpath(name).read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def data_version() -> str:
    """What tells one state of the data that plans follow from, apart from the profiles, from any
    other: 12 hexadecimal digits."""
    tables = [table(name) for name in ("coefficients.toml", "engines.toml", "residuals.toml")]
    text = json.dumps(tables, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def coefficient(name: str, hardware: HardwareProfile, engine: str, kernel: str = "") -> float:
    """One coefficient: the device's own, else the most specific of `value_keys`."""
    override = hardware.efficiency.get(name)
    if override is not None:
        return float(override)
    key = value_keys(name, hardware.generation, engine, kernel)[0]
    value = (_changed.get() or {}).get((name, key))
    return entry_value(table("coefficients.toml")[name], key) if value is None else value


@cache
def value_keys(name: str, generation: str, engine: str, kernel: str = "") -> tuple[str, ...]:
    """The keys of `coefficients.toml` under which a coefficient stands for a kind of kernel of an
    engine on a generation, the most specific first, `default` last."""
    values = table("coefficients.toml")[name].get("values", {})
    parts = [(engine, generation, kernel), (generation, kernel), (engine, kernel), (kernel,)]
    parts += [(engine, generation), (generation,), (engine,)]
    return (*(key for key in map("/".join, parts) if key in values), "default")


def entry_value(entry: Mapping[str, Any], key: str) -> float:
    """The value of an entry of `coefficients.toml` under one of its keys."""
    return float(entry["default"] if key == "default" else entry["values"][key])


_changed: ContextVar[Mapping[tuple[str, str], float] | None] = ContextVar("changed", default=None)


@contextmanager
def changed(values: Mapping[tuple[str, str], float]) -> Iterator[None]:
    """Within it, coefficients have these values, by name and key: to fit them."""
    token = _changed.set(values)
    try:
        yield
    finally:
        _changed.reset(token)


def coefficient_names() -> tuple[str, ...]:
    """Every coefficient that a hardware profile may override."""
    return tuple(table("coefficients.toml"))


def coefficient_bounds(name: str) -> tuple[float, float]:
    """Least and largest value that an override may have.

    No share or factor exceeds 1: nothing is faster than its data sheet.
    """
    if name.endswith(("_us", "_ms")):
        return 0.0, 1e6
    if name.endswith("_exponent"):
        return 0.0, 2.0
    if name == "overlap_residue":
        return 0.0, 1.0
    return 1e-3, 1.0
