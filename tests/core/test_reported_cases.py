"""Questions that people asked in public about memory and single-stream speed, with what they
measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.core.engines import engine_settings
from advisor.core.hardware import HardwareProfile, Interconnect
from advisor.core.layouts import Layout, Split, stage_loads
from advisor.core.memory import activation_bytes, kv_cache_bytes, longest_request, stored_bytes
from advisor.core.model import ModelProfile
from advisor.core.workload import Serving
from tests.core.profiles import answer, config, device, model, pages, workload

GIB = 2**30
CARD = HardwareProfile(
    name="rtx-5090", vendor="nvidia", generation="blackwell", memory_gib=31.4,
    memory_bandwidth_gb_s=1792, dense_tflops={"bf16": 209.5, "fp8": 419},
)  # fmt: skip
B200 = HardwareProfile(
    name="b200", vendor="nvidia", generation="blackwell", memory_gib=178.4,
    memory_bandwidth_gb_s=8000, dense_tflops={"bf16": 2250, "fp8": 4500, "fp4": 9000},
    interconnect=Interconnect("nvlink", "switched", 900, 8),
)  # fmt: skip
QWEN_7B = config(
    "qwen2.5-72b", hidden_size=3584, num_hidden_layers=28, num_attention_heads=28,
    num_key_value_heads=4, intermediate_size=18944,
)  # fmt: skip


def test_memory_grows_by_kv_heads_and_not_by_attention_heads():
    """A 7B model in int8 reserves 0.16 GB more for each request of 3,072 tokens (measured at 5, 20
    and 50 of them: 10.6, 13.0 and 18.1 GB); with all 28 heads it would be ten times that.
    github.com/vllm-project/vllm/issues/22291"""
    of = ModelProfile.from_mapping({"name": "qwen2.5-7b", "hf_config": QWEN_7B})
    load = stage_loads(of, Split(weights="int8"))[0]
    one = pages(load).admitted_bytes(3072, 2048)
    assert one == 3072 * 57_344
    assert one / GIB == pytest.approx(0.16, abs=0.005)
    measured = {5: 10.6, 20: 13.0, 50: 18.1}
    assert one / 1e9 == pytest.approx((measured[50] - measured[5]) / 45, rel=0.06)


def stage_room(memory_gib, stage):
    """What is left beside the weights of one stage, 16 or 32 layers, on a card of its own."""
    on = replace(CARD, memory_gib=memory_gib)
    split = Split(1, 2, weights="fp8", pipeline_layers=(16, 32))
    settings = engine_settings(Serving(memory_utilization=0.9), on, split, 262_144)
    layout, of = Layout(on, split), model("qwen3-30b-a3b")
    load = stage_loads(of, split)[stage]
    weights = stored_bytes(of, layout, settings, load)
    left = kv_cache_bytes(layout, settings, weights, activation_bytes(of, settings, load))
    return pages(load), left.value


def test_a_pipeline_of_unequal_stages_holds_the_kv_cache_stage_by_stage():
    """16 and 32 layers on cards of 16 and 32 GB: 262,144 tokens take 8 and 16 GiB, not the 24 GiB
    of the whole model on one card, yet do not fit beside the weights of either; 3.18 GiB hold
    104,000 tokens of 16 layers. github.com/vllm-project/vllm/issues/34076"""
    for stage, memory_gib, needed in ((0, 15.92, 8), (1, 31.84, 16)):
        taken, left = stage_room(memory_gib, stage)
        assert taken.admitted_bytes(262_144, 2048) == needed * GIB
        assert left < needed * GIB
    first = stage_room(15.92, 0)[0]
    tokens = 3.18 * GIB // first.block_bytes * 16
    assert tokens == pytest.approx(104_000, rel=0.005)


def test_the_longest_request_that_fits_is_the_one_an_engine_estimates():
    """vLLM's estimate for the whole model in 3.18 GiB: 34,736 tokens, a search over lengths."""
    split = Split(weights="fp8")
    load = stage_loads(model("qwen3-30b-a3b"), split)[0]
    assert 3.18 * GIB // pages(load).admitted_bytes(1, 0) * 16 == pytest.approx(34_736, abs=64)
    on = device("h100")
    settings = engine_settings(Serving(), on, split, 10_000_000)
    longest = longest_request(model("qwen3-30b-a3b"), Layout(on, split), settings)
    weights = stored_bytes(model("qwen3-30b-a3b"), Layout(on, split), settings, load)
    activation = activation_bytes(model("qwen3-30b-a3b"), settings, load)
    room = kv_cache_bytes(Layout(on, split), settings, weights, activation).value
    assert pages(load).admitted_bytes(longest, 2048) <= room
    assert pages(load).admitted_bytes(longest + 1, 2048) > room


def single_stream(name, weights):
    found = answer(
        name, CARD, workload(64, 256, concurrency=1), objective="latency",
        weights=(weights,), limits={"tensor_parallel": (1,), "replicas": (1,)},
        serving={"engine": "generic"},
    )  # fmt: skip
    return found["candidates"][0]


@pytest.mark.parametrize(
    ("name", "weights", "gb"), [("llama-3.1-8b", "bf16", 15.01), ("qwen3-32b", "int4_awq", 17.77)]
)
def test_one_stream_on_a_card_is_bound_by_reading_the_weights(name, weights, gb):
    """15.01 GB over 1,792 GB/s: at most 119 tokens/s, 105.7 measured; 16.8 GB: 92.5 measured, 87 %
    of the peak. github.com/gittensor-ai-lab/sparkinfer/issues/947"""
    found = single_stream(name, weights)
    ceiling = 1792 / gb
    rate = 1000 / found["latency"]["tpot_ms"]["mean"]
    assert 0.75 * ceiling < rate < ceiling
    assert found["bottleneck"]["decode"]["kind"] == "memory_bandwidth"


def test_replicas_serve_more_than_one_wide_group_where_one_card_holds_the_model():
    """70B in FP4 on B200, saturated at 128/128 and 128/2,048: 11,253 and 9,925 output tokens/s on
    one card, 31 and 39 % of that for each of eight (TensorRT-LLM performance overview 0.19)."""
    for outputs, measured, kept in ((128, 11_253, 0.31), (2048, 9_925, 0.39)):
        found = answer(
            "llama-3.1-70b", B200, workload(128, outputs, saturate=True), objective="throughput",
            weights=("nvfp4",), kv_cache=("fp8",), limits={"tensor_parallel": (1, 8)},
            serving={"engine": "tensorrt_llm"},
        )  # fmt: skip
        each = {
            plan["tensor_parallel"]: plan["throughput"]["output_tokens_per_s_per_accelerator"]
            for plan in found["candidates"]
        }
        assert each[1] == pytest.approx(measured, rel=0.3)
        assert each[8] / each[1] == pytest.approx(kept, abs=0.12)
        assert found["recommended"]["tensor_parallel"] == 1
