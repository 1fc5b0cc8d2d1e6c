"""Questions that people asked in public about replicas and tensor parallelism, with what they
measured, asked of the catalogue's models and accelerators."""

from __future__ import annotations

import pytest

from advisor.catalog.loader import hardware_profile, model_profile
from tests.core.profiles import planned, workload


def rows(name, on, load, limits, weights, kv_cache=None, **serving):
    """Of each layout at one replica: tensor-parallel degree, requests/s and mean TPOT [s]."""
    found = planned(
        model_profile(name), hardware_profile(on), load, limits | {"replicas": (1,)},
        serving, weights=(weights,), kv_cache=(kv_cache,) if kv_cache else (), objective="latency",
    )  # fmt: skip
    served = found.candidates.served
    splits = [found.evaluator.layouts[i].split for i in found.candidates.layout]
    return {
        (split.tensor_parallel, split.expert_parallel): (
            float(served.requests_per_s[i]),
            float(served.latency["tpot"].mean[i]),
        )
        for i, split in enumerate(splits)
    }


@pytest.mark.parametrize(("clients", "measured"), [(1, 36.2), (16, 528)])
def test_a_32b_model_on_eight_a100_is_fastest_wide_and_cheapest_at_two(clients, measured):
    """QwQ-32B, vLLM 0.7.2: 36.2, 50 and 63 tokens/s over 2, 4 and 8 for one stream, 528, 660 and
    760 for 16: per accelerator TP2 is best. github.com/vllm-project/vllm/issues/16300"""
    load = workload(1, 200, concurrency=clients)
    found = rows(
        "qwen2.5-32b", "a100-sxm-80gb", load, {"tensor_parallel": (2, 4, 8)}, "bf16",
        engine_version="0.7",
    )  # fmt: skip
    rates = {ranks: 200 * rate for (ranks, _), (rate, _) in found.items()}
    assert rates[2] == pytest.approx(measured, rel=0.2)
    assert rates[2] < rates[4] < rates[8] < 4 * rates[2]
    assert rates[2] / 2 > rates[4] / 4 > rates[8] / 8


@pytest.mark.parametrize(
    ("inputs", "outputs", "gain"), [(128, 4, 1.33), (2000, 100, 1.14), (32_000, 100, 1.24)]
)
def test_two_groups_of_four_serve_more_than_one_of_eight_each_more_slowly(inputs, outputs, gain):
    """Qwen3-235B on 8 A100, TP8 in its own format or twice TP4 in FP8: 1.33, 1.14 and 1.24 times
    the tokens, at a longer TPOT. GPUStack 2.3, performance lab"""
    load = workload(inputs, outputs, saturate=True)
    wide = rows("qwen3-235b-a22b", "a100-sxm-80gb", load, {"tensor_parallel": (8,)}, "bf16")
    narrow = rows("qwen3-235b-a22b", "a100-sxm-80gb", load, {"tensor_parallel": (4,)}, "fp8")
    (rate, gap), (half, longer) = wide[8, 1], narrow[4, 1]
    assert 1 < 2 * half / rate < 1.5 * gain
    assert longer > gap


@pytest.mark.parametrize(
    ("inputs", "outputs", "measured", "kept"),
    [(128, 128, 28_011, 0.18), (1000, 1000, 9_910, 0.40), (5000, 500, 2_530, 0.29)],
)
def test_on_cards_without_a_fast_link_replicas_serve_more(inputs, outputs, measured, kept):
    """Qwen3-30B-A3B in FP4 on RTX PRO 6000: output tokens/s of one card, and what each of eight in
    one group keeps of that. TensorRT-LLM, performance overview"""
    load = workload(inputs, outputs, saturate=True)
    found = rows(
        "qwen3-30b-a3b", "rtx-pro-6000-blackwell-server", load, {"tensor_parallel": (1, 8)},
        "nvfp4", "fp8", engine="tensorrt_llm",
    )  # fmt: skip
    alone = found[1, 1][0] * outputs
    assert alone == pytest.approx(measured, rel=0.35)
    together = max(rate for (ranks, _), (rate, _) in found.items() if ranks == 8) * outputs
    assert together / 8 / alone < kept
