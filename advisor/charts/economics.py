"""When a model pays for its training, by calls and by months, and which input matters most."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from advisor.charts.chart import Axis, Chart, Column, Line, Series, Table
from advisor.charts.words import figure, scaled, spoken
from advisor.core.economics.break_even_inputs import BreakEvenInputs
from advisor.core.economics.cash_flow import LONGEST_HORIZON_MONTHS, CashFlow
from advisor.core.economics.demand import calls_sold

_POINTS = 48
_MONTHS = 24
"""Shown where no payback says how many."""
_MONEY = (
    "training_cost", "one_off_cost", "price_per_call", "serving_cost_per_call",
    "fixed_cost_per_month",
)  # fmt: skip
_EXACT = (
    "calls_per_month", "free_share", "fee_share", "monthly_growth", "price_decline_per_month",
    "cost_decline_per_month", "annual_discount_rate",
)  # fmt: skip


def break_even(answer: Mapping[str, Any]) -> Chart | None:
    """What is recovered, less what was spent, by the calls sold; money of any month counts alike.
    None of another answer than a break-even."""
    if "break_even_calls" not in answer:
        return None
    asked = _inputs(answer)
    needed = answer["break_even_calls"]
    calls, recovered = _by_calls(asked, answer)
    spent = float(asked.to_recover)
    summary = (
        f"{spoken(spent)} {answer['currency']} are recovered after {spoken(float(needed))} calls."
        if needed is not None
        else f"{spoken(spent)} {answer['currency']} are not recovered. {answer['reason'] or ''}"
    )
    notes = ("Money counts alike whenever it comes.",) if asked.annual_discount_rate else ()
    return _net_chart(
        answer, "break_even", "Break-even by calls sold", summary,
        ("calls", "Calls sold", "calls"), calls, {"net": [each - spent for each in recovered]},
        None if needed is None else float(needed), notes,
    )  # fmt: skip


def break_even_over_time(answer: Mapping[str, Any]) -> Chart | None:
    """The same by months, discounted where the question is. None without a rate of calls."""
    if "break_even_calls" not in answer:
        return None
    asked = _inputs(answer)
    flow = asked.cash_flow()
    if flow is None:
        return None
    found = answer["months"]
    months = _spread(_last_month(asked, answer))
    streams = {"net": flow}
    if asked.annual_discount_rate:
        streams = {"present value": flow, "not discounted": _undiscounted(flow)}
    spent = float(asked.to_recover)
    lines = {
        name: [float(stream.recovered(Decimal(repr(m)))) - spent for m in months]
        for name, stream in streams.items()
    }
    summary = (
        f"{spoken(spent)} {answer['currency']} are recovered after {figure(found)} months."
        if found is not None
        else f"{spoken(spent)} {answer['currency']} are not recovered. {answer['reason'] or ''}"
    )
    return _net_chart(
        answer, "break_even_over_time", "Break-even by months", summary,
        ("months", "Months", None), months, lines, found, (),
    )  # fmt: skip


def tornado(answer: Mapping[str, Any]) -> Chart | None:
    """Break-even with each input lowered and raised, the one that matters most on top. None of
    another answer than a sensitivity, and where no swing gives a break-even."""
    bars = answer.get("tornado")
    if not bars or not any(bar[end]["at"] is not None for bar in bars for end in ("low", "high")):
        return None
    ordered = list(reversed(bars))
    values = [float(b[e]["at"]) for b in bars for e in ("low", "high") if b[e]["at"] is not None]
    what = "Months to break-even" if answer["measure"] == "months" else "Calls to break-even"
    factor, unit = scaled(max(values), None if answer["measure"] == "months" else "calls")
    swing = f"{100 * float(answer['inputs']['swing']):g} %"
    ends = {"low": f"lowered by {swing}", "high": f"raised by {swing}"}
    series = []
    for end, words in ends.items():
        told = [(i, bar) for i, bar in enumerate(ordered) if bar[end]["at"] is not None]
        series.append(
            Series(
                words, "points",
                tuple(float(bar[end]["at"]) / factor for _, bar in told),
                tuple(i for i, _ in told),
                labels=tuple(f"{_plain(bar['input'])} {words} to {bar[end]['value']}: "
                             f"{spoken(float(bar[end]['at']))}" for _, bar in told),
            )
        )  # fmt: skip
    open_ones = [_plain(bar["input"]) for bar in bars if bar["open_ended"]]
    base = answer["base"]
    return Chart(
        name="tornado",
        title=f"{what}: each input lowered and raised by {swing}",
        summary=(
            f"{what}: {'none' if base is None else spoken(float(base))} as asked; "
            f"{_plain(answer['matters_most'] or bars[0]['input'])} matters most."
        ),
        x=Axis(what, unit),
        y=Axis("", categories=tuple(_plain(bar["input"]) for bar in ordered)),
        series=tuple(series),
        lines=() if base is None else (Line("x", float(base) / factor, "as asked"),),
        notes=(f"No break-even at one end: {', '.join(open_ones)}.",) if open_ones else (),
        table=Table(
            (Column("input", "Input"), Column("low_value", "Lowered to"),
             Column("low_at", f"{what}, lowered"), Column("low_status", "Status, lowered"),
             Column("high_value", "Raised to"), Column("high_at", f"{what}, raised"),
             Column("high_status", "Status, raised")),
            tuple((bar["input"], *(bar[end][key] for end in ends
                                   for key in ("value", "at", "status"))) for bar in bars),
        ),
    )  # fmt: skip


def _plain(name: str) -> str:
    return name.replace("_", " ")


def _inputs(answer: Mapping[str, Any]) -> BreakEvenInputs:
    """The question as the core takes it; a serving cost from a plan is what the contribution is
    less by."""
    given = answer["inputs"]
    values: dict[str, Any] = {
        name: None if given[name] is None else Decimal(given[name]) for name in _MONEY
    }
    values |= {name: None if given[name] is None else Fraction(str(given[name])) for name in _EXACT}
    if answer["plan"] is not None:
        values["serving_cost_per_call"] = _planned_cost(values, answer)
    return BreakEvenInputs(**values, horizon_months=given["horizon_months"])


def _planned_cost(values: Mapping[str, Any], answer: Mapping[str, Any]) -> Decimal:
    kept = (1 - values["free_share"]) * (1 - values["fee_share"])
    cost = Fraction(values["price_per_call"]) * kept - Fraction(answer["contribution_per_call"])
    return Decimal(cost.numerator) / Decimal(cost.denominator)


def _undiscounted(flow: CashFlow) -> CashFlow:
    names = ("revenue", "serving_cost", "fixed_cost", "growth", "price_decline", "cost_decline")
    return CashFlow(**{name: getattr(flow, name) for name in names})


def _last_month(asked: BreakEvenInputs, answer: Mapping[str, Any]) -> float:
    """The horizon, or twice the time of payback."""
    if asked.horizon_months is not None:
        return float(asked.horizon_months)
    months = answer["months_undiscounted"] or answer["months"]
    return min(max(2 * months, 1.0), LONGEST_HORIZON_MONTHS) if months else float(_MONTHS)


def _spread(end: float) -> list[float]:
    return [end * i / _POINTS for i in range(_POINTS + 1)]


def _by_calls(asked: BreakEvenInputs, answer: Mapping[str, Any]) -> tuple[list[float], list[float]]:
    """Calls sold, and what they recover in all, undiscounted: over the months where there is a rate
    of calls, else by the contribution of each."""
    flow = asked.cash_flow()
    if flow is not None:
        plain, growth, first = (
            _undiscounted(flow),
            asked.monthly_growth,
            Fraction(asked.calls_per_month or 0),
        )
        months = [Decimal(repr(m)) for m in _spread(_last_month(asked, answer))]
        sold = [float(calls_sold(first, growth, m)) for m in months]
        return sold, [float(plain.recovered(m)) for m in months]
    needed, price = answer["break_even_calls"], float(asked.revenue_per_call)
    end = float(needed) if needed else float(asked.to_recover) / price if price else 1.0
    sold = _spread(2 * end)
    return sold, [float(asked.contribution) * each for each in sold]


def _net_chart(
    answer: Mapping[str, Any], name: str, title: str, summary: str,
    across: tuple[str, str, str | None], x: Sequence[float], lines: Mapping[str, Sequence[float]],
    found: float | None, notes: tuple[str, ...],
) -> Chart:  # fmt: skip
    """Recovered less spent, in the answer's currency, along what lies across: its column's name,
    title and unit. `found` is where it is paid back."""
    key, what, of = across
    wide, unit = scaled(max(x), of)
    tall, money = scaled(max(abs(v) for line in lines.values() for v in line), answer["currency"])
    columns = [Column(key, what, of)]
    columns += [
        Column(f"{label.replace(' ', '_')}", f"Recovered less spent, {label}", answer["currency"])
        for label in lines
    ]
    return Chart(
        name=name,
        title=title,
        summary=summary,
        x=Axis(what, unit),
        y=Axis("Recovered less spent", money),
        series=tuple(
            Series(label, "line", tuple(v / wide for v in x), tuple(v / tall for v in line))
            for label, line in lines.items()
        ),
        lines=tuple(_paid(found, wide, of)),
        notes=notes,
        table=Table(tuple(columns), tuple(zip(x, *lines.values(), strict=True))),
    )


def _paid(found: float | None, wide: float, of: str | None) -> Iterable[Line]:
    yield Line("y", 0.0, "spent = recovered")
    if found is not None:
        yield Line("x", found / wide, f"paid back at {spoken(found)} {of or 'months'}")
