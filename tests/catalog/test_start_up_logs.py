"""Memory as the planner counts it, against what engines printed when they started.

`data/start_up_logs.csv`: public start-up logs, one a row, with their source; blank: not printed.
`checks` names what a row is good for.
"""

from __future__ import annotations

import csv
import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from advisor.catalog.loader import model_documents
from advisor.core.engines import EngineSettings, engine_settings
from advisor.core.hardware import HardwareProfile, Interconnect
from advisor.core.layouts import Layout, Split, StageLoad, stage_loads
from advisor.core.memory import activation_bytes, kv_cache_bytes, stored_bytes
from advisor.core.model import ModelProfile
from advisor.core.paging import Paging, paging
from advisor.core.plans import plan
from advisor.core.units import GIB, Estimate
from advisor.core.workload import Length, Limits, PlanRequest, Serving, Workload

FILE = Path(__file__).parent / "data" / "start_up_logs.csv"
MORE_LOADED = ("qwen3-next-80b-a3b-instruct",)
"""Rows in which layers for multi-token prediction were loaded too."""


@cache
def _models() -> dict[str, ModelProfile]:
    return {each["name"]: ModelProfile.from_mapping(each) for each in model_documents()}


@dataclass(frozen=True)
class Log:
    """One start-up log, read as a layout under its engine's settings."""

    row: dict[str, str]

    def __str__(self) -> str:
        return f"{self.row['model']}-{self.row['version']}-tp{self.row['tensor_parallel']}"

    def number(self, key: str) -> float | None:
        return float(self.row[key]) if self.row[key] else None

    def whole(self, key: str) -> int | None:
        return int(self.row[key]) if self.row[key] else None

    @property
    def model(self) -> ModelProfile:
        return _models()[self.row["model"]]

    @property
    def device(self) -> HardwareProfile:
        return HardwareProfile(
            name="logged", vendor=self.vendor, memory_bandwidth_gb_s=1000,
            dense_tflops={"bf16": 100},
            memory_gib=self.number("memory_gib") or 79.2, generation=self.row["generation"],
            interconnect=Interconnect("nvlink", "switched", 100, 8),
        )  # fmt: skip

    @property
    def vendor(self) -> str:
        return "amd" if self.row["generation"].startswith("cdna") else "nvidia"

    @property
    def serving(self) -> Serving:
        return Serving(
            engine=self.row["engine"],
            engine_version=self.row["version"],
            memory_utilization=self.number("memory_utilization"),
            max_model_len=self.whole("max_model_len") or self.model.architecture.context_length,
            max_num_seqs=self.whole("max_num_seqs"),
            max_num_batched_tokens=self.whole("max_num_batched_tokens"),
        )

    @property
    def layout(self) -> Layout:
        ranks, shared = int(self.row["tensor_parallel"]), int(self.row["decode_context_parallel"])
        split = Split(
            ranks, decode_context_parallel=shared,
            weights=self.row["weights"], kv_cache=self.row["kv_cache"],
        )  # fmt: skip
        return Layout(self.device, split)

    @property
    def settings(self) -> EngineSettings:
        return engine_settings(self.serving, self.device, self.layout.split, 0)

    @property
    def stage(self) -> StageLoad:
        return stage_loads(self.model, self.layout.split)[0]

    @property
    def pages(self) -> Paging:
        return paging(self.stage, self.settings, self.layout.split.decode_context_parallel)

    @property
    def weights(self) -> float:
        return stored_bytes(self.model, self.layout, self.settings, self.stage)

    @property
    def kv_cache(self) -> Estimate:
        activation = activation_bytes(self.model, self.settings, self.stage)
        left = kv_cache_bytes(self.layout, self.settings, self.weights, activation)
        return Estimate(*(size / GIB for size in left))


def _logs(check: str) -> list[Log]:
    with FILE.open(encoding="utf-8", newline="") as lines:
        return [Log(row) for row in csv.DictReader(lines) if check in row["checks"].split()]


def _errors(check: str, logged: str) -> Iterator[tuple[Log, float]]:
    for log in _logs(check):
        value = log.number(logged)
        if value:
            yield log, value


def _percentile(values: list[float], share: float) -> float:
    return sorted(values)[int(share * len(values))]


def test_tokens_follow_from_the_kv_cache_that_was_printed():
    """GQA, MLA, sliding windows, linear attention and context parallelism; GiB have two digits."""
    off = {}
    for log, tokens in _errors("tokens", "kv_cache_tokens"):
        size = log.number("kv_cache_gib")
        assert size is not None
        counted = log.pages.reported_tokens(size * GIB, log.settings)
        assert counted is not None
        off[str(log)] = abs(counted / tokens - 1)
    assert len(off) >= 15
    assert statistics.median(off.values()) < 0.0005
    assert max(off.values()) < 0.0025


def test_weights_on_each_gpu_are_those_that_were_printed():
    logs = list(_errors("weights", "weights_gib"))
    off = [abs(log.weights / GIB / printed - 1) for log, printed in logs]
    assert len(off) >= 20
    assert statistics.median(off) < 0.004
    assert _percentile(off, 0.9) < 0.01
    worst = {log.row["model"] for (log, _), error in zip(logs, off, strict=True) if error >= 0.01}
    assert worst <= set(MORE_LOADED)


def test_the_kv_cache_is_known_from_the_profile_alone():
    """Median error within 4 % of the budget (it is a tenth of that), and the stated range holds
    what was printed as often as it should."""
    off, held = [], []
    for log, printed in _errors("kv", "kv_cache_gib"):
        memory, share = log.number("memory_gib"), log.number("memory_utilization")
        assert memory
        assert share
        left = log.kv_cache
        off.append(abs(left.value - printed) / (memory * share))
        held.append(left.low <= printed <= left.high)
    assert len(off) >= 20
    assert statistics.median(off) < 0.01
    assert _percentile(off, 0.9) < 0.1
    assert 0.8 <= sum(held) / len(held) <= 0.95


@pytest.mark.parametrize("log", _logs("refused"), ids=str)
def test_what_an_engine_refused_for_memory_is_refused_for_memory(log):
    ask = PlanRequest(
        log.model, (log.device,), Workload(Length(100), Length(50), saturate=True),
        objective="throughput", weights=(log.row["weights"],), kv_cache=(log.row["kv_cache"],),
        limits=Limits(tensor_parallel=(int(log.row["tensor_parallel"]),), expert_parallel=(1,)),
        serving=log.serving,
    )  # fmt: skip
    assert [(each.code, each.split.tensor_parallel) for each in plan(ask).rejected] == [
        ("does_not_fit", int(log.row["tensor_parallel"]))
    ]


def test_more_sequences_than_recurrent_states_are_refused_as_vllm_does():
    """Nemotron 3 Super on two H100: "max_num_seqs (1024) exceeds available Mamba cache blocks
    (524)"; its utilization is not known, so neither is the number."""
    ask = PlanRequest(
        _models()["nvidia-nemotron-3-super-120b-a12b-bf16"],
        (replace(_logs("refused")[0].device, memory_gib=79.2),),
        Workload(Length(1000), Length(200), saturate=True), objective="throughput",
        weights=("fp8",), limits=Limits(tensor_parallel=(2,), expert_parallel=(1,)),
        serving=Serving(engine_version="0.22", max_num_seqs=1024),
    )  # fmt: skip
    (refused,) = plan(ask).rejected
    assert refused.code == "too_few_state_blocks"
    assert re.search("exceeds the [4-9][0-9]{2} blocks", refused.detail)
