"""The engine settings of TensorRT-LLM's own benchmark, worked out by hand from its rule."""

from __future__ import annotations

import pytest

from advisor.accuracy.rows import plan_request, rows
from advisor.accuracy.trtllm_bench import BenchSettings, bench_settings
from advisor.catalog.loader import hardware_profile, model_profile


@pytest.mark.parametrize(
    ("model", "weights", "ranks", "lengths", "expected"),
    [
        # (79.2 GiB - 8.03e9 B) * 0.95 / (65,536 B * 2,000) = 558 requests, 1,116 tokens
        ("meta-llama-3.1-8b", "fp8", 1, (1000, 1000), (640, 2048)),
        # (79.2 - 65.7 GiB) * 0.95 / (163,840 B * 2,000) = 42 requests
        ("meta-llama-3.1-70b", "fp8", 1, (1000, 1000), (64, 2048)),
        # (633.6 - 65.7 GiB) * 0.95 / (163,840 B * 5,500) = 643 requests, 7,070 tokens
        ("meta-llama-3.1-70b", "fp8", 8, (5000, 500), (768, 7168)),
        # (633.6 - 131.4 GiB) * 0.95 / (327,680 B * 256) = 6,107: capped at 4,096 and 8,192 tokens
        ("meta-llama-3.1-70b", "fp16", 8, (128, 128), (4096, 8192)),
    ],
)
def test_the_largest_batch_follows_from_the_requests_that_the_cache_would_hold(
    model, weights, ranks, lengths, expected
):
    device = hardware_profile("h100-sxm-80gb")
    found = bench_settings(model_profile(model), device, weights, ranks, lengths)
    assert found == BenchSettings(*expected)


def test_only_throughput_runs_of_that_tool_are_planned_so():
    tuned = [row for row in rows() if row.is_trtllm_bench]
    assert {row.engine for row in tuned} == {"tensorrt_llm"}
    assert {row.load for row in tuned} == {"saturated"}
    for row in rows():
        asked = plan_request(row).serving.max_num_seqs
        assert (asked is not None) == (row.is_trtllm_bench or row.max_num_seqs is not None)


def test_an_engine_for_runs_of_several_lengths_is_built_for_the_longest():
    of_azure = [row for row in rows() if row.is_trtllm_bench and "Azure" in row.source]
    short = [row for row in of_azure if row.output_tokens == 128 and row.tensor_parallel == 1]
    assert {plan_request(row).serving.max_num_seqs for row in short} == {384, 512}
