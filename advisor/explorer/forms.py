"""Forms: fields as controls with their labels, hints and places for errors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dash import dcc, html

from advisor.explorer.attributes import attributes
from advisor.explorer.fields import Field, Group
from advisor.explorer.state import Values

WAIT_S = 0.2
"""Seconds without a key pressed after which a text is taken."""
Choices = Mapping[str, Sequence[str]]
"""The names there are to choose from, by the `source` of a field."""


def form(
    groups: Iterable[Group], values: Values, choices: Choices, errors: Mapping[str, str]
) -> html.Form:
    """The form of a page, filled in; `errors` by the names of fields."""
    return html.Form(
        [_group(group, values, choices, errors) for group in groups],
        id="form", className="form", **attributes(aria_label="What is asked"),
    )  # fmt: skip


def _group(group: Group, values: Values, choices: Choices, errors: Mapping[str, str]) -> Any:
    controls = [
        _row(field, values[field.name], choices, errors.get(field.name, ""))
        for field in group.fields
    ]
    title = html.H2(group.title)
    if group.open:
        return html.Section([title, html.Div(controls, className="rows")])
    used = any(values[f.name] not in ("", [], f.default) for f in group.fields)
    return html.Details(
        [html.Summary(title), html.Div(controls, className="rows")], open=used
    )  # fmt: skip


def _row(field: Field, value: Any, choices: Choices, wrong: str) -> html.Div:
    """A control with its label; what is wrong with it will stand below."""
    label = [html.Span(field.label, className="label")]
    if field.unit:
        label.append(html.Span(f" [{field.unit}]", className="unit"))
    hint = [html.Span(field.hint, className="hint")] if field.hint else []
    error = html.Span(wrong, id={"error": field.name}, className="error")
    control = _control(field, value, choices)
    if field.kind in ("choice", "names"):
        inner: Any = html.Fieldset([html.Legend(label), control, *hint, error])
    else:
        inner = html.Label([*label, control, *hint, error])
    kind = f"row for-{field.only_for}" if field.only_for else "row"
    wide = field.kind in ("names", "name", "json", "long", "choice")
    return html.Div(inner, className=f"{kind} wide" if wide else kind)


def _control(field: Field, value: Any, choices: Choices) -> Any:
    """Native controls: Dash's own drop-down list has no label, and hides what has the focus."""
    identity = {"field": field.name}
    offered = field.choices or tuple((name, name) for name in choices.get(field.source, ()))
    options = [{"value": each, "label": label} for each, label in offered]
    match field.kind:
        case "choice":
            return dcc.RadioItems(options, value, id=identity, className="choices")
        case "names":
            # What is chosen stands first; a name that is not known, for the error below.
            first = [{"value": name, "label": name} for name in value]
            rest = [option for option in options if option["value"] not in value]
            box = "choices boxed" if field.source else "choices"
            return dcc.Checklist([*first, *rest], value, id=identity, className=box)
        case "json" | "long":
            return dcc.Textarea(
                id=identity, value=value, rows=6 if field.kind == "long" else 3, spellCheck=False,
                className="text",
            )  # fmt: skip
        case _:
            mode: Any = "decimal" if field.kind == "number" else "text"
            known = f"known-{field.name}" if offered else None
            control = dcc.Input(
                id=identity, value=value, type="text", inputMode=mode, debounce=WAIT_S, list=known,
                autoComplete="off", className="text",
            )  # fmt: skip
            if known is None:
                return control
            names = json.dumps([name for name, _ in offered])
            return html.Span([control, html.Datalist(id=known, **attributes(data_options=names))])
