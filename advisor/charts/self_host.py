"""Own replicas, which come whole, against an API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

from advisor.charts.chart import Axis, Chart, Column, Line, Series, Table
from advisor.charts.words import figure, scaled, spoken

_FEWEST_STEPS, _MOST_STEPS = 5, 40
_BEYOND = 1.3
"""How far the picture goes beyond the last volume that matters."""


def self_host_vs_api(answer: Mapping[str, Any]) -> Chart | None:
    """Both bills of a month by its requests: the API's line, the steps of own replicas, and the
    stretches of them that are the cheaper ones. None of another answer than this comparison."""
    if "always_cheaper_from" not in answer:
        return None
    own = _Replicas(answer)
    price, currency = float(answer["api_cost_per_request"]), answer["currency"]
    steps = own.steps(_end(answer, own))
    volumes, bills = [low for low, _ in steps], [bill for _, bill in steps]
    end = volumes[-1] + own.capacity
    wide, unit = scaled(end, "requests/month")
    tall, money = scaled(max(bills[-1], price * end), f"{currency}/month")
    lines = []
    if answer["always_cheaper_from"] is not None:
        lines = [(float(answer["always_cheaper_from"]), "own replicas always cheaper from")]
    if answer["at_volume"] is not None:
        lines.append((float(answer["at_volume"]["requests_per_month"]), "this volume"))
    shown = [(at, words) for at, words in lines if at <= end]
    return Chart(
        name="self_host_vs_api",
        title="Own replicas against an API",
        summary=_summary(answer),
        x=Axis("Requests", unit),
        y=Axis("Bill", money),
        series=(
            Series("API", "line", (0.0, end / wide), (0.0, price * end / tall)),
            Series("own replicas", "step", (*(v / wide for v in volumes), end / wide),
                   (*(bill / tall for bill in bills), bills[-1] / tall)),
            *_won(answer, end, wide),
        ),
        lines=tuple(Line("x", at / wide, f"{words} {spoken(at)}") for at, words in shown),
        notes=_notes(answer, end),
        table=Table(
            (Column("from", "From", "requests/month"), Column("to", "To", "requests/month"),
             Column("winner", "Cheaper"), Column("replicas", "Replicas at from"),
             Column("replicas_at_end", "Replicas at to"),
             Column("api_per_month_at_from", "API at from", currency)),
            tuple((each["from"], each["to"], each["winner"], each["replicas"],
                   each["replicas_at_end"], float(each["from"]) * price)
                  for each in answer["intervals"]),
        ),
    )  # fmt: skip


class _Replicas:
    """What replicas cost and serve in a month, from the answer: the floor is a full replica's cost
    of a request, the naive break-even what one and the overhead cost in requests of the API."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self.each = float(answer["replica_cost_per_month"])
        floor, price = (
            float(answer[name]) for name in ("self_host_floor_per_request", "api_cost_per_request")
        )
        naive = answer["naive_break_even"]
        self.overhead = 0.0 if naive is None else max(float(naive) * price - self.each, 0.0)
        if naive is None:
            self.overhead = float(answer["inputs"]["overhead_per_month"])
        self.capacity = (
            self.each / floor if floor else float(answer["replica_capacity_requests_per_month"])
        )
        self.fewest = int(answer["inputs"]["min_replicas"])

    def bill(self, replicas: int) -> float:
        return replicas * self.each + self.overhead

    def steps(self, end: float) -> list[tuple[float, float]]:
        """From which volume on which bill, up to `end`; of very many steps every so many."""
        last = max(ceil(end / self.capacity), self.fewest)
        stride = ceil(last / _MOST_STEPS)
        counts = range(self.fewest, last + 1, stride)
        return [
            (0.0 if k == self.fewest else (k - 1) * self.capacity, self.bill(k)) for k in counts
        ]


def _end(answer: Mapping[str, Any], own: _Replicas) -> float:
    """The last volume that matters, and some more."""
    marks = [own.capacity * max(own.fewest, _FEWEST_STEPS)]
    if answer["always_cheaper_from"] is not None:
        marks.append(_BEYOND * float(answer["always_cheaper_from"]))
    if answer["at_volume"] is not None:
        marks.append(_BEYOND * float(answer["at_volume"]["requests_per_month"]))
    return max(marks)


def _won(answer: Mapping[str, Any], end: float, wide: float) -> Sequence[Series]:
    """The volumes at which own replicas are the cheaper ones, as a bar at the bottom."""
    x: list[float | None] = []
    y: list[float | None] = []
    words: list[str] = []
    for each in answer["intervals"]:
        start, until = float(each["from"]), end if each["to"] is None else float(each["to"])
        if each["winner"] != "self_host" or start > end:
            continue
        to = "on" if each["to"] is None else f"to {spoken(until)}"
        x += [start / wide, min(until, end) / wide, min(until, end) / wide]
        y += [0.0, 0.0, None]
        words += [f"own replicas are cheaper from {spoken(start)} {to} requests a month"] * 3
    if not x:
        return ()
    return (
        Series("own replicas cheaper", "line", tuple(x), tuple(y), labels=tuple(words),
               emphasis=True),
    )  # fmt: skip


def _summary(answer: Mapping[str, Any]) -> str:
    price, currency = figure(answer["api_cost_per_request"]), answer["currency"]
    api = f"A request costs {price} {currency} at the API"
    floor = float(answer["self_host_floor_per_request"])
    own = f"at least {figure(floor)} {currency} on own replicas"
    if answer["always_cheaper_from"] is None:
        return f"{api} and {own}. {answer['reason'] or 'No volume makes own replicas cheaper.'}"
    always = spoken(float(answer["always_cheaper_from"]))
    wins = sum(each["winner"] == "self_host" for each in answer["intervals"])
    times = "" if wins < 2 else f", and in {wins - 1} stretch{'es' if wins > 2 else ''} below"
    return f"{api} and {own}: these are always cheaper from {always} requests a month on{times}."


def _notes(answer: Mapping[str, Any], end: float) -> tuple[str, ...]:
    listed, total = len(answer["intervals"]), int(answer["intervals_total"])
    notes = [f"{total - listed} more intervals are not listed."] if total > listed else []
    if answer["always_cheaper_from"] is not None and float(answer["always_cheaper_from"]) > end:
        notes.append("Where own replicas are always cheaper lies beyond the picture.")
    return tuple(notes)
