"""Measured rows, and what each asks of the planner."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any

from advisor.accuracy.trtllm_bench import CACHE_SHARE, bench_settings
from advisor.catalog.loader import hardware_profile, model_profile
from advisor.core.engines import serving_faults
from advisor.core.hardware import HardwareProfile
from advisor.core.model import ModelProfile
from advisor.core.workload import Length, Limits, PlanRequest, Serving, Workload

LOADS = ("fixed_concurrency", "open", "burst", "saturated", "static_batch")
LENGTHS = ("fixed", "uniform", "mean")
LATENCIES = (
    "ttft_mean_ms", "ttft_unstated_ms", "ttft_p50_ms", "ttft_p99_ms", "tpot_mean_ms",
    "tpot_p50_ms", "tpot_p99_ms", "itl_mean_ms", "e2e_mean_ms",
)  # fmt: skip
RATES = ("output_tokens_per_s", "requests_per_s")
METRICS = (*LATENCIES, *RATES)

_DEGREES = (
    "tensor_parallel", "pipeline_parallel", "expert_parallel", "attention_data_parallel",
    "replicas",
)  # fmt: skip
_COUNTS = ("concurrency", "requests", "max_num_seqs", "max_num_batched_tokens")
_TEXTS = (
    "id", "source", "date", "engine", "model", "device", "weights", "lengths", "load", "tier",
    "notes",
)  # fmt: skip
_OPTIONAL_TEXTS = ("engine_version", "kv_cache")
_TOKENS = ("input_tokens", "output_tokens")
_NUMBERS = ("request_rate_per_s", "memory_utilization")
_BUILT_FOR = {"Azure AI-benchmarking-guide": (2048.0, 2048.0)}
"""One engine for runs of several lengths is built for the longest."""

_COLUMNS = {*_TEXTS, *_OPTIONAL_TEXTS, *_DEGREES, *_COUNTS, *_TOKENS, *_NUMBERS, *METRICS}


@dataclass(frozen=True)
class Row:
    """One published run: its conditions, and `measured` by metric, for the whole plan.

    Names are the catalogue's. Lengths are means [tokens]. Of an open load, E2E is TTFT and the gaps
    where it was not published. None: not published, or not of this load.
    """

    id: str
    source: str
    date: str
    engine: str
    engine_version: str | None
    model: str
    device: str
    tensor_parallel: int
    pipeline_parallel: int
    expert_parallel: int
    attention_data_parallel: int
    replicas: int
    weights: str
    kv_cache: str | None
    input_tokens: float
    output_tokens: float
    lengths: str
    load: str
    concurrency: int | None
    request_rate_per_s: float | None
    requests: int | None
    max_num_seqs: int | None
    max_num_batched_tokens: int | None
    memory_utilization: float | None
    tier: str
    notes: str
    measured: Mapping[str, float]

    @property
    def accelerators(self) -> int:
        """Accelerators of the plan."""
        return self.tensor_parallel * self.pipeline_parallel * self.replicas

    @property
    def kind(self) -> str:
        """`moe` or `dense`."""
        return "moe" if model_of(self).architecture.moe else "dense"

    @property
    def is_trtllm_bench(self) -> bool:
        """Whether it is a throughput run of TensorRT-LLM's own tool, which tunes the engine."""
        return self.engine == "tensorrt_llm" and self.load == "saturated" and bool(self.requests)

    @property
    def throughput(self) -> float | None:
        """Output tokens per second: as published, or of a closed loop by Little's law."""
        found, measured = self.measured.get("output_tokens_per_s"), self.measured
        if found is None and self.load == "fixed_concurrency" and self.concurrency:
            gap = measured.get("tpot_mean_ms", measured.get("itl_mean_ms"))
            if gap is not None and "ttft_mean_ms" in measured:
                e2e_ms = measured["ttft_mean_ms"] + (self.output_tokens - 1) * gap
                return self.concurrency * self.output_tokens / (e2e_ms / 1e3)
        return found


@cache
def rows() -> tuple[Row, ...]:
    """Every row of `measurements.csv`."""
    text = resources.files("advisor.accuracy").joinpath("measurements.csv").read_text("utf-8")
    return read_rows(text)


