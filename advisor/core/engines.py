"""Serving engines: what each version does on a device when nothing is set, from `engines.toml`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from advisor.core.coefficients import table
from advisor.core.errors import FieldError
from advisor.core.hardware import HardwareProfile
from advisor.core.layouts import Split
from advisor.core.units import Estimate
from advisor.core.workload import Serving

_VERSION = re.compile(r"v?(\d+(?:\.\d+)*)")
SAMPLERS = tuple(name for name in table("engines.toml")["sampler_bytes"] if name != "source")


@dataclass(frozen=True)
class EngineSettings:
    """An engine on a device, with every setting filled in; `engines.toml` says what each means.

    `max_num_seqs` was `asked` for, or is the engine's default. `sampler_bytes` are for each
    sequence and vocabulary entry, of the `sampler` or of all that the version may use.
    `max_model_len` is the longest request admitted [tokens]. `mxfp4_multiples` are what the hidden
    and an expert's intermediate size are padded to.
    """

    engine: str
    version: str
    budget: str
    memory_utilization: float
    max_num_seqs: int
    max_num_seqs_asked: bool
    max_num_batched_tokens: int
    max_model_len: float
    graph_gib: Estimate
    activation_counted: bool
    sampler: str | None
    sampler_bytes: Estimate
    latent_row_bytes: int
    block_tokens: int
    frees_windows: bool
    shared_pool: bool
    even_group: float
    state_blocks_limit_seqs: bool
    reports: str | None
    mxfp4_multiples: tuple[int, int]


def engine_settings(
    serving: Serving, hardware: HardwareProfile, split: Split, longest: float
) -> EngineSettings:
    """Settings of an engine for a layout: those given, else its version's defaults on the device.

    `longest` is the longest request planned for [tokens]: the engine admits that much where
    `max_model_len` is not given.
    """
    row = _row(serving.engine, serving.engine_version)
    limits, length = _limits(row, hardware), serving.max_model_len or longest
    tokens = serving.max_num_batched_tokens or limits["max_num_batched_tokens"]
    if not serving.max_num_batched_tokens and length <= row["unchunked_tokens"]:
        tokens = max(int(length), tokens)
    utilization = serving.memory_utilization
    return EngineSettings(
        engine=serving.engine,
        version=serving.engine_version or default_version(serving.engine),
        budget=row["budget"],
        memory_utilization=utilization or _utilization(row, limits, hardware, split, tokens),
        max_num_seqs=serving.max_num_seqs or limits["max_num_seqs"],
        max_num_seqs_asked=serving.max_num_seqs is not None,
        max_num_batched_tokens=tokens,
        max_model_len=length,
        graph_gib=Estimate(*row["graph_gib"]),
        activation_counted=row["activation"] == "counted",
        sampler=serving.sampler or next(iter(row["samplers"]), None),
        sampler_bytes=_sampler_bytes(row, serving.sampler),
        latent_row_bytes=row["latent_row_bytes"],
        block_tokens=row["block_tokens"],
        frees_windows=row["windows"] == "freed",
        shared_pool=row["shared_pool"],
        even_group=row.get("even_group", 1.0),
        state_blocks_limit_seqs=row.get("state_blocks_limit_seqs", False),
        reports=row.get("reports"),
        mxfp4_multiples=_mxfp4_multiples(serving.engine, hardware),
    )


def default_version(engine: str) -> str:
    """The version taken when a request names none."""
    return str(table("engines.toml")[engine]["version"])


def refuses_marlin_tiles(serving: Serving) -> bool:
    """Whether the version refuses INT4 layers whose share is no multiple of a Marlin tile."""
    return bool(_row(serving.engine, serving.engine_version).get("marlin_tiles", False))


def serving_faults(serving: Serving) -> list[FieldError]:
    """What of the serving settings no row of `engines.toml` knows."""
    faults = []
    engine, version = serving.engine, serving.engine_version
    first = table("engines.toml")[engine]["rows"][0]["since"]
    if version is not None and default_version(engine) == "-":
        detail = f"Engine {engine} stands for no product and has no versions."
        faults.append(FieldError("/serving/engine_version", detail, given=version))
    elif version is not None and (not _parsed(version) or _parsed(version) < _parsed(first)):
        detail = f"A version of {engine} from {first} on is expected."
        faults.append(
            FieldError("/serving/engine_version", detail, given=version,
                       nearest=first if _parsed(version) else default_version(engine))
        )  # fmt: skip
    elif serving.sampler is not None and not _row(engine, version)["samplers"]:
        detail = f"The memory that {engine} reserves does not depend on its sampler."
        faults.append(FieldError("/serving/sampler", detail, given=serving.sampler))
    return faults


def _parsed(version: str) -> tuple[int, ...]:
    found = _VERSION.match(version)
    return tuple(int(part) for part in found[1].split(".")) if found else ()


@cache
def _row(engine: str, version: str | None) -> Mapping[str, Any]:
    """The rows of an engine up to a version (its default one if None), the later over the
    earlier."""
    wanted = version or default_version(engine)
    row: dict[str, Any] = {}
    for each in table("engines.toml")[engine]["rows"]:
        if wanted == "-" or _parsed(each["since"]) <= _parsed(wanted):
            row |= each
    return row


def _limits(row: Mapping[str, Any], hardware: HardwareProfile) -> Mapping[str, Any]:
    limits: Mapping[str, Any] = next(
        each
        for each in row["limits"]
        if hardware.memory_gib >= each["min_memory_gib"]
        and each.get("not_generation", "-") != hardware.generation
    )
    return limits


def _sampler_bytes(row: Mapping[str, Any], sampler: str | None) -> Estimate:
    """Bytes of the sampler asked for, or of those that the version may use."""
    each = table("engines.toml")["sampler_bytes"]
    names = [sampler] if sampler else row["samplers"]
    if not names:
        return Estimate(0.0, 0.0, 0.0)
    low, _, high = zip(*(each[name] for name in names), strict=True)
    return Estimate(min(low), each[names[0]][1], max(high))


def _utilization(
    row: Mapping[str, Any],
    limits: Mapping[str, Any],
    hardware: HardwareProfile,
    split: Split,
    tokens: int,
) -> float:
    """The version's utilization, or what its reserve [MiB] leaves (SGLang)."""
    if "memory_utilization" in row:
        return float(row["memory_utilization"])
    rule, groups = row["reserve_mib"], split.attention_data_parallel
    graphs = limits["graph_sequences"][split.tensor_parallel >= 4]
    reserve_mib = (
        rule["fixed"]
        + rule["per_batched_token"] * max(tokens, 2048)
        + rule["per_graph_sequence"] * graphs
        + rule["per_rank"] * split.accelerators
    )
    if groups > 1:
        reserve_mib += rule["per_graph_sequence_and_attention_group"] * graphs * groups
    if hardware.memory_gib > 60:
        reserve_mib = max(reserve_mib, rule["min_above_60_gib"])
    return float(max(0.0, 1 - reserve_mib / 1024 / hardware.memory_gib))


def _mxfp4_multiples(engine: str, hardware: HardwareProfile) -> tuple[int, int]:
    rule = table("engines.toml")[engine].get("mxfp4_multiples")
    if rule is None:
        return 1, 1
    widths = rule["intermediate"]
    return rule["hidden"], widths.get(hardware.generation, widths["default"])
