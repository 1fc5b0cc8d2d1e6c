"""The file of measured rows: names that the catalogue knows, units, ranges, and readings that agree
with each other."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest

from advisor.accuracy.rows import (
    LATENCIES,
    LENGTHS,
    LOADS,
    Row,
    device_of,
    model_of,
    plan_request,
    rows,
)
from advisor.core.workload import ENGINES, KV_PRECISIONS, WEIGHT_PRECISIONS

ROWS = rows()


def _without(row: Row, metric: str) -> dict[str, float]:
    return {name: value for name, value in row.measured.items() if name != metric}


def test_no_id_is_given_twice():
    assert [each for each, count in Counter(row.id for row in ROWS).items() if count > 1] == []


def test_every_row_names_what_is_known_here():
    for row in ROWS:
        assert model_of(row).name == row.model
        assert device_of(row).name == row.device
        assert row.engine in ENGINES
        assert row.weights in WEIGHT_PRECISIONS
        assert row.kv_cache is None or row.kv_cache in KV_PRECISIONS
        assert row.load in LOADS
        assert row.lengths in LENGTHS
        assert row.tier in ("A", "B")


def test_every_row_has_a_source_and_something_measured():
    for row in ROWS:
        assert len(row.source) > 5, row.id
        assert row.measured, row.id
        assert row.date == "" or re.fullmatch(r"20\d\d(-\d\d){0,2}", row.date), row.id


def test_every_row_has_the_load_it_names():
    for row in ROWS:
        assert (row.request_rate_per_s is not None) == (row.load == "open"), row.id
        if row.load in ("fixed_concurrency", "static_batch"):
            assert row.concurrency, row.id
        if row.load == "burst":
            assert row.requests, row.id
        if row.load == "saturated":
            assert not set(row.measured) & set(LATENCIES), row.id


def test_figures_lie_where_such_figures_can_lie():
    for row in ROWS:
        assert 1 <= row.input_tokens <= 131_072, row.id
        assert 1 <= row.output_tokens <= 32_768, row.id
        assert 1 <= row.accelerators <= 64, row.id
        assert row.tensor_parallel % row.expert_parallel == 0, row.id
        assert row.tensor_parallel % row.attention_data_parallel == 0, row.id
        assert row.memory_utilization is None or 0.5 <= row.memory_utilization <= 0.95, row.id
        for metric, value in row.measured.items():
            if metric.startswith(("tpot", "itl")):
                assert 1 <= value <= 1000, (row.id, metric)
            elif metric in LATENCIES:
                assert 1 <= value <= 600_000, (row.id, metric)


def test_percentiles_rise():
    for row in ROWS:
        for metric in ("ttft", "tpot"):
            low, high = (row.measured.get(f"{metric}_{each}_ms") for each in ("p50", "p99"))
            assert low is None or high is None or low <= high, row.id


def test_lengths_of_a_uniform_draw_are_nine_tenths_of_the_nominal():
    drawn = {row.output_tokens for row in ROWS if row.source.startswith("InferenceMAX")}
    assert drawn == {0.9 * 1024, 0.9 * 8192}


def test_published_throughput_of_a_closed_loop_is_its_clients_over_their_time():
    """Little's law. A run of 10 requests a client also fills and drains, hence the room."""
    checked = 0
    for row in ROWS:
        needed = {"ttft_mean_ms", "tpot_mean_ms", "output_tokens_per_s"}
        if row.load == "fixed_concurrency" and needed <= set(row.measured):
            derived = replace(row, measured=_without(row, "output_tokens_per_s")).throughput
            assert row.throughput == pytest.approx(derived, rel=0.1), row.id
            checked += 1
    assert checked > 100


def test_end_to_end_is_first_token_and_gaps():
    for row in ROWS:
        found = row.measured
        if {"ttft_mean_ms", "tpot_mean_ms", "e2e_mean_ms"} <= set(found):
            gaps = (row.output_tokens - 1) * found["tpot_mean_ms"]
            assert found["e2e_mean_ms"] == pytest.approx(found["ttft_mean_ms"] + gaps, rel=0.05)


def test_a_batch_that_begins_and_ends_together_serves_itself_over_its_time():
    for row in ROWS:
        if row.load == "static_batch" and "output_tokens_per_s" in row.measured:
            assert row.concurrency is not None
            e2e_s = row.measured["e2e_mean_ms"] / 1e3
            expected = row.concurrency * row.output_tokens / e2e_s
            assert row.measured["output_tokens_per_s"] == pytest.approx(expected, rel=0.01)


def test_a_request_asks_for_the_one_layout_that_was_measured():
    row = next(row for row in ROWS if row.attention_data_parallel > 1 and row.pipeline_parallel > 1)
    request = plan_request(row)
    assert request.limits.tensor_parallel == (row.tensor_parallel,)
    assert request.limits.pipeline_parallel == (row.pipeline_parallel,)
    assert request.limits.expert_parallel == (row.expert_parallel,)
    assert request.limits.attention_data_parallel == (row.attention_data_parallel,)
    assert request.weights == (row.weights,)


def test_an_engine_older_than_the_engine_data_is_planned_as_their_first():
    row = next(row for row in ROWS if row.engine_version == "0.17" and row.engine == "tensorrt_llm")
    assert plan_request(row).serving.engine_version == "1.0"