def read_rows(text: str) -> tuple[Row, ...]:
    """The rows of a CSV file. ValueError at a column or a cell that it should not have."""
    table = csv.DictReader(text.splitlines(), restkey="(more)")
    unknown = _COLUMNS.symmetric_difference(table.fieldnames or ())
    if unknown:
        raise ValueError(f"measurements: unknown or missing columns {sorted(unknown)}")
    return tuple(_row(cells) for cells in table)


def _row(cells: Mapping[str, str]) -> Row:
    if set(cells) != _COLUMNS or None in cells.values():
        raise ValueError(f"measurements: {cells['id']} has too many or too few cells")
    values: dict[str, Any] = {
        **{name: cells[name] for name in _TEXTS},
        **{name: cells[name] or None for name in _OPTIONAL_TEXTS},
        **{name: int(cells[name]) for name in _DEGREES},
        **{name: int(cells[name]) if cells[name] else None for name in _COUNTS},
        **{name: float(cells[name]) for name in _TOKENS},
        **{name: float(cells[name]) if cells[name] else None for name in _NUMBERS},
        "measured": {name: float(cells[name]) for name in METRICS if cells[name]},
    }
    measured, gaps = values["measured"], values["output_tokens"] - 1
    parts = ("ttft_mean_ms", "itl_mean_ms")
    if values["load"] == "open" and "e2e_mean_ms" not in measured and measured.keys() >= {*parts}:
        ttft, gap = (measured[name] for name in parts)
        measured["e2e_mean_ms"] = ttft + gaps * gap
    return Row(**values)


def model_of(row: Row) -> ModelProfile:
    """The row's model, from the catalogue."""
    return _model(row.model)


def device_of(row: Row) -> HardwareProfile:
    """The row's accelerator, from the catalogue."""
    return _device(row.device)


_model, _device = cache(model_profile), cache(hardware_profile)


def plan_request(row: Row) -> PlanRequest:
    """The row's one layout, its engine settings and its load, as a question to the planner.

    What starts all at once is asked as a closed loop of as many clients, which has its layout and
    its memory; that it also ends is the predictor's business.
    """
    return PlanRequest(
        model=model_of(row),
        hardware=(device_of(row),),
        workload=_workload(row),
        objective="throughput",
        weights=(row.weights,),
        kv_cache=(row.kv_cache,) if row.kv_cache else (),
        limits=Limits(
            max_accelerators=row.accelerators,
            tensor_parallel=(row.tensor_parallel,),
            pipeline_parallel=(row.pipeline_parallel,),
            expert_parallel=(row.expert_parallel,),
            attention_data_parallel=(row.attention_data_parallel,),
            replicas=(row.replicas,),
        ),
        serving=_serving(row),
    )


def _workload(row: Row) -> Workload:
    lengths = Length(row.input_tokens), Length(row.output_tokens)
    if row.load == "saturated" and row.requests is None:
        return Workload(*lengths, saturate=True)
    if row.load == "open":
        return Workload(*lengths, request_rate_per_s=row.request_rate_per_s)
    return Workload(*lengths, concurrency=row.concurrency or row.requests)


def _serving(row: Row) -> Serving:
    """The row's engine; a version older than the engine's data know is planned as their first."""
    faults = serving_faults(Serving(row.engine, row.engine_version))
    version = str(faults[0].nearest) if faults else row.engine_version
    serving = Serving(
        engine=row.engine,
        engine_version=version,
        memory_utilization=row.memory_utilization,
        max_num_seqs=row.max_num_seqs,
        max_num_batched_tokens=row.max_num_batched_tokens,
    )
    return _as_benchmarked(row, serving) if row.is_trtllm_bench else serving


def _as_benchmarked(row: Row, serving: Serving) -> Serving:
    lengths = row.input_tokens, row.output_tokens
    for source, longest in _BUILT_FOR.items():
        lengths = longest if source in row.source else lengths
    ranks = row.tensor_parallel
    found = bench_settings(model_of(row), device_of(row), row.weights, ranks, lengths)
    return replace(
        serving,
        memory_utilization=row.memory_utilization or CACHE_SHARE,
        max_num_seqs=found.max_num_seqs,
        max_num_batched_tokens=found.max_num_batched_tokens,
    )
