"""The page of accuracy: what is predicted beside what others have measured. It asks nothing."""

from __future__ import annotations

from dash import html

from advisor.accuracy.predictions import predictions
from advisor.charts.accuracy import accuracy
from advisor.charts.chart import Chart
from advisor.explorer import parts
from advisor.explorer.pages import Page, Question, Services, Shown


def ask(_services: Services, _question: Question) -> Shown:
    """How many measurements there are, and what they are."""
    rows = predictions()["predictions"]
    counts = [
        ("Benchmarks", str(len(rows)), "published by others"),
        *((title, str(len({row[name] for row in rows})), "of them")
          for title, name in (("Models", "model"), ("Accelerators", "device"))),
    ]  # fmt: skip
    return Shown(
        f"{len(rows)} public benchmarks, each beside a prediction that has not seen it.",
        [
            parts.panel(
                "What is compared",
                html.P("The mean time of an output token (TPOT) at a fixed number of requests in "
                       "flight. The coefficients behind each prediction were fitted without the "
                       "benchmark that it is compared with."),
                parts.figures_list(counts),
            )
        ],
    )  # fmt: skip


def picture(_services: Services, _question: Question) -> list[Chart]:
    """Predicted against measured."""
    chart = accuracy(predictions())
    return [] if chart is None else [chart]


PAGE = Page(
    "accuracy", "Accuracy", "How far from measurements do predictions lie?", (), ask, picture
)
