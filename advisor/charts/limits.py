"""What limits a plan: the memory of an accelerator, the time of its steps, its roofline."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any

from advisor.charts.chart import Axis, Chart, Column, Line, Series, Table
from advisor.charts.words import figure, subject, the_plan

_PARTS = {
    "weights_gib": "weights",
    "activation_gib": "activation peak",
    "reserve_gib": "reserve",
    "kv_cache_gib": "KV cache",
}
_CAUSES = {
    "compute": "compute",
    "memory_bandwidth": "memory bandwidth",
    "interconnect": "interconnect",
    "overhead": "overhead",
}
_PHASES = ("prefill", "decode")
_DECADE = sqrt(10)


def memory(answer: Mapping[str, Any]) -> Chart | None:
    """One accelerator of the plan: what its memory is for. None without a plan."""
    plan = subject(answer)
    if plan is None:
        return None
    found = plan["memory"]
    sizes = {name: float(found[name]) for name in _PARTS}
    total = sum(sizes.values())
    low, high = found["kv_cache_gib_range"]
    spread = {"kv_cache_gib": (low, high)}
    series = tuple(
        Series(
            words, "stack", (0,), (sizes[name],),
            low=(spread[name][0],) if name in spread else None,
            high=(spread[name][1],) if name in spread else None,
            labels=(f"{words}: {figure(sizes[name], 'GiB')}, {sizes[name] / total:.0%}",),
        )
        for name, words in _PARTS.items()
    )  # fmt: skip
    return Chart(
        name="memory",
        title=f"Memory of one {plan['hardware']}",
        summary=(
            f"{the_plan(answer)}: of {figure(total, 'GiB')} of an accelerator weights take "
            f"{figure(sizes['weights_gib'])}, activations {figure(sizes['activation_gib'])}, the "
            f"reserve {figure(sizes['reserve_gib'])}, and {figure(sizes['kv_cache_gib'])} "
            f"({figure(low)} to {figure(high)}) are left for the KV cache."
        ),
        x=Axis("", categories=(plan["hardware"],)),
        y=Axis("Memory", "GiB"),
        series=series,
        lines=(Line("y", total, f"all of it, {figure(total, 'GiB')}"),),
        notes=("The reserve is what the engine, its graphs and the driver keep.",),
        table=Table(
            (Column("part", "Part"), Column("gib", "Size", "GiB"),
             Column("low_gib", "Least", "GiB"), Column("high_gib", "Most", "GiB")),
            tuple((words, sizes[name], *spread.get(name, (None, None)))
                  for name, words in _PARTS.items()),
        ),
    )  # fmt: skip


def step_time(answer: Mapping[str, Any]) -> Chart | None:
    """What a step with prompts and a decode step spend their time on. None without a plan."""
    plan = subject(answer)
    if plan is None:
        return None
    steps = {phase: plan["bottleneck"][phase] for phase in _PHASES}
    percent = {
        cause: tuple(100 * step["shares"][cause] for step in steps.values()) for cause in _CAUSES
    }
    parts = [
        f"a {phase} step is limited by {_CAUSES[step['kind']]} "
        f"({100 * step['shares'][step['kind']]:.0f} % of its time)"
        for phase, step in steps.items()
    ]
    return Chart(
        name="step_time",
        title="What a step's time is spent on",
        summary=f"{the_plan(answer)}: {', '.join(parts)}.",
        x=Axis("Step", categories=_PHASES),
        y=Axis("Share of the step's time", "%"),
        series=tuple(
            Series(
                words, "stack", (0, 1), percent[cause],
                labels=tuple(f"{phase}, {words}: {share:.1f} %"
                             for phase, share in zip(_PHASES, percent[cause], strict=True)),
            )
            for cause, words in _CAUSES.items()
        ),
        notes=("At the mean batch. A prefill step carries decoding sequences too.",),
        table=Table(
            (Column("step", "Step"),
             *(Column(f"{cause}_percent", words, "%") for cause, words in _CAUSES.items())),
            tuple((phase, *(percent[cause][i] for cause in _CAUSES))
                  for i, phase in enumerate(_PHASES)),
        ),
    )  # fmt: skip


def roofline(answer: Mapping[str, Any]) -> Chart | None:
    """The accelerator's roofline with the plan's prefill and decode steps under it. None without
    the `figures` of it."""
    found, plan = answer.get("figures", {}).get("roofline"), subject(answer)
    if found is None or plan is None:
        return None
    peak, bandwidth, ridge = (
        found[name] for name in ("peak_tflops", "bandwidth_gb_s", "ridge_flop_per_byte")
    )
    points = found["points"]
    inside = [ridge, *(point["flop_per_byte"] for point in points)]
    ends = min(inside) / _DECADE, max(inside) * _DECADE
    roof = tuple(min(x * bandwidth / 1000, peak) for x in (ends[0], ridge, ends[1]))
    words = {
        point["phase"]: f"{figure(point['tflops'])} TFLOPS at {figure(point['flop_per_byte'])} "
        f"FLOP/byte, {_side(point['flop_per_byte'], ridge)}"
        for point in points
    }
    return Chart(
        name="roofline",
        title=f"Roofline of one {plan['hardware']}, {found['arithmetic']}",
        summary=(
            f"{the_plan(answer)}, of a ridge at {figure(ridge)} FLOP/byte: "
            f"decode steps reach {words['decode']}; prefill steps reach "
            f"{words['prefill']}."
        ),
        x=Axis("FLOP for a byte moved", "FLOP/byte", "log"),
        y=Axis("Computed", "TFLOPS", "log"),
        series=(
            Series("roof", "line", (ends[0], ridge, ends[1]), roof,
                   labels=(f"{figure(bandwidth)} GB/s", "ridge", f"{figure(peak)} TFLOPS")),
            *(Series(point["phase"], "points", (point["flop_per_byte"],), (point["tflops"],),
                     labels=(f"{point['phase']}: {words[point['phase']]}",))
              for point in points),
        ),
        lines=(Line("x", ridge, f"ridge {figure(ridge)}"),),
        notes=(
            f"The roof is the data sheet's: {figure(peak)} TFLOPS in {found['arithmetic']}, dense, "
            f"and {figure(bandwidth)} GB/s. Steps stay below it by efficiency, collectives and "
            "overhead; attention computes in 16 bits.",
        ),
        table=Table(
            (Column("what", "What"), Column("flop_per_byte", "FLOP for a byte", "FLOP/byte"),
             Column("tflops", "Computed", "TFLOPS"), Column("batch", "Batch", "sequences"),
             Column("flop", "FLOP of a step"), Column("bytes", "Moved in a step", "bytes"),
             Column("seconds", "Step", "s")),
            (
                ("ridge", ridge, peak, None, None, None, None),
                *((p["phase"], p["flop_per_byte"], p["tflops"], p["batch"], p["flop"], p["bytes"],
                   p["seconds"]) for p in points),
            ),
        ),
    )  # fmt: skip


def _side(intensity: float, ridge: float) -> str:
    return "where bandwidth is the roof" if intensity < ridge else "where arithmetic is the roof"
