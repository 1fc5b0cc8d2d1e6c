"""The page of a plan: what to run, why, and what the alternatives cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dash import html

from advisor.charts.chart import Chart
from advisor.core.comparison import in_short
from advisor.explorer import fields, parts
from advisor.explorer.attributes import attributes
from advisor.explorer.pages import Page, Question, Services, Shown
from advisor.explorer.requests import curl, text_of
from advisor.schemas.plans import loaded_plan
from advisor.service import charts, plans

Candidate = Mapping[str, Any]
MOST_ALTERNATIVES = 8
_NEXT = {
    "data_economics": "/explorer/self-host?input_per_mtok=0.9&output_per_mtok=0.9&currency=USD",
    "data_terminology": "/explorer/terminology?text=Decode+is+memory-bound.",
}
"""Where a plan that was kept can be taken."""
_HEADS = ("Plan", "Cost per hour", "Against the first", "TTFT p95 [ms]", "TPOT p95 [ms]",
          "E2E p95 [ms]", "Utilization", "Meets the bounds")  # fmt: skip


def ask(services: Services, question: Question) -> Shown:
    """The plan, shown."""
    _, answer = plans.evaluate(services.database, loaded_plan(question.document))
    best = answer["recommended"]
    shown = [
        _verdict(answer) if best is None else _recommended(best),
        _why(answer),
        _alternatives(answer),
    ]
    return Shown(_sentence(answer), shown, [_taken(services, question)])


def picture(services: Services, question: Question) -> list[Chart]:
    """The charts of the plan."""
    return charts.of_question(services.database, loaded_plan(question.document))


def _sentence(answer: Mapping[str, Any]) -> str:
    best = answer["recommended"]
    if best is None:
        return f"Nothing can be recommended. {answer['reason']}"
    cost = best["cost"]
    return f"Run {in_short(best)}: {parts.money(cost['per_hour'], cost['currency'])} an hour."


def _recommended(best: Candidate) -> html.Section:
    cost, sure = best["cost"], best["confidence"]
    currency = cost["currency"]
    precision = best["precision"]
    pairs = [
        ("Cost", parts.money(cost["per_hour"], currency), "per hour"),
        ("Output tokens", parts.money(cost["per_million_output_tokens"], currency),
         "per million"),
        ("TTFT p95", _ms(best["latency"]["ttft_ms"]["p95"]), _mean_within(sure["ttft_ms"])),
        ("TPOT p95", _ms(best["latency"]["tpot_ms"]["p95"]), _mean_within(sure["tpot_ms"])),
        ("E2E p95", _ms(best["latency"]["e2e_ms"]["p95"]), "whole answer"),
        ("Busy", parts.percent(best["load"]["utilization"]), "of saturation"),
        ("Meets the bounds", parts.percent(best["slo"]["met_probability"]), "probability"),
    ]  # fmt: skip
    return parts.panel(
        "Run this",
        html.P(
            [html.Strong(in_short(best)), html.Br(),
             f"{best['accelerators']} accelerators, {precision['weights']} weights, "
             f"{precision['kv_cache']} KV cache, {best['serving']['engine']} "
             f"{best['serving']['engine_version'] or ''}"],
            className="verdict",
        ),
        parts.figures_list(pairs),
        kind="panel run",
    )  # fmt: skip


def _verdict(answer: Mapping[str, Any]) -> html.Section:
    nearest = answer["nearest"]
    said = [html.P(answer["reason"])]
    if nearest is not None:
        missed = ", ".join(each["limit"] for each in answer["missed_limits"])
        said.append(html.P(f"Nearest: {in_short(nearest)}." + (f" It misses {missed}."
                                                               if missed else "")))  # fmt: skip
    return parts.panel("Nothing can be recommended", *said, kind="panel run")


def _why(answer: Mapping[str, Any]) -> html.Section:
    return parts.panel(
        "Why",
        parts.bullets(answer["explanation"]),
        *parts.messages("Warnings", answer["warnings"], kind="warnings"),
        *parts.messages("Assumptions", answer["assumptions"]),
    )


def _alternatives(answer: Mapping[str, Any]) -> html.Section:
    found = answer["candidates"][:MOST_ALTERNATIVES]
    best = answer["recommended"]
    rows = [_row(each, found[0]) for each in found]
    refused = answer["rejected"]
    shown: list[Any] = []
    if rows:
        caption = f"{len(rows)} of {answer['candidates_total']} candidates, best first"
        shown.append(parts.table(caption, _columns(*_HEADS), rows, emphasis=0 if best else None))
    if refused:
        heads = _columns("Accelerator", "Split", "Reason", "What would help")
        reasons = [
            (r["hardware"], f"TP{r['tensor_parallel']}", r["detail"], r["remedy"] or "–")
            for r in refused
        ]
        caption = "What cannot serve this, and why"
        shown.append(parts.folded(f"Refused ({len(refused)})",
                                  parts.table(caption, heads, reasons)))  # fmt: skip
    return parts.panel("Alternatives", *shown)


def _columns(*titles: str) -> list[tuple[str, str]]:
    return [(title, title) for title in titles]


def _row(each: Candidate, first: Candidate) -> tuple[Any, ...]:
    cost, latency, load = each["cost"], each["latency"], each["load"]
    return (
        f"{in_short(each)}, {each['precision']['weights']}",
        parts.money(cost["per_hour"], cost["currency"]),
        _difference(cost["per_hour"], first["cost"]["per_hour"]),
        parts.said(latency["ttft_ms"]["p95"]),
        parts.said(latency["tpot_ms"]["p95"]),
        parts.said(latency["e2e_ms"]["p95"]),
        parts.percent(load["utilization"]),
        parts.said(each["slo"]["met"]),
    )


def _taken(services: Services, question: Question) -> html.Section:
    """The same request as a shell command, and a button that posts it."""
    command = curl(f"{question.address}/v1/plans", question.body, with_key=services.needs_key)
    keep = html.Div(
        [
            html.Button("Keep this plan", type="button", className="keep",
                        **attributes(data_body=text_of(question.body), **_NEXT)),
            html.Span(" Posts the request below, and gives the plan an id.", className="hint"),
            html.P(id="kept", role="status"),
        ],
        className="keeping",
    )  # fmt: skip
    return parts.copyable("As curl", command, name="plan_request", before=[keep])


def _ms(value: float | None) -> str:
    return "none" if value is None else f"{parts.said(value)} ms"


def _mean_within(interval: list[float] | None) -> str:
    if not interval:
        return ""
    low, high = interval
    return f"mean within {parts.said(low)} to {parts.said(high)} ms"


def _difference(amount: str | None, first: str | None) -> str:
    if amount is None or first is None:
        return "–"
    change = float(amount) - float(first)
    return "same" if not change else f"{change:+,.2f}"


PAGE = Page(
    "", "Plan",
    "Name a model, accelerators, a load and latency bounds: what to run, why, and what else it "
    "could be.",
    fields.PLAN, ask, picture,
)  # fmt: skip
