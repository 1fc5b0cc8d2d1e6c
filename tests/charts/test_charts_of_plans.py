"""Charts of plans, against the answers they show."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from advisor.charts.catalogue import NEEDS_FIGURES, OF_A_PLAN, charts, why_not
from advisor.charts.chart import Chart, Series
from advisor.core.figures import plan_figures
from advisor.core.plans import plan
from tests.core.profiles import device, request, unpriced, workload

CASES: dict[str, dict[str, Any]] = {
    "two devices": {
        "on": (device("h100"), device("l40s")),
        "load": workload(1000, 250, request_rate_per_s=20.0),
        "slo": {"ttft_p95_ms": 1000, "e2e_p95_ms": 9000},
    },
    "single": {"limits": {"tensor_parallel": (1,), "replicas": (1,)}},
    "unstable": {
        "load": workload(1000, 250, request_rate_per_s=400.0),
        "limits": {"tensor_parallel": (1,), "replicas": (1,)},
    },
    "no price": {"on": (unpriced("h100"),), "objective": "latency"},
    "saturate": {"load": workload(1000, 250, saturate=True)},
    "closed": {"load": workload(1000, 250, concurrency=64)},
    "burst": {"load": workload(500, 50, concurrency=8, start="burst", num_requests=16)},
    "nothing fits": {"of": "llama-3.1-70b", "limits": {"max_accelerators": 1}},
}
each_case = pytest.mark.parametrize("case", CASES)


@cache
def answer(case: str) -> dict[str, Any]:
    """The answer as it travels, with its figures."""
    asked = request(**CASES[case])
    answered: dict[str, Any] = json.loads(json.dumps(plan(asked).as_dict(), allow_nan=False))
    return answered | {"figures": plan_figures(asked, answered)}


def chart(case: str, name: str) -> Chart:
    found = OF_A_PLAN[name](answer(case))
    assert found is not None
    return found


def column(of: Chart, name: str) -> list[Any]:
    place = [each.name for each in of.table.columns].index(name)
    return [row[place] for row in of.table.rows]


def series(of: Chart, name: str) -> Series:
    (found,) = [each for each in of.series if each.name == name]
    return found


@each_case
def test_every_chart_is_whole_or_there_is_a_reason_why_not(case: str):
    for name, make in OF_A_PLAN.items():
        made = make(answer(case))
        if made is None:
            assert why_not(name, answer(case)).endswith(".")
            continue
        assert made.name == name
        assert made.summary.endswith(".")
        assert json.loads(json.dumps(made.as_dict(), allow_nan=False))["title"] == made.title
        for row in made.table.rows:
            assert len(row) == len(made.table.columns)
        drawn = [v for one in made.series for v in one.y if v is not None]
        assert drawn
        if made.y.scale == "log":
            assert min(drawn) > 0


def test_without_the_figures_the_charts_that_need_them_are_none():
    bare = {k: v for k, v in answer("two devices").items() if k != "figures"}
    made = {one.name for one in charts(bare, OF_A_PLAN)}
    assert made == OF_A_PLAN.keys() - set(NEEDS_FIGURES)


def test_where_nothing_fits_there_is_no_chart():
    assert charts(answer("nothing fits"), OF_A_PLAN) == []


def test_pareto_shows_every_candidate_once_and_the_front_by_rising_cost():
    asked, made = answer("two devices"), chart("two devices", "pareto")
    placed = sorted(
        (float(one["cost"]["per_hour"]), one["latency"]["e2e_ms"]["p95"], one["hardware"])
        for one in asked["candidates"]
    )
    points = [
        (x, y, one.name)
        for one in made.series
        if one.name in ("h100", "l40s") or one.name in {c["hardware"] for c in asked["candidates"]}
        for x, y in zip(one.x, one.y, strict=True)
    ]
    assert sorted(points) == placed
    costs = column(made, "cost_per_hour")
    assert list(zip(costs, column(made, "e2e_p95_ms"), column(made, "hardware"), strict=True)) == [
        (float(c["cost"]["per_hour"]), c["latency"]["e2e_ms"]["p95"], c["hardware"])
        for c in asked["candidates"]
    ]
    front = series(made, "front")
    assert list(front.x) == sorted(v for v in front.x if v is not None)
    assert list(front.y) == sorted((v for v in front.y if v is not None), reverse=True)
    assert column(made, "standing").count("recommended") == 1
    best = series(made, "recommended")
    assert best.emphasis
    assert best.x == (float(asked["recommended"]["cost"]["per_hour"]),)
    assert [line.value for line in made.lines] == [9000]
    words = dict(zip(front.x, front.labels, strict=True))
    assert "replica" in words[front.x[0]]


def test_pareto_without_a_price_is_over_accelerators_and_says_so():
    made = chart("no price", "pareto")
    assert made.x.title == "Accelerators"
    assert column(made, "accelerators") == column(made, "accelerators_used")
    assert any("no price" in note for note in made.notes)


def test_pareto_of_a_saturating_load_is_of_tokens_served_and_their_cost():
    made = chart("saturate", "pareto")
    shown = column(made, "output_tokens_per_s_per_accelerator")
    assert shown == [
        each["throughput"]["output_tokens_per_s_per_accelerator"]
        for each in answer("saturate")["candidates"]
    ]
    assert made.x.unit == "USD"


def test_pareto_of_an_overload_is_none():
    assert OF_A_PLAN["pareto"](answer("unstable")) is None


def test_the_load_curve_shows_its_figures_the_load_asked_for_and_saturation():
    made, figures = chart("two devices", "load_curve"), answer("two devices")["figures"]
    points = figures["load_curve"]["points"]
    p95 = series(made, "TTFT p95")
    assert p95.y == tuple(point["ttft_ms"]["p95"] for point in points)
    assert p95.low is not None
    assert all(low < y for low, y in zip(p95.low, p95.y, strict=True))  # type: ignore[operator]
    assert column(made, "itl_p99_ms") == [point["itl_ms"]["p99"] for point in points]
    lines = {(line.axis, line.value) for line in made.lines}
    assert lines == {("x", 20.0), ("x", figures["load_curve"]["saturation"]), ("y", 1000.0)}


def test_the_curve_of_a_closed_loop_is_over_clients():
    made = chart("closed", "load_curve")
    assert made.x.title == "Requests in flight"
    assert [line.value for line in made.lines] == [64.0]


def test_a_load_far_beyond_saturation_is_said_and_does_not_stretch_the_picture():
    made = chart("unstable", "load_curve")
    end = answer("unstable")["figures"]["load_curve"]["saturation"]
    assert [line.value for line in made.lines] == [end]
    assert any("400 requests/s" in note for note in made.notes)


def test_the_ways_are_those_of_the_answer_and_the_recommended_one_stands_out():
    made, asked = chart("two devices", "replicas_vs_tensor_parallel"), answer("two devices")
    assert len(made.series) == len(asked["replicas_vs_tensor_parallel"]) > 1
    (chosen,) = [one for one in made.series if one.emphasis]
    best = asked["recommended"]
    assert chosen.name.startswith(f"{best['replicas']} replica")
    assert f"TP{best['tensor_parallel']} " in chosen.name
    known = [one for one in asked["figures"]["crossing_loads"] if one["reason"] is None]
    crossings = {one["request_rate_per_s"]: one["better_above"] is None for one in known}
    drawn = {
        line.value: line.label.startswith("none meets the SLOs above")
        for line in made.lines
        if line.axis == "x" and not line.label.startswith("this load")
    }
    assert drawn == crossings
    assert set(drawn.values()) == {False, True}


@pytest.mark.parametrize("case", [name for name in CASES if name != "nothing fits"])
def test_the_parts_of_memory_add_up_to_that_of_the_device(case: str):
    made = chart(case, "memory")
    hardware = (answer(case)["recommended"] or answer(case)["nearest"])["hardware"]
    total = {device(n).name: device(n).memory_gib for n in ("h100", "l40s")}[hardware]
    assert sum(column(made, "gib")) == pytest.approx(total, rel=1e-4)
    assert [line.value for line in made.lines] == [pytest.approx(total, rel=1e-4)]


@pytest.mark.parametrize("case", ["two devices", "closed", "saturate", "unstable"])
def test_the_shares_of_each_step_add_up_to_all_of_it(case: str):
    made = chart(case, "step_time")
    for row in made.table.rows:
        assert sum(float(cell) for cell in row[1:] if cell is not None) == pytest.approx(100)
    plan_shown = answer(case)["recommended"] or answer(case)["nearest"]
    shares = plan_shown["bottleneck"]["decode"]["shares"]
    for cause, share in shares.items():
        assert column(made, f"{cause}_percent")[1] == pytest.approx(100 * share)


def test_the_roof_bends_at_peak_over_bandwidth():
    made = chart("single", "roofline")
    roof = series(made, "roof")
    assert roof.x[1] == pytest.approx(989.4e12 / 3350e9, rel=1e-4)
    assert roof.y[1] == pytest.approx(989.4, rel=1e-4)
    assert roof.y[2] == pytest.approx(989.4)
    assert [line.value for line in made.lines] == [roof.x[1]]
    names = [one.name for one in made.series]
    assert names == ["roof", "decode", "prefill"]
    for one in made.series[1:]:
        assert roof.x[0] < one.x[0] < roof.x[2]  # type: ignore[operator]
