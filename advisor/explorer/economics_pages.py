"""The pages of economics: when a model pays for its training, and whether to host it oneself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dash import html

from advisor.charts.catalogue import OF_ECONOMICS, charts
from advisor.charts.chart import Chart
from advisor.explorer import fields, parts
from advisor.explorer.pages import Page, Question, Services, Shown
from advisor.explorer.requests import curl
from advisor.schemas.economics.break_even import BreakEvenBody, SensitivityBody
from advisor.schemas.economics.serving import SelfHostBody
from advisor.schemas.faults import loaded
from advisor.schemas.plans import loaded_plan
from advisor.service.economics import break_even as service
from advisor.service.economics import self_host

Answer = Mapping[str, Any]


def ask_break_even(services: Services, question: Question) -> Shown:
    """Break-even over volume and time."""
    answer = _break_even(services, question)
    posted = _but_swing(question.body)
    requests = [("break-even", posted)]
    if "swing" in question.body:
        requests.append(("sensitivity", dict(question.body)))
    return Shown(
        _break_even_sentence(answer),
        [_break_even_figures(answer), _left_out(answer)],
        [_taken(services, question, requests)],
    )


def picture_break_even(services: Services, question: Question) -> list[Chart]:
    """Break-even over volume and time, and which input matters most."""
    found = charts(_break_even(services, question), OF_ECONOMICS)
    if "swing" not in question.document:
        return found
    body = loaded(SensitivityBody(), question.document)
    return found + charts(service.sensitivity(services.database, body), OF_ECONOMICS)


def _break_even(services: Services, question: Question) -> Answer:
    body = loaded(BreakEvenBody(), _but_swing(question.document))
    return service.break_even(services.database, body)


def _but_swing(body: Mapping[str, Any]) -> dict[str, Any]:
    """The break-even question of a sensitivity."""
    return {name: value for name, value in body.items() if name != "swing"}


def _break_even_sentence(answer: Answer) -> str:
    if answer["break_even_calls"] is None:
        return f"It does not pay: {answer['reason'] or answer['status'].replace('_', ' ')}"
    calls = f"It has paid for its training after {_count(answer['break_even_calls'])} calls"
    months = answer["months"]
    if months is None:
        return f"{calls}." if answer["status"] == "ok" else f"{calls}. {answer['reason']}"
    return f"{calls}, or {parts.said(months)} months."


def _break_even_figures(answer: Answer) -> html.Section:
    currency, condition = answer["currency"], answer["condition"]
    null = answer["null_reasons"]
    pairs = [
        ("Break-even", _count(answer["break_even_calls"]), "calls"),
        ("Months", parts.said(answer["months"]), null.get("months", "discounted")),
        ("Left of a call", parts.money(answer["contribution_per_call"], currency),
         "price less fees and serving"),
        ("Gross margin", parts.percent(answer["gross_margin"]), "of revenue"),
        ("NPV", parts.money(answer["npv"], currency) if answer["npv"] else "–",
         null.get("npv", "of the horizon, today")),
        ("Profit", parts.money(answer["profit"], currency) if answer["profit"] else "–",
         null.get("profit", "of the calls in all")),
        ("Price needed",
         parts.money(answer["price_needed"], currency) if answer["price_needed"] else "–",
         null.get("price_needed", "for the calls in all")),
    ]  # fmt: skip
    holds = {True: "holds", False: "does not hold", None: "is decided by volume and time"}
    said = [html.P([html.Code(condition["expression"]), f" {holds[condition['holds']]}."])]
    if answer["reason"]:
        said.append(html.P(answer["reason"]))
    return parts.panel(
        "Does it pay?", *said, parts.figures_list(pairs),
        *parts.messages("Warnings", answer["warnings"], kind="warnings"), kind="panel run",
    )  # fmt: skip


def ask_self_host(services: Services, question: Question) -> Shown:
    """The volumes at which an API or own replicas are cheaper."""
    answer = _self_host(services, question)
    return Shown(
        _self_host_sentence(answer),
        [_self_host_figures(answer), _left_out(answer)],
        [_taken(services, question, [("self-host-vs-api", dict(question.body))])],
    )


def picture_self_host(services: Services, question: Question) -> list[Chart]:
    """Both bills by volume."""
    return charts(_self_host(services, question), OF_ECONOMICS)


def _self_host(services: Services, question: Question) -> Answer:
    body = loaded(SelfHostBody(), question.document)
    return self_host.self_host_or_api(services.database, body, loaded_plan)


def _self_host_sentence(answer: Answer) -> str:
    always = answer["always_cheaper_from"]
    if always is None:
        return f"Self-hosting is not always cheaper at any volume. {answer['reason'] or ''}".strip()
    return f"Self-hosting is always cheaper from {_count(always)} requests a month."


def _self_host_figures(answer: Answer) -> html.Section:
    currency = answer["currency"]
    pairs = [
        ("API", parts.money(answer["api_cost_per_request"], currency), "per request"),
        ("Own replicas, all full", parts.money(answer["self_host_floor_per_request"], currency),
         "per request, at the least"),
        ("Always cheaper from", _count(answer["always_cheaper_from"]), "requests per month"),
        ("A replica serves", _count(answer["replica_capacity_requests_per_month"]),
         "requests per month"),
    ]  # fmt: skip
    rows = [
        (_span(each), {"api": "API", "self_host": "own replicas"}.get(each["winner"],
                                                                       each["winner"]),
         "–" if each["replicas"] is None else f"{each['replicas']}")
        for each in answer["intervals"]
    ]  # fmt: skip
    heads = [(title, title) for title in ("Requests per month", "Cheaper", "Replicas")]
    return parts.panel(
        "Who is cheaper?",
        *([html.P(answer["reason"])] if answer["reason"] else []),
        parts.figures_list(pairs),
        parts.table(f"{len(rows)} of {answer['intervals_total']} intervals", heads, rows),
        *parts.messages("Warnings", answer["warnings"], kind="warnings"),
        kind="panel run",
    )


def _span(interval: Answer) -> str:
    end = interval["to"]
    return f"{_count(interval['from'])} to {'any more' if end is None else _count(end)}"


def _left_out(answer: Answer) -> html.Section:
    return parts.panel(
        "What the sum rests on", *parts.messages("Assumptions", answer["assumptions"]),
        parts.folded(f"Left out ({len(answer['not_included'])})",
                     parts.bullets(answer["not_included"])),
    )  # fmt: skip


def _taken(
    services: Services, question: Question, requests: list[tuple[str, dict[str, Any]]]
) -> html.Section:
    first, *others = (
        (name, curl(f"{question.address}/v1/economics/{name}", body, with_key=services.needs_key))
        for name, body in requests
    )
    after = [parts.taken(text, ("copy", "Copy"), name=name) for name, text in others]
    return parts.copyable("As curl", first[1], name=first[0], after=after)


def _count(value: Any) -> str:
    """A number of calls; those above 2**53 are answered as text."""
    return "–" if value is None else f"{float(value):,.0f}"


BREAK_EVEN = Page(
    "break-even", "Break-even",
    "After how many calls, and when, has a model paid for its training? Which input matters most?",
    fields.BREAK_EVEN, ask_break_even, picture_break_even,
)  # fmt: skip
SELF_HOST = Page(
    "self-host", "Self-host or API",
    "Replicas come whole: at which volumes are they cheaper than an API, and at which not?",
    fields.SELF_HOST, ask_self_host, picture_self_host,
)  # fmt: skip
