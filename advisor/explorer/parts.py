"""Pieces that every page is made of."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from dash import html

from advisor.charts.chart import Cell, Chart
from advisor.explorer.attributes import attributes
from advisor.explorer.figures import figure_of

Children = list[Any]


def panel(title: str, *children: Any, kind: str = "panel") -> html.Section:
    """A part of the answer under a heading."""
    return html.Section([html.H2(title), *children], className=kind)


def folded(title: str, *children: Any, **options: Any) -> html.Details:
    """What is there for who wants it."""
    return html.Details([html.Summary(title), *children], **options)


def bullets(sentences: Iterable[str]) -> html.Ul:
    """Sentences, one below the other."""
    return html.Ul([html.Li(each) for each in sentences])


def messages(title: str, found: Sequence[dict[str, str]], *, kind: str = "") -> Children:
    """Warnings or assumptions of an answer, where there are any."""
    if not found:
        return []
    return [folded(f"{title} ({len(found)})", bullets(m["detail"] for m in found),
                   className=kind, open=kind == "warnings")]  # fmt: skip


def figures_list(pairs: Iterable[tuple[str, str, str]]) -> html.Dl:
    """Figures as name, value and what to know of it."""
    return html.Dl(
        [
            html.Div([html.Dt(name), html.Dd([html.Strong(value), html.Span(note)])])
            for name, value, note in pairs
        ],
        className="figures",
    )


def table(
    caption: str, columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[Cell]], *,
    emphasis: int | None = None,
) -> html.Div:  # fmt: skip
    """A table of columns by name and title; `emphasis` is the row that stands out.

    The page's script makes it of its data: Dash would watch every cell, and take seconds for it. It
    scrolls by itself where it is wider than the page, by keyboard too.
    """
    content = {"caption": caption, "columns": columns, "rows": list(rows), "emphasis": emphasis}
    return html.Div(
        className="scrolling", tabIndex=0, role="region",
        **attributes(aria_label=caption, data_table=json.dumps(content)),
    )  # fmt: skip


def picture(chart: Chart) -> html.Figure:
    """A chart with its sentence, its table and buttons that save it. The page's script draws it as
    it comes near what is seen."""
    return html.Figure(
        [
            html.H3(chart.title),
            html.Div(
                html.Div(className="graph",
                         **attributes(data_figure=json.dumps(figure_of(chart)))),
                role="img", **attributes(aria_label=chart.summary),
            ),
            html.Figcaption([html.P(chart.summary), *(html.P(n, className="hint")
                                                      for n in chart.notes)]),
            _exports(("svg", "SVG"), ("png", "PNG"), ("csv", "CSV"), ("json", "JSON"),
                     name=chart.name),
            folded(
                "The figures as a table",
                table(chart.title, [(c.name, c.label) for c in chart.table.columns],
                      chart.table.rows),
            ),
        ],
        className="picture", id=f"picture-{chart.name}",
    )  # fmt: skip


def pictures(charts: Sequence[Chart]) -> Children:
    """A panel with charts, where there are any."""
    if not charts:
        return []
    return [panel("Pictures", html.Div([picture(each) for each in charts], className="pictures"))]


def copyable(title: str, text: str, *, name: str, before: Iterable[Any] = (),
             after: Iterable[Any] = ()) -> html.Section:  # fmt: skip
    """A text to take away, with what stands before and after it."""
    return html.Section(
        [html.H2(title), *before, taken(text, ("copy", "Copy"), name=name), *after],
        className="panel",
    )


def taken(text: str, *exports: tuple[str, str], name: str) -> html.Div:
    """A text as it is, with buttons that take it away."""
    return html.Div(
        [html.Pre(text, tabIndex=0, **attributes(aria_label=name)), _exports(*exports, name=name)],
        className="taken",
    )


def alert(sentence: str, others: Iterable[str] = ()) -> html.Div:
    """What keeps a request from being answered."""
    return html.Div([html.P(sentence), bullets(others)], className="alert", role="alert")


def said(value: Cell) -> str:
    """A figure as people read it: four significant digits, thousands apart."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def percent(share: float | str | None) -> str:
    """A share in percent."""
    return "–" if share is None else f"{100 * float(share):.0f} %"


def money(amount: str | None, currency: str | None) -> str:
    """An amount as people read it."""
    if amount is None:
        return "no price"
    value = float(amount)
    text = f"{value:,.2f}" if value >= 1 or value == 0 else f"{value:.3g}"
    return f"{text} {currency}"


def _exports(*kinds: tuple[str, str], name: str) -> html.Div:
    """Buttons that the page's script serves."""
    return html.Div(
        [
            html.Button(label, type="button", className="export",
                        **attributes(data_export=kind, data_name=name,
                                     aria_label=f"{label}: {name.replace('_', ' ')}"))
            for kind, label in kinds
        ],
        className="exports",
    )  # fmt: skip
