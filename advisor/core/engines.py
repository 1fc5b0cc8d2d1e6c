"""Serving engines: what each version does on a device when nothing is set, from `engines.toml`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from advisor.core.coefficients import table
from advisor.core.errors import FieldError
from advisor.core.hardware import HardwareProfile
from advisor.core.layouts import Split
from advisor.core.units import Estimate
from advisor.core.workload import Serving

_VERSION = re.compile(
    r"v?(\d{1,9}(?:\.\d{1,9}){0,3})"
    r"(?:(?:a|b|rc)\d{1,9})?(?:\.post\d{1,9})?(?:\.dev\d{1,9})?(?:\+[a-z0-9.]{1,40})?",
    re.ASCII,
)
SAMPLERS = tuple(name for name in table("engines.toml")["sampler_bytes"] if name != "source")


@dataclass(frozen=True)
class EngineSettings:
    """An engine on a device, with every setting filled in; `engines.toml` says what each means.

    `max_num_seqs` was `asked` for, or is the engine's default, or was `lowered` from it to what the
    engine starts with, or to what keeps TPOT within its SLO (`by_slo`). `sampler_bytes` are for
    each sequence and vocabulary entry, of the `sampler` or of all that the version may use.
    `max_model_len` is the longest request admitted [tokens]. `mxfp4_multiples` are what the hidden
    and an expert's intermediate size are padded to.
    """

    engine: str
    version: str
    budget: str
    memory_utilization: float
    max_num_seqs: int
    max_num_seqs_asked: bool
    seqs_within_tokens: bool
    max_num_batched_tokens: int
    max_model_len: float
    graph_gib: Estimate
    activation_counted: bool
    sampler: str | None
    sampler_bytes: Estimate
    latent_row_bytes: int
    sparse_extra_bytes: int
    block_tokens: int
    frees_windows: bool
    shared_pool: bool
    even_group: float
    state_blocks_limit_seqs: bool
    reports: str | None
    mxfp4_multiples: tuple[int, int]
    max_num_seqs_lowered: bool = False
    max_num_seqs_by_slo: bool = False


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
    seqs = serving.max_num_seqs or limits["max_num_seqs"]
    if row["seqs_over_tokens"] == "capped" and not serving.max_num_seqs:
        seqs = min(seqs, tokens)
    samplers = [serving.sampler] if serving.sampler else _samplers(row, hardware)
    utilization = serving.memory_utilization
    return EngineSettings(
        engine=serving.engine,
        version=serving.engine_version or default_version(serving.engine),
        budget=row["budget"],
        memory_utilization=utilization or _utilization(row, limits, hardware, split, tokens),
        max_num_seqs=seqs,
        max_num_seqs_asked=serving.max_num_seqs is not None,
        seqs_within_tokens=row["seqs_over_tokens"] != "allowed",
        max_num_batched_tokens=tokens,
        max_model_len=length,
        graph_gib=Estimate(*row["graph_gib"]),
        activation_counted=row["activation"] == "counted",
        sampler=next(iter(samplers), None),
        sampler_bytes=_sampler_bytes(samplers),
        latent_row_bytes=row["latent_row_bytes"],
        sparse_extra_bytes=row["sparse_fp8_extra_bytes"] if split.kv_cache == "fp8" else 0,
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


def context_parallel(serving: Serving) -> str:
    """What the version can share out over ranks, as in `engines.toml`."""
    return str(_row(serving.engine, serving.engine_version)["context_parallel"])


def samples_there(serving: Serving, hardware: HardwareProfile) -> bool:
    """Whether the sampler asked for runs on the device: FlashInfer needs CUDA."""
    return serving.sampler != "flashinfer" or _is_nvidia(hardware)


def version_warnings(serving: Serving) -> list[dict[str, str]]:
    """A version newer than the last release that was read is taken as that one."""
    engine, version = serving.engine, serving.engine_version
    last = table("engines.toml")[engine].get("last_read")
    if version is None or last is None or _parsed(version) <= _parsed(last):
        return []
    detail = f"{engine} {version} is taken as {last}, the last release whose defaults were read."
    return [{"code": "engine_version_newer_than_known", "detail": detail}]


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
    elif version is not None and not (_VERSION.fullmatch(version) and _since(first, version)):
        detail = f"A version of {engine} from {first} on is expected."
        nearest = first if _VERSION.fullmatch(version) else default_version(engine)
        faults.append(FieldError("/serving/engine_version", detail, given=version, nearest=nearest))
    elif serving.sampler is not None and not _row(engine, version)["samplers"]:
        detail = f"The memory that {engine} reserves does not depend on its sampler."
        faults.append(FieldError("/serving/sampler", detail, given=serving.sampler))
    return faults


def _parsed(version: str) -> tuple[int, ...]:
    """The numbers of a release, four of them: 1 is 1.0. A release candidate or post-release is
    taken as its release."""
    found = _VERSION.fullmatch(version)
    assert found, version
    numbers = [int(part) for part in found[1].split(".")]
    return tuple(numbers + [0] * (4 - len(numbers)))


def _since(first: str, version: str) -> bool:
    return _parsed(first) <= _parsed(version)


@lru_cache(maxsize=256)
def _row(engine: str, version: str | None) -> Mapping[str, Any]:
    """The rows of an engine up to a version (its default one if None), the later over the
    earlier."""
    wanted = version or default_version(engine)
    row: dict[str, Any] = {}
    for each in table("engines.toml")[engine]["rows"]:
        if wanted == "-" or _since(each["since"], wanted):
            row |= each
    return row


def _limits(row: Mapping[str, Any], hardware: HardwareProfile) -> Mapping[str, Any]:
    generation = hardware.generation
    limits: Mapping[str, Any] = next(
        each
        for each in row["limits"]
        if hardware.memory_gib >= each["min_memory_gib"]
        and each.get("generation", generation) == generation
        and each.get("not_generation", "-") != generation
    )
    if generation in row["generation_tokens"]:
        return {**limits, "max_num_batched_tokens": row["generation_tokens"][generation]}
    return limits


def _is_nvidia(hardware: HardwareProfile) -> bool:
    return hardware.vendor.lower() == "nvidia"


def _samplers(row: Mapping[str, Any], hardware: HardwareProfile) -> list[str]:
    return list(row["samplers"] if _is_nvidia(hardware) else row["other_samplers"])


def _sampler_bytes(samplers: list[str]) -> Estimate:
    """Bytes of the first sampler, and the range of all."""
    if not samplers:
        return Estimate(0.0, 0.0, 0.0)
    each = table("engines.toml")["sampler_bytes"]
    low, _, high = zip(*(each[name] for name in samplers), strict=True)
    return Estimate(min(low), each[samplers[0]][1], max(high))


def _utilization(
    row: Mapping[str, Any],
    limits: Mapping[str, Any],
    hardware: HardwareProfile,
    split: Split,
    tokens: int,
) -> float:
    """The version's utilization, or what its reserve [MiB] leaves, in three digits (SGLang)."""
    if "memory_utilization" in row:
        return float(row["memory_utilization"])
    rule = limits.get("reserve_mib") or row["reserve_mib"]
    reserve_mib = rule["fixed"] + rule.get("per_rank", 0) * split.accelerators
    groups = split.attention_data_parallel
    if groups > 1:
        reserve_mib += rule.get("attention_groups", 0)
    if "per_batched_token" in rule:
        graphs = limits["graph_sequences"][split.tensor_parallel >= 4]
        above = "_above_300" if graphs > 300 else ""
        grouped = rule[f"per_graph_sequence_and_group{above}"] * groups if groups > 1 else 0
        reserve_mib += rule["per_batched_token"] * max(tokens, 2048)
        reserve_mib += (rule["per_graph_sequence"] + grouped) * graphs
        if hardware.memory_gib > 60:
            reserve_mib = max(reserve_mib, rule["least_above_60_gib"])
    return max(0.0, round(float(1 - reserve_mib / 1024 / hardware.memory_gib), 3))


def _mxfp4_multiples(engine: str, hardware: HardwareProfile) -> tuple[int, int]:
    rule = table("engines.toml")[engine].get("mxfp4_multiples")
    if rule is None:
        return 1, 1
    widths = rule["intermediate"]
    return rule["hidden"], widths.get(hardware.generation, widths["default"])
