"""Latency as the load grows: of the plan, and of every way to spend its accelerators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from advisor.charts.chart import Axis, Chart, Column, Line, Series, Table
from advisor.charts.words import PERCENTILES, figure, subject, the_plan
from advisor.core.comparison import in_short

_LOADS = {
    "request_rate_per_s": (Axis("Request rate", "requests/s"), "requests/s"),
    "concurrency": (Axis("Requests in flight", None, "log"), "in flight"),
}
_BEYOND = 1.3
"""A load up to so many times the last one of the curves is shown."""
_METRICS = {"ttft_ms": "TTFT", "itl_ms": "ITL"}
_OTHER_LOADS = (
    ("saturate", "The plan is made for a saturating load; here it has an open one."),
    ("trace", "Of the trace the steady load that is like it: this many requests at random times."),
)  # fmt: skip


def load_curve(answer: Mapping[str, Any]) -> Chart | None:
    """TTFT and ITL of the plan by its load, up to saturation. None without the `figures` of it."""
    curve = answer.get("figures", {}).get("load_curve")
    plan = subject(answer)
    if curve is None or plan is None:
        return None
    axis, _ = _LOADS[curve["load"]]
    points = curve["points"]
    return Chart(
        name="load_curve",
        title="Latency by load",
        summary=_summary(answer, curve),
        x=axis,
        y=Axis("Latency", "ms", "log"),
        series=tuple(_latencies(points)),
        lines=(*_loads(answer, curve), *_slos(answer)),
        notes=(*_notes(answer, [curve]), "The bands about p95 held for four of five measurements."),
        table=_table(points, _METRICS, axis),
    )


def replicas_vs_tensor_parallel(answer: Mapping[str, Any]) -> Chart | None:
    """p95 E2E of each way to spend the plan's accelerators by the load, and where the best way
    changes. None without the `figures` of it, and where there is one way only."""
    figures = answer.get("figures", {})
    ways, plan = figures.get("ways", ()), subject(answer)
    if plan is None or len(ways) < 2:
        return None
    axis, _ = _LOADS[ways[0]["load"]]
    limit = answer["inputs"]["slo"].get("e2e_p95_ms")
    return Chart(
        name="replicas_vs_tensor_parallel",
        title=f"{plan['accelerators']} accelerators as replicas or tensor parallelism",
        summary=_best_ways(figures["crossing_loads"], len(ways), plan["accelerators"]),
        x=axis,
        y=Axis("p95 E2E latency", "ms", "log"),
        series=tuple(_way(way, plan) for way in ways),
        lines=(
            *_crossings(figures["crossing_loads"]),
            *_asked(answer, ways),
            *([] if limit is None else [Line("y", float(limit), f"SLO {limit:g} ms")]),
        ),
        notes=(*_notes(answer, ways), f"All in {_formats(plan)}."),
        table=_ways_table(ways, axis),
    )


def _latencies(points: Sequence[Mapping[str, Any]]) -> Iterable[Series]:
    loads = tuple(point["load"] for point in points)
    for metric, name in _METRICS.items():
        for statistic in PERCENTILES:
            interval = statistic == "p95"
            low, high = zip(*(point[metric]["p95_range"] for point in points), strict=True)
            yield Series(
                f"{name} {statistic}", "line", loads,
                tuple(point[metric][statistic] for point in points),
                low=low if interval else None, high=high if interval else None,
            )  # fmt: skip


def _loads(answer: Mapping[str, Any], curve: Mapping[str, Any]) -> Iterable[Line]:
    yield from _asked(answer, [curve])
    if curve["saturation"] is not None:
        end = curve["saturation"]
        yield Line("x", end, f"saturation {figure(end)}")


def _load(answer: Mapping[str, Any], load: str) -> float | None:
    """The load that the plan is made for, if it is of this kind."""
    workload, trace = answer["inputs"]["workload"], answer["trace"]
    asked = trace[load] if trace else workload[load]
    return None if asked is None else float(asked)


def _asked(answer: Mapping[str, Any], curves: Sequence[Mapping[str, Any]]) -> Iterable[Line]:
    """That load, where it lies within the picture."""
    asked = _load(answer, curves[0]["load"])
    if asked is not None and asked <= _last(curves):
        yield Line("x", asked, f"this load {figure(asked)}")


def _last(curves: Sequence[Mapping[str, Any]]) -> float:
    """The largest load that is shown."""
    ends = (curve["saturation"] or curve["points"][-1]["load"] for curve in curves)
    return float(_BEYOND * max(ends))


def _slos(answer: Mapping[str, Any]) -> Iterable[Line]:
    for key, limit in answer["inputs"]["slo"].items():
        metric, statistic, _ = key.split("_")
        if metric in ("ttft", "itl", "tpot"):
            yield Line("y", float(limit), f"SLO {metric.upper()} {statistic}: {limit:g} ms")


def _notes(
    answer: Mapping[str, Any], curves: Sequence[Mapping[str, Any]]
) -> tuple[str, ...]:  # fmt: skip
    workload = answer["inputs"]["workload"]
    notes = [note for key, note in _OTHER_LOADS if workload[key]]
    if workload["start"] == "burst":
        notes.append("Of a closed loop in its steady state, not of the burst.")
    asked = _load(answer, curves[0]["load"])
    if asked is not None and asked > _last(curves):
        _, unit = _LOADS[curves[0]["load"]]
        notes.append(f"This load, {figure(asked, unit)}, lies far beyond.")
    return tuple(notes)


def _summary(answer: Mapping[str, Any], curve: Mapping[str, Any]) -> str:
    first, last, end = curve["points"][0], curve["points"][-1], curve["saturation"]
    _, unit = _LOADS[curve["load"]]
    until = f"saturates at {figure(end, unit)}; " if end is not None else ""
    rises = (
        f"p95 TTFT rises from {figure(first['ttft_ms']['p95'], 'ms')} at "
        f"{figure(first['load'], unit)} to {figure(last['ttft_ms']['p95'], 'ms')} at "
        f"{figure(last['load'], unit)}"
    )
    return f"{the_plan(answer)}: {until}{rises}."


def _best_ways(crossings: Sequence[Mapping[str, Any]], ways: int, accelerators: int) -> str:
    found = [one for one in crossings if one["reason"] is None and one["metric"] == "e2e_p95_ms"]
    of = f"Of {ways} ways to spend {accelerators} accelerators"
    if not found:
        reasons = [one["reason"] for one in crossings if one["metric"] == "e2e_p95_ms"]
        best = next((one["better_below"] for one in crossings), None)
        if best is None:
            return (
                f"p95 E2E latency of {ways} ways to spend {accelerators} accelerators, by the load."
            )
        return f"{of} {in_short(best)} is the fastest. {' '.join(reasons)}"
    parts = [f"{in_short(one['better_below'])} up to {_at(one)}" for one in found]
    return (
        f"{of} the fastest is {', then '.join(parts)}, then {in_short(found[-1]['better_above'])}."
    )


def _at(one: Mapping[str, Any]) -> str:
    if one["request_rate_per_s"] is None:
        return f"{one['concurrency']} requests in flight"
    return figure(one["request_rate_per_s"], "requests/s")


def _crossings(crossings: Sequence[Mapping[str, Any]]) -> Iterable[Line]:
    for one in crossings:
        load = one["request_rate_per_s"] or one["concurrency"]
        if one["reason"] is None and load is not None:
            yield Line("x", float(load), f"{_crossing(one)} {figure(load)}")


def _crossing(one: Mapping[str, Any]) -> str:
    if one["metric"] == "e2e_p95_ms":
        return "crossing"
    if one["better_above"] is None:
        return "none meets the SLOs above"
    return (
        "none meets the SLOs below" if one["better_below"] is None else "crossing within the SLOs"
    )


def _way(way: Mapping[str, Any], plan: Mapping[str, Any]) -> Series:
    degrees = ("replicas", "tensor_parallel", "pipeline_parallel", "expert_parallel",
               "attention_data_parallel", "decode_context_parallel")  # fmt: skip
    points = way["points"]
    low, high = zip(*(point["e2e_ms"]["p95_range"] for point in points), strict=True)
    return Series(
        in_short(way), "line", tuple(point["load"] for point in points),
        tuple(point["e2e_ms"]["p95"] for point in points),
        low=low, high=high, emphasis=all(way[name] == plan[name] for name in degrees),
    )  # fmt: skip


def _formats(plan: Mapping[str, Any]) -> str:
    return f"{plan['precision']['weights']} weights and {plan['precision']['kv_cache']} KV cache"


def _table(points: Sequence[Mapping[str, Any]], metrics: Mapping[str, str], axis: Axis) -> Table:
    columns = [Column("load", axis.title, axis.unit)]
    for metric, name in metrics.items():
        stem = metric.removesuffix("_ms")
        columns += [Column(f"{stem}_{s}_ms", f"{name} {s}", "ms") for s in PERCENTILES]
        columns += [Column(f"{stem}_p95_{e}_ms", f"{name} p95, {e}", "ms") for e in ("low", "high")]
    rows = [
        (point["load"],
         *(value for metric in metrics
           for value in (*(point[metric][s] for s in PERCENTILES), *point[metric]["p95_range"])))
        for point in points
    ]  # fmt: skip
    return Table(tuple(columns), tuple(rows))


def _ways_table(ways: Sequence[Mapping[str, Any]], axis: Axis) -> Table:
    columns = (
        Column("way", "Way"),
        Column("load", axis.title, axis.unit),
        Column("e2e_p95_ms", "E2E p95", "ms"),
        Column("e2e_p95_low_ms", "E2E p95, low", "ms"),
        Column("e2e_p95_high_ms", "E2E p95, high", "ms"),
    )
    rows = [
        (in_short(way), point["load"], point["e2e_ms"]["p95"], *point["e2e_ms"]["p95_range"])
        for way in ways
        for point in way["points"]
    ]
    return Table(columns, tuple(rows))
