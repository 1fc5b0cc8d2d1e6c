"""Coefficients and engine defaults, read from their data files.

`coefficients.toml` and `engines.toml` state each value with unit, meaning and source; nothing else
in the core holds a fitted constant.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True)
class EngineSettings:
    """An engine on a device, with every setting filled in."""

    engine: str
    version: str
    budget: str
    memory_utilization: float
    max_num_seqs: int
    max_num_batched_tokens: int
    graph_gib: float
    activation_in_reserve: bool
    sampler_bytes: float


def engine_settings(
    engine: str,
    hardware: HardwareProfile,
    ranks: int,
    memory_utilization: float | None = None,
    max_num_seqs: int | None = None,
    max_num_batched_tokens: int | None = None,
) -> EngineSettings:
    """Settings of an engine on a device: those given, else its defaults there.

    `ranks` is TP x PP, which SGLang's memory reserve depends on.
    """
    entry = table("engines.toml")[engine]
    batch = _batch_defaults(entry, hardware)
    tokens = max_num_batched_tokens or batch["max_num_batched_tokens"]
    if memory_utilization is None:
        memory_utilization = _utilization(entry, hardware, ranks, tokens)
    return EngineSettings(
        engine=engine,
        version=entry["version"],
        budget=entry["budget"],
        memory_utilization=memory_utilization,
        max_num_seqs=max_num_seqs or batch["max_num_seqs"],
        max_num_batched_tokens=tokens,
        graph_gib=entry["graph_gib"],
        activation_in_reserve=entry["activation"] == "in_reserve",
        sampler_bytes=entry["sampler_bytes_per_sequence_and_token"],
    )


def _batch_defaults(entry: Mapping[str, Any], hardware: HardwareProfile) -> Mapping[str, Any]:
    return next(
        row
        for row in entry["defaults"]
        if hardware.memory_gib >= row["min_memory_gib"]
        and row.get("not_generation", "-") != hardware.generation
    )


def _utilization(
    entry: Mapping[str, Any], hardware: HardwareProfile, ranks: int, tokens: int
) -> float:
    if "memory_utilization" in entry:
        return float(entry["memory_utilization"])
    rule = entry["reserve_mib"]
    reserve_mib = (
        rule["fixed"]
        + rule["per_batched_token"] * max(tokens, 2048)
        + rule["per_graph_sequence"] * rule["graph_sequences"]
        + rule["per_rank"] * ranks
    )
    if hardware.memory_gib > 60:
        reserve_mib = max(reserve_mib, entry["reserve_gib_min_above_60_gib"] * 1024)
    return float(max(0.0, 1 - reserve_mib / 1024 / hardware.memory_gib))
