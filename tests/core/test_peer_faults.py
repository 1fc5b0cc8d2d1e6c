"""Mistakes that other planners of this kind were seen to make, and that this one must not."""

from __future__ import annotations

import pytest

from tests.core.profiles import answer, device, planned, unpriced, workload

GIB = 2**30


def test_one_cache_has_one_capacity():
    """76.57 GiB at 131,072 bytes per token and GPU are 627,261 tokens, however they are counted."""
    found = answer("qwen3-32b", "h200", workload(2000, 400, saturate=True),
                   limits={"tensor_parallel": (2,)})  # fmt: skip
    memory = found["recommended"]["memory"]
    tokens = memory["kv_cache_gib"] * GIB / 131_072
    assert memory["kv_capacity_tokens"] == pytest.approx(tokens, rel=1e-4)
    assert memory["max_concurrency"] == pytest.approx(tokens / (2200 + 7.5), abs=1)


@pytest.mark.parametrize("name", ["deepseek-v3", "deepseek-v2-lite"])
def test_latent_attention_is_neither_an_error_nor_multi_head_attention(name):
    kept = {"deepseek-v3": 70_272, "deepseek-v2-lite": 31_104}[name]
    found = answer(name, "h200", workload(2000, 400, saturate=True),
                   limits={"tensor_parallel": (8,)})  # fmt: skip
    memory = found["recommended"]["memory"]
    assert memory["kv_capacity_tokens"] == pytest.approx(
        memory["kv_cache_gib"] * GIB / kept, rel=1e-3
    )


