"""Figures behind charts: each point of a curve against a plan made for it, steps against sums."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from advisor.core.errors import InvalidInput
from advisor.core.figures import plan_figures
from advisor.core.plans import plan
from advisor.core.workload import PlanRequest, Workload
from tests.core.profiles import request, workload

_DEGREES = ("tensor_parallel", "expert_parallel", "pipeline_parallel", "replicas")


def answered(asked: PlanRequest) -> tuple[dict[str, Any], dict[str, Any]]:
    """The answer as it travels, and its figures."""
    answer = json.loads(json.dumps(plan(asked).as_dict()))
    return answer, plan_figures(asked, answer)


def at_load(asked: PlanRequest, candidate: dict[str, Any], load: Workload) -> dict[str, Any]:
    """The one candidate that the planner answers for a deployment under a load."""
    fixed: dict[str, Any] = {name: (candidate[name],) for name in _DEGREES}
    serving = replace(asked.serving, max_num_seqs=candidate["serving"]["max_num_seqs"])
    alone = replace(
        asked, workload=load, limits=replace(asked.limits, **fixed), serving=serving,
        objective="latency",
    )  # fmt: skip
    (found,) = plan(alone).as_dict()["candidates"]
    return dict(found)


TWO = {"tensor_parallel": (1,), "replicas": (2,)}
OPEN: dict[str, Any] = {"slo": {"ttft_p95_ms": 1000}, "limits": TWO}
PEAKED = {"load": replace(workload(1000, 250, request_rate_per_s=4.0), peak_to_mean=2.0)}


SPARE = {"limits": TWO | {"spare_replicas": 1}}


@pytest.mark.parametrize("more", [{}, PEAKED, SPARE], ids=["open", "peaked", "spare"])
def test_each_point_of_a_load_curve_is_the_plan_made_for_that_rate(more: dict[str, Any]):
    asked = request(**OPEN | more)
    answer, figures = answered(asked)
    curve, chosen = figures["load_curve"], answer["recommended"]
    assert curve["load"] == "request_rate_per_s"
    peak = asked.workload.peak_to_mean
    saturation = chosen["throughput"]["saturation_requests_per_s"] / peak
    assert curve["saturation"] == pytest.approx(saturation, rel=1e-2)
    assert curve["points"][-1]["load"] == pytest.approx(0.99 * curve["saturation"], rel=1e-4)
    for point in curve["points"][::6] + curve["points"][-1:]:
        load = replace(asked.workload, request_rate_per_s=point["load"])
        found = at_load(asked, chosen, load)["latency"]
        for metric in ("ttft_ms", "itl_ms", "e2e_ms"):
            for statistic in ("p50", "p95", "p99"):
                assert point[metric][statistic] == pytest.approx(found[metric][statistic])


def test_of_a_closed_loop_each_point_is_the_plan_made_for_so_many_clients():
    asked = request(load=workload(1000, 250, concurrency=32), **OPEN)
    answer, figures = answered(asked)
    curve, chosen = figures["load_curve"], answer["recommended"]
    assert (curve["load"], curve["saturation"]) == ("concurrency", None)
    slots = min(chosen["memory"]["max_concurrency"], chosen["serving"]["max_num_seqs"])
    assert curve["points"][-1]["load"] == 2 * 2 * slots
    for point in curve["points"][::5]:
        clients = int(point["load"])
        found = at_load(asked, chosen, replace(asked.workload, concurrency=clients))["latency"]
        assert point["ttft_ms"]["p95"] == pytest.approx(found["ttft_ms"]["p95"])
        assert point["itl_ms"]["p50"] == pytest.approx(found["itl_ms"]["p50"])


def test_a_saturating_load_has_the_curve_of_an_open_one():
    _, figures = answered(request(load=workload(1000, 250, saturate=True)))
    _, of_open = answered(request(**OPEN))
    assert figures["load_curve"]["load"] == "request_rate_per_s"
    assert len(figures["load_curve"]["points"]) == len(of_open["load_curve"]["points"])


def test_the_ways_cross_where_the_answer_says():
    load = workload(1000, 250, request_rate_per_s=20.0)
    asked = request(load=load, explain="full")
    answer, figures = answered(asked)
    crossing = next(c for c in figures["crossing_loads"] if c["reason"] is None)
    assert figures["crossing_loads"] == answer["crossing_loads"]
    plain = json.loads(json.dumps(plan(replace(asked, explain="brief")).as_dict()))
    assert plain["crossing_loads"] is None
    assert (
        plan_figures(replace(asked, explain="brief"), plain)["crossing_loads"]
        == (figures["crossing_loads"])
    )
    names = ("tensor_parallel", "replicas")
    below, above = (
        tuple(crossing[side][name] for name in names) for side in ("better_below", "better_above")
    )

    def p95(way: tuple[int, ...], rate: float) -> float:
        (curve,) = [w for w in figures["ways"] if tuple(w[name] for name in names) == way]
        points = [(p["load"], p["e2e_ms"]["p95"]) for p in curve["points"]]
        before = max(p for p in points if p[0] <= rate)
        after = min((p for p in points if p[0] > rate), default=before)
        share = (rate - before[0]) / (after[0] - before[0]) if after != before else 0.0
        return float(before[1] + share * (after[1] - before[1]))

    at = crossing["request_rate_per_s"]
    assert p95(below, 0.8 * at) < p95(above, 0.8 * at)
    assert p95(below, 1.15 * at) > p95(above, 1.15 * at)


def test_a_decode_step_computes_and_moves_what_the_model_s_own_figures_say():
    """Llama 3.1 8B in BF16 on one H100: 7.5 billion weights in the products of a token (8.03
    billion less the embedding table), each read once and 2 FLOP for each sequence; 131,072 bytes of
    KV cache a token (2 x 32 layers x 8 heads x 128 x 2 bytes), and 4 x 4096 x 32 FLOP for each
    token attended to."""
    asked = request(**OPEN)
    answer, figures = answered(asked)
    found, point = figures["roofline"], figures["roofline"]["points"][0]
    assert found["ridge_flop_per_byte"] == pytest.approx(989.4e12 / 3350e9, rel=1e-4)
    assert found["peak_tflops"] == 989.4
    weights, batch = 8.03e9 - 128256 * 4096, point["batch"]
    assert batch == answer["recommended"]["load"]["concurrency_per_replica"]
    context = 1000 + 250 / 2
    assert point["phase"] == "decode"
    assert point["bytes"] == pytest.approx(2 * weights + batch * context * 131072, rel=5e-3)
    flop = batch * (2 * weights + 4 * 4096 * 32 * context)
    assert point["flop"] == pytest.approx(flop, rel=5e-3)
    assert point["flop_per_byte"] == pytest.approx(point["flop"] / point["bytes"], rel=1e-4)


@pytest.mark.parametrize(
    "on",
    [{}, {"of": "qwen3-30b-a3b"}, {"limits": {"pipeline_parallel": (2,)}}],
    ids=["dense", "experts", "pipeline"],
)
def test_no_step_is_above_the_roof(on: dict[str, Any]):
    _, figures = answered(request(**on))
    found = figures["roofline"]
    for point in found["points"]:
        roof = min(found["peak_tflops"], point["flop_per_byte"] * found["bandwidth_gb_s"] / 1000)
        assert 0 < point["tflops"] < roof


def test_a_plan_that_cannot_be_made_any_more_as_it_was_is_refused():
    asked = request(**OPEN)
    answer, _ = answered(asked)
    answer["recommended"]["throughput"]["saturation_requests_per_s"] *= 1.1
    with pytest.raises(InvalidInput, match="changed since"):
        plan_figures(asked, answer)
