"""Engine defaults by version and device, as their sources and logs state them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.core.engines import engine_settings, serving_faults
from advisor.core.layouts import Split
from advisor.core.workload import Serving
from tests.core.profiles import answer, device, workload


def settings(version=None, on="h100", ranks=1, longest=4096.0, engine="vllm", **serving):
    ask = Serving(engine=engine, engine_version=version, **serving)
    return engine_settings(ask, device(on) if isinstance(on, str) else on, Split(ranks), longest)


@pytest.mark.parametrize(
    ("version", "utilization", "graphs", "sampler"),
    [
        ("0.6.6.post1", 0.9, False, "pytorch"),
        ("0.8.5", 0.9, False, "pytorch"),
        ("0.11.0", 0.9, False, "pytorch"),
        ("0.17.1", 0.9, False, "triton"),
        ("0.19.1", 0.9, False, "triton"),
        ("0.20.0", 0.92, True, "triton"),
        ("0.21.0", 0.92, True, "flashinfer"),
        ("v0.29.0rc1", 0.92, True, "flashinfer"),
        ("0.33.0", 0.92, True, "flashinfer"),
        (None, 0.92, True, "flashinfer"),
    ],
)
def test_a_version_of_vllm_has_its_own_budget(version, utilization, graphs, sampler):
    found = settings(version)
    assert found.memory_utilization == utilization
    assert (found.graph_gib.value > 0) == graphs
    assert found.sampler == sampler


@pytest.mark.parametrize(
    ("version", "on", "seqs", "tokens"),
    [
        ("0.11.0", "h100", 1024, 8192),
        ("0.11.0", "mi300x", 1024, 8192),
        ("0.33.0", "mi300x", 1024, 16384),
        ("0.33.0", "h100", 1024, 8192),
        ("0.33.0", "h200", 1024, 8192),
        ("0.8.5", "a100", 1024, 8192),
        ("0.9.0", "a100", 256, 2048),
        ("0.33.0", "a100", 256, 2048),
        ("0.33.0", "l40s", 256, 2048),
    ],
)
def test_batch_limits_follow_the_version_and_the_device(version, on, seqs, tokens):
    found = settings(version, on)
    assert (found.max_num_seqs, found.max_num_batched_tokens) == (seqs, tokens)


def test_before_chunked_prefill_a_whole_prompt_is_one_step():
    assert settings("0.6.6", longest=20_000).max_num_batched_tokens == 20_000
    assert settings("0.6.6", longest=1_000).max_num_batched_tokens == 2048
    assert settings("0.6.6", longest=131_072).max_num_batched_tokens == 2048
    assert settings("0.8.0", "l40s", longest=20_000).max_num_batched_tokens == 2048


def test_what_is_given_is_kept():
    found = settings("0.11.0", memory_utilization=0.5, max_num_seqs=7, max_num_batched_tokens=99,
                     max_model_len=1234, sampler="flashinfer")  # fmt: skip
    assert (found.memory_utilization, found.max_num_seqs) == (0.5, 7)
    assert (found.max_num_batched_tokens, found.max_model_len) == (99, 1234)
    assert found.sampler_bytes.value == 14


@pytest.mark.parametrize(
    ("memory_gib", "ranks", "reserved_gib"),
    [
        (79.2, 1, 13.125),  # 512 + 1.5 * 8192 + 2 * 256 MiB and an eighth of a GiB a rank
        (79.2, 8, 14.5),  # 512 graphs from TP 4 on
        (191.7, 8, 26.5),  # 512 + 1.5 * 16384 + 2 * 512 MiB and a GiB
        (23.6, 1, 3.671875),  # 512 + 1.5 * 2048 + 2 * 24 + 128 MiB
        (44.4, 4, 7.3125),  # 512 + 1.5 * 4096 + 2 * 160 + 512 MiB
    ],
)
def test_sglang_leaves_a_reserve_that_grows_with_its_batches(memory_gib, ranks, reserved_gib):
    on = replace(device("h100"), memory_gib=memory_gib)
    found = settings(on=on, ranks=ranks, engine="sglang")
    left = memory_gib - reserved_gib
    assert found.memory_utilization == pytest.approx(left / memory_gib, rel=1e-9)


@pytest.mark.parametrize(
    ("serving", "pointer"),
    [
        (Serving(engine_version="0.4.1"), "/serving/engine_version"),
        (Serving(engine_version="latest"), "/serving/engine_version"),
        (Serving(engine="generic", engine_version="1.0"), "/serving/engine_version"),
        (Serving(engine="sglang", sampler="pytorch"), "/serving/sampler"),
    ],
)
def test_what_no_row_knows_is_refused(serving, pointer):
    assert [fault.pointer for fault in serving_faults(serving)] == [pointer]


def test_the_sampler_takes_its_peak_from_the_kv_cache():
    """1,024 sequences of 128,256 logits at 38.6 and at 14 bytes: 4.72 and 1.71 GiB."""
    found = {}
    for sampler in ("pytorch", "flashinfer"):
        plan = answer("llama-3.1-8b", "h100", workload(1000, 200, saturate=True),
                      limits={"tensor_parallel": (1,)},
                      serving={"sampler": sampler})  # fmt: skip
        found[sampler] = plan["candidates"][0]["memory"]
    assert found["pytorch"]["activation_gib"] == pytest.approx(4.721, abs=0.001)
    assert found["flashinfer"]["activation_gib"] == pytest.approx(1.712, abs=0.001)
    gained = found["flashinfer"]["kv_cache_gib"] - found["pytorch"]["kv_cache_gib"]
    assert gained == pytest.approx(4.721 - 1.712, abs=0.001)
