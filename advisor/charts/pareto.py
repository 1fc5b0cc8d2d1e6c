"""Latency against cost: every candidate, the front, and the one recommended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from advisor.charts.chart import Axis, Chart, Column, Line, Series, Table
from advisor.charts.words import figure, named

Candidate = Mapping[str, Any]
Point = tuple[float, float]


@dataclass(frozen=True)
class _Measure:
    """What an axis shows of a candidate."""

    name: str
    section: str
    path: tuple[str, ...]
    title: str
    unit: str | None

    def of(self, candidate: Candidate) -> float | None:
        found = candidate[self.section]
        for key in self.path:
            found = found[key]
        return None if found is None else float(found)


_E2E = _Measure("e2e_p95_ms", "latency", ("e2e_ms", "p95"), "p95 E2E latency", "ms")
_SERVED = _Measure(
    "output_tokens_per_s_per_accelerator", "throughput", ("output_tokens_per_s_per_accelerator",),
    "Output tokens/s per accelerator", "tokens/s",
)  # fmt: skip


def pareto(answer: Mapping[str, Any]) -> Chart | None:
    """The candidates of a plan by cost and p95 E2E latency; of a saturating load, which has no
    latency, by cost of a token and tokens served. None without a candidate that can be placed."""
    candidates: Sequence[Candidate] = answer["candidates"]
    y = _SERVED if answer["inputs"]["workload"]["saturate"] else _E2E
    x, notes = _across(candidates, y)
    placed = [
        (one, (across, up))
        for one in candidates
        if (across := x.of(one)) is not None and (up := y.of(one)) is not None
    ]
    if not placed:
        return None
    notes += _not_shown(answer, len(placed))
    recommended = answer["recommended"]
    ups = [point[1] for _, point in placed]
    wide = max(ups) > 20 * min(ups) > 0
    return Chart(
        name="pareto",
        title=f"Candidates: {_lower(y.title)} against {_lower(x.title)}",
        summary=_summary(recommended, len(placed), x, y),
        x=Axis(x.title, x.unit),
        y=Axis(y.title, y.unit, "log" if wide else "linear"),
        series=tuple(_series(answer, placed, x, y)),
        lines=_limits(answer, y),
        notes=tuple(notes),
        table=_table(answer, x, y),
    )


def _across(candidates: Sequence[Candidate], y: _Measure) -> tuple[_Measure, list[str]]:
    """What lies across: the cost, or the accelerators where there is no price."""
    currencies = {one["cost"]["currency"] for one in candidates} - {None}
    if not currencies:
        note = "Accelerators stand for the cost: the hardware has no price."
        return _Measure("accelerators_used", "accelerators", (), "Accelerators", None), [note]
    (currency,) = currencies
    if y is _SERVED:
        what = "Cost of a million output tokens"
        key = "per_million_output_tokens"
        return _Measure(f"cost_{key}", "cost", (key,), what, currency), []
    return _Measure("cost_per_hour", "cost", ("per_hour",), "Cost per hour", currency), []


def _not_shown(answer: Mapping[str, Any], placed: int) -> list[str]:
    given, total = len(answer["candidates"]), answer["candidates_total"]
    notes = []
    if given > placed:
        notes.append(
            f"{given - placed} of the {given} candidates have no place here: they do not carry the "
            "load, or have no price."
        )
    if total > given:
        notes.append(f"{total - given} more candidates are beyond max_candidates.")
    if answer["rejected"]:
        notes.append(f"{len(answer['rejected'])} layouts were rejected before.")
    return notes


def _series(
    answer: Mapping[str, Any], placed: Sequence[tuple[Candidate, Point]], x: _Measure, y: _Measure
) -> Iterable[Series]:
    if y is _E2E and x.section == "cost":
        front = [(x.of(one), y.of(one), named(one)) for one in answer["pareto"]]
        if len(front) > 1:
            across, up, words = zip(*front, strict=True)
            yield Series("front", "line", across, up, labels=words)
    for hardware in dict.fromkeys(one["hardware"] for one, _ in placed):
        of_it = [(one, point) for one, point in placed if one["hardware"] == hardware]
        across, up = zip(*(point for _, point in of_it), strict=True)
        yield Series(hardware, "points", across, up, labels=tuple(_why(o) for o, _ in of_it))
    best = answer["recommended"]
    if best is not None:
        yield Series(
            "recommended", "points", (x.of(best),), (y.of(best),), labels=(_why(best),),
            emphasis=True,
        )  # fmt: skip


def _why(candidate: Candidate) -> str:
    """A candidate in words, and whether it keeps the SLOs."""
    slo = candidate["slo"]
    if slo["binding"] is None:
        held = "no SLO asked for"
    elif slo["met"]:
        held = f"meets every SLO, nearest to missing {slo['binding']}"
    else:
        held = f"misses an SLO, worst {slo['binding']}"
    return f"{named(candidate)}: {candidate['load']['verdict'].replace('_', ' ')}, {held}"


def _limits(answer: Mapping[str, Any], y: _Measure) -> tuple[Line, ...]:
    limit = answer["inputs"]["slo"].get("e2e_p95_ms") if y is _E2E else None
    return () if limit is None else (Line("y", float(limit), f"SLO {figure(limit, 'ms')}"),)


def _summary(best: Candidate | None, placed: int, x: _Measure, y: _Measure) -> str:
    count = f"{placed} candidate{'s' if placed > 1 else ''}"
    if best is None:
        return f"Of {count} none is recommended."
    across = f"{figure(x.of(best))} {x.unit or 'accelerators'}"
    if x.section == "cost":
        across += " an hour" if y is _E2E else " a million output tokens"
    up = f"{_lower(y.title)} {figure(y.of(best))}" + (f" {y.unit}" if y is _E2E else "")
    return f"Of {count}, {named(best)} is recommended: {across}, {up}."


def _table(answer: Mapping[str, Any], x: _Measure, y: _Measure) -> Table:
    front = {_key(one) for one in answer["pareto"]}
    best = answer["recommended"] and _key(answer["recommended"])
    rows = []
    for one in answer["candidates"]:
        precision, key = one["precision"], _key(one)
        standing = "recommended" if key == best else "front" if key in front else None
        rows.append(
            (one["hardware"], one["replicas"], one["tensor_parallel"], one["pipeline_parallel"],
             one["expert_parallel"], one["accelerators"], precision["weights"],
             precision["kv_cache"], x.of(one), y.of(one), one["load"]["verdict"],
             "yes" if one["slo"]["met"] else "no", standing)
        )  # fmt: skip
    return Table(
        (
            Column("hardware", "Hardware"),
            Column("replicas", "Replicas"),
            Column("tensor_parallel", "TP"),
            Column("pipeline_parallel", "PP"),
            Column("expert_parallel", "EP"),
            Column("accelerators", "Accelerators"),
            Column("weights", "Weights"),
            Column("kv_cache", "KV cache"),
            Column(x.name, x.title, x.unit),
            Column(y.name, y.title, y.unit),
            Column("verdict", "Verdict"),
            Column("slo_met", "SLOs met"),
            Column("standing", "Standing"),
        ),
        tuple(rows),
    )


def _key(candidate: Candidate) -> str:
    return f"{named(candidate)}; {candidate['serving']['max_num_seqs']}"


def _lower(title: str) -> str:
    """A title within a sentence; abbreviations stay."""
    return title if title[1].isupper() or title[1].isdigit() else title[0].lower() + title[1:]
