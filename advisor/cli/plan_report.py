"""The answer of a plan, for people: a table of candidates, the reasons, what was refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import groupby
from typing import Any

from rich.console import Group, RenderableType

from advisor.cli.tables import Figures, Indented, heading

Answer = Mapping[str, Any]
Candidate = Mapping[str, Any]

MOST_ROWS = 10
"""Candidates shown unless more are asked for."""

ABSENT = "-"
"""A figure that is not defined under this load."""


def report(answer: Answer, most_rows: int) -> RenderableType:
    """Everything the answer says, at most `most_rows` candidates in full."""
    parts: list[RenderableType] = [*_summary(answer, most_rows)]
    parts += _verification(answer)
    parts += _comparison(answer["replicas_vs_tensor_parallel"])
    parts += _rejected(answer["rejected"])
    parts += _sentences("Warnings", [warning["detail"] for warning in answer["warnings"]])
    parts += _sentences("Assumptions", [each["detail"] for each in answer["assumptions"]])
    return Group(*parts)


def summary(answer: Answer, most_rows: int) -> RenderableType:
    """The question, `most_rows` candidates and the reasons."""
    return Group(*_summary(answer, most_rows))


def _summary(answer: Answer, most_rows: int) -> Iterator[RenderableType]:
    yield heading(_question(answer["inputs"], answer["trace"]))
    yield from _candidates(answer, most_rows)
    yield ""
    for line in answer["explanation"]:
        yield Indented(line)


def _question(inputs: Answer, trace: Answer | None) -> str:
    workload = inputs["workload"] | (trace or {})
    if trace:
        load = (
            f"a trace of {trace['requests']} requests in {trace['duration_s']:g} s, "
            f"{trace['request_rate_per_s']:g} requests/s (peak x {trace['peak_to_mean']:.2f}, "
            f"cv {trace['arrival_cv']:.2f})"
        )
    elif workload["saturate"]:
        load = "at saturation"
    elif workload["concurrency"] is not None:
        load = f"{workload['concurrency']} requests in flight"
        if workload["start"] == "burst":
            load = f"a burst of {workload['num_requests']} requests, {load}"
    else:
        load = f"{workload['request_rate_per_s']:g} requests/s"
    return (
        f"{inputs['model']} on {', '.join(inputs['hardware'])}: {load}, "
        f"{_lengths(workload)} tokens, "
        f"objective {inputs['objective']}"
    )


def _lengths(workload: Any) -> str:
    """Lengths of all requests, or of each class behind its share."""
    classes = workload.get("classes") or []
    total = sum(one["weight"] for one in classes)
    named = [f"{one['weight'] / total:.0%} {one['name']} with {_pair(one)}" for one in classes]
    return "; ".join(named) or _pair(workload)


def _pair(of: Any) -> str:
    return " and ".join(f"{_length(of[f'{way}_tokens'])} {way}" for way in ("input", "output"))


def _length(length: Any) -> str:
    if isinstance(length, Mapping) and "values" in length:
        return f"{min(length['values']):g} to {max(length['values']):g}"
    if isinstance(length, Mapping):
        return f"{length['mean']:g} (p95 {length['p95']:g})"
    return f"{length:g}"


def _candidates(answer: Answer, most_rows: int) -> Iterator[RenderableType]:
    rows, chosen = (
        list(answer["candidates"][:most_rows]),
        answer["recommended"] or answer["nearest"],
    )
    if chosen is None:
        return
    if chosen not in rows:
        rows = [chosen, *rows[: most_rows - 1]]
    currency = next((c["cost"]["currency"] for c in rows if c["cost"]["currency"]), "cost")
    marks = [_mark(answer, candidate) for candidate in rows]
    yield ""
    yield Figures(
        _headers(currency),
        [_row(candidate, mark, answer) for candidate, mark in zip(rows, marks, strict=True)],
        texts=3, strong=rows.index(chosen),
    )  # fmt: skip
    meanings = {"*": "recommended", "~": "nearest", "+": "on the Pareto front of latency and cost"}
    legend = [f"{mark} {meaning}" for mark, meaning in meanings.items() if mark in marks]
    total = answer["candidates_total"]
    yield Indented("; ".join([*legend, f"{len(rows)} of {total} candidates, best first"]))


def _mark(answer: Answer, candidate: Candidate) -> str:
    if candidate == answer["recommended"]:
        return "*"
    if candidate == answer["nearest"]:
        return "~"
    return "+" if candidate in answer["pareto"] else " "


def _headers(currency: str) -> list[str]:
    return [
        "  hardware", "  weights/KV", "replicas\nx split", "accel.",
        "TTFT\np95 ms", "TPOT\np95 ms", "E2E\np95 ms", "util.",
        "output\ntok/s", "SLO\nmet", f"{currency}\nper h", f"{currency} per\nM output",
    ]  # fmt: skip


def _row(candidate: Candidate, mark: str, answer: Answer) -> list[str]:
    latency, cost, precision = candidate["latency"], candidate["cost"], candidate["precision"]
    return [
        f"{mark} {candidate['hardware']}",
        f"  {precision['weights']}/{precision['kv_cache']}",
        _split(candidate),
        str(candidate["accelerators"]),
        *(_figure(latency[f"{metric}_ms"]["p95"]) for metric in ("ttft", "tpot", "e2e")),
        _share(candidate["load"]["utilization"]),
        _figure(candidate["throughput"]["output_tokens_per_s"]),
        _met(candidate) if answer["inputs"]["slo"] else ABSENT,
        _money(cost["per_hour"]),
        _money(cost["per_million_output_tokens"]),
    ]


def _split(plan: Mapping[str, Any]) -> str:
    """Replicas and the degrees within one; those of 1 left out, but for TP."""
    degrees = {
        "PP": plan["pipeline_parallel"], "EP": plan["expert_parallel"],
        "DP": plan["attention_data_parallel"], "DCP": plan["decode_context_parallel"],
    }  # fmt: skip
    others = "".join(f" {name}{degree}" for name, degree in degrees.items() if degree > 1)
    return f"{plan['replicas']} x TP{plan['tensor_parallel']}{others}"


def _met(candidate: Candidate) -> str:
    return "yes" if candidate["slo"]["met"] else "no"


def _figure(value: float | None) -> str:
    """A number with at least three significant digits."""
    if value is None:
        return ABSENT
    places = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{places}f}"


def _share(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.0%}"


def _money(amount: str | None) -> str:
    return ABSENT if amount is None else f"{Decimal(amount):,.2f}"


def _verification(answer: Answer) -> Iterator[RenderableType]:
    """What the simulations measured; in brackets the closed form over it."""
    subject = answer["recommended"] or answer["nearest"]
    shown = [subject, *answer["pareto"]] if subject else []
    rows = []
    for i, one in enumerate(shown):
        if one["verification"] and one not in shown[:i]:
            rows.append([f"  {one['hardware']}", _split(one), *_simulated(one["verification"])])
    if not rows:
        return
    yield ""
    yield heading("Simulated, and the closed form over it")
    headers = [
        "  hardware", "replicas\nx split", "requests", "TTFT\np95 ms", "TPOT\np95 ms",
        "E2E\np95 ms", "output\ntok/s", "SLO\nmet",
    ]  # fmt: skip
    yield Figures(headers, rows, texts=2)


def _simulated(found: Mapping[str, Any]) -> list[str]:
    if found["reason"]:
        return [ABSENT] * 6
    ratios = found["agreement"]
    pairs = [
        (found["latency"][f"{metric}_ms"]["p95"], ratios[metric]["p95"])
        for metric in ("ttft", "tpot", "e2e")
    ]
    pairs.append((found["throughput"]["output_tokens_per_s"], ratios["throughput"]))
    figures = [ABSENT if r is None else f"{_figure(v)} ({r:.2f})" for v, r in pairs]
    return [str(found["requests"]), *figures, "yes" if found["slo_met"] else "no"]


def _comparison(entries: Sequence[Mapping[str, Any]]) -> Iterator[RenderableType]:
    if len(entries) < 2:
        return
    spent = f"{entries[0]['accelerators']} x {entries[0]['hardware']}"
    yield ""
    yield heading(f"The same {spent} as replicas or as tensor parallelism")
    headers = [
        "  replicas\n  x split", "verdict", "TTFT\np95 ms", "TPOT\np95 ms", "E2E\np95 ms",
        "util.", "tok/s at\nsaturation",
    ]  # fmt: skip
    rows = [
        [
            f"  {_split(entry)}",
            entry["verdict"],
            *(_figure(entry[f"{metric}_p95_ms"]) for metric in ("ttft", "tpot", "e2e")),
            _share(entry["utilization"]),
            _figure(entry["saturation_output_tokens_per_s"]),
        ]
        for entry in entries
    ]
    yield Figures(headers, rows, texts=2)


def _rejected(rejected: Sequence[Mapping[str, Any]]) -> Iterator[RenderableType]:
    if not rejected:
        return
    yield ""
    yield heading("Rejected")

    def kind(one: Mapping[str, Any]) -> tuple[str, str]:
        return one["code"], one["hardware"]

    for (code, hardware), alike in groupby(sorted(rejected, key=kind), kind):
        first, *others = alike
        count = 1 + len(others)
        yield Indented(f"{code}, {hardware}: {count} layout{'s' if others else ''}")
        yield Indented(f"{_layout(first)}: {first['detail']}", 4)
        if first["remedy"]:
            yield Indented(f"Remedy: {first['remedy']}", 4)


def _layout(rejected: Mapping[str, Any]) -> str:
    precision = rejected["precision"]
    split = _split({"replicas": 1, **rejected}).removeprefix("1 x ")
    return f"{split}, {precision['weights']} weights, {precision['kv_cache']} KV cache"


def _sentences(title: str, sentences: Sequence[str]) -> Iterator[RenderableType]:
    if not sentences:
        return
    yield ""
    yield heading(title)
    for sentence in sentences:
        yield Indented(sentence)