@pytest.mark.parametrize(
    "load",
    [
        workload(1, 2, request_rate_per_s=1e-6), workload(1000, 250, request_rate_per_s=0.5),
        workload(1000, 250, request_rate_per_s=2.0), workload(20, 400, concurrency=1),
        workload(1000, 250, concurrency=7), workload(500, 100, saturate=True),
        workload(1000, 250, request_rate_per_s=0.5, prefix_cache_hit=1.0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt_llm", "generic"])
def test_no_token_of_a_32b_model_comes_faster_than_its_weights_are_read(load, engine):
    """64 GB over 3.35 TB/s is 19.1 ms, on one H100 at any load."""
    found = answer("qwen3-32b", "h100", load, serving={"engine": engine}, objective="latency",
                   limits={"tensor_parallel": (1,)})  # fmt: skip
    for one in found["candidates"]:
        for metric in ("tpot_ms", "itl_ms"):
            for value in one["latency"][metric].values():
                assert value is None or value >= 19.09


def test_a_mixture_is_sized_by_all_its_experts_and_timed_by_the_active_ones():
    found = answer("qwen3-30b-a3b", "h100", workload(1000, 250, request_rate_per_s=0.01),
                   limits={"tensor_parallel": (1,)})  # fmt: skip
    one = found["recommended"]
    assert one["memory"]["weights_gib"] == pytest.approx(30.532e9 * 2 / GIB, rel=1e-3)
    dense = answer("qwen3-32b", "h100", workload(1000, 250, request_rate_per_s=0.01),
                   limits={"tensor_parallel": (1,)})["recommended"]  # fmt: skip
    assert one["latency"]["tpot_ms"]["p50"] < dense["latency"]["tpot_ms"]["p50"] / 2
    too_small = answer("qwen3-30b-a3b", "l40s", limits={"tensor_parallel": (1,)})
    assert too_small["rejected"][0]["code"] == "does_not_fit"


@pytest.mark.parametrize(
    "load",
    [
        workload(2000, 300, request_rate_per_s=14.0), workload(2000, 300, concurrency=100),
        workload(2000, 300, concurrency=13),
    ],
)  # fmt: skip
def test_percentiles_are_not_copies_of_the_mean(load):
    found = answer("llama-3.1-8b", "h100", load, limits={"replicas": (2,), "tensor_parallel": (1,)})
    latency = found["candidates"][0]["latency"]
    for metric in ("ttft_ms", "tpot_ms", "e2e_ms"):
        p50, p95, p99 = (latency[metric][name] for name in ("p50", "p95", "p99"))
        assert p50 < p95 < p99


def test_prompts_of_a_full_batch_do_not_all_start_at_once():
    """With 100 clients in steady state, few prompts are computed at a time."""
    found = answer(load=workload(2000, 500, concurrency=100),
                   limits={"replicas": (1,), "tensor_parallel": (1,)})  # fmt: skip
    one = found["candidates"][0]
    alone = answer(load=workload(2000, 500, concurrency=1),
                   limits={"replicas": (1,), "tensor_parallel": (1,)})  # fmt: skip
    first = alone["candidates"][0]["latency"]["ttft_ms"]["mean"]
    assert one["latency"]["ttft_ms"]["p50"] < 20 * first


@pytest.mark.parametrize(("share", "verdict"), [(0.97, "stable"), (0.996, "near_saturation")])
def test_a_plan_at_its_last_per_cent_of_capacity_is_never_recommended(share, verdict):
    fixed = {"tensor_parallel": (8,), "replicas": (1,), "max_utilization": 1.0}
    asked = workload(4000, 500, saturate=True)
    most = planned("qwen3-32b", "h200", asked, fixed).evaluator.saturation[0]
    found = answer("qwen3-32b", "h200", workload(4000, 500, request_rate_per_s=share * most), fixed)
    one = found["candidates"][0]
    assert one["load"]["verdict"] == verdict
    assert one["load"]["utilization"] == pytest.approx(share, rel=1e-4)
    assert (found["recommended"] is None) == (verdict != "stable")


def test_a_request_near_saturation_waits_longer_than_an_slo_of_two_seconds():
    fixed = {"tensor_parallel": (8,), "replicas": (1,), "max_utilization": 1.0}
    asked = workload(4000, 500, saturate=True)
    most = planned("qwen3-32b", "h200", asked, fixed).evaluator.saturation[0]
    found = answer("qwen3-32b", "h200", workload(4000, 500, request_rate_per_s=0.996 * most), fixed)
    assert found["candidates"][0]["latency"]["ttft_ms"]["p99"] > 2000


def test_an_unpriced_accelerator_never_costs_nothing():
    found = answer(on=unpriced("h100"), objective="latency")
    assert {one["cost"]["per_hour"] for one in found["candidates"]} == {None}
    mixed = answer(on=(unpriced("h100"), device("h200")), objective="cost")
    assert {one["hardware"] for one in mixed["candidates"]} == {"h200"}


def test_totals_stand_beside_their_parts():
    found = answer("llama-3.1-70b", "h200", workload(2000, 300, request_rate_per_s=12.0),
                   limits={"tensor_parallel": (2,)})  # fmt: skip
    one = found["recommended"]
    assert one["replicas"] > 1
    assert one["accelerators"] == 2 * one["replicas"]
    words = " ".join(found["explanation"])
    assert f"{one['replicas']} replicas x TP2" in words
    assert f"{one['accelerators']} x h200" in words
    per_replica = one["load"]["concurrency_per_replica"]
    assert per_replica * one["replicas"] <= one["load"]["mean_concurrency"] * 1.001


def test_the_kv_cache_is_split_over_the_ranks_that_can_hold_its_heads():
    """4 KV heads: a rank keeps half as much at TP2, a quarter at TP4 and at TP8."""
    found = planned("qwen3-30b-a3b", "h100", workload(2000, 300, saturate=True),
                    limits={"tensor_parallel": (1, 2, 4, 8), "expert_parallel": (1,)})  # fmt: skip
    memory = found.evaluator.memory
    ranks = [layout.split.tensor_parallel for layout in found.evaluator.layouts]
    kept = dict(zip(ranks, memory.per_sequence, strict=True))
    assert kept[1] == 2 * kept[2] == 4 * kept[4] == 4 * kept[8]


def test_the_head_size_is_its_own_figure_and_not_hidden_over_heads():
    """Qwen3-32B: 64 heads of 128 on a hidden size of 5,120."""
    found = planned("qwen3-32b", "h200", workload(2000, 300, saturate=True))
    context = found.request.workload.live_context + 7.5  # the last block is half full
    per_token = found.evaluator.memory.per_sequence[0] / context
    ranks = found.evaluator.layouts[0].split.tensor_parallel
    assert per_token == pytest.approx(262_144 / ranks)


def test_words_for_a_limit_say_which_memory_they_mean():
    texts = []
    for load in (workload(1000, 250, request_rate_per_s=2.0), workload(30_000, 50, saturate=True)):
        found = answer(load=load)
        texts += [*found["explanation"], str(found["rejected"])]
    texts.append(str(answer("llama-3.1-70b", "h100", limits={"tensor_parallel": (1,)})["rejected"]))
    everything = " ".join(texts).lower()
    assert "bandwidth-bound" in everything
    assert "capacity-bound" in everything
    assert "memory-bound" not in everything
    assert "memory bound" not in everything
