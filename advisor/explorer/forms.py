"""Forms: fields as controls with their labels, hints and places for errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dash import dcc, html

from advisor.explorer.attributes import attributes
from advisor.explorer.fields import Field, Group
from advisor.explorer.state import Values

WAIT_S = 0.3
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
    if field.kind == "choice":
        inner: Any = html.Fieldset([html.Legend(label), control, *hint, error])
    elif field.kind in ("name", "names"):
        inner = html.Div([html.Div(label, id=f"label-{field.name}"), control, *hint, error])
    else:
        inner = html.Label([*label, control, *hint, error])
    kind = f"row for-{field.only_for}" if field.only_for else "row"
    wide = field.kind in ("names", "name", "json", "long", "choice")
    return html.Div(inner, className=f"{kind} wide" if wide else kind)


def _control(field: Field, value: Any, choices: Choices) -> Any:
    identity = {"field": field.name}
    offered = field.choices or tuple((name, name) for name in choices.get(field.source, ()))
    options = [{"value": each, "label": label} for each, label in offered]
    match field.kind:
        case "choice":
            return dcc.RadioItems(options, value, id=identity, className="choices")
        case "name" | "names":
            known = {each for each, _ in offered}
            chosen = value if isinstance(value, list) else [value] if value else []
            # A name that is not known stays in sight, for the error beside it.
            options += [{"value": each, "label": each} for each in chosen if each not in known]
            return dcc.Dropdown(
                options, value or None, id=identity, multi=field.many, clearable=field.many,
                placeholder=f"{field.label} ...",
            )  # fmt: skip
        case "json" | "long":
            return dcc.Textarea(
                id=identity, value=value, rows=6 if field.kind == "long" else 3, spellCheck=False,
                className="text",
            )  # fmt: skip
        case _:
            mode: Any = "decimal" if field.kind == "number" else "text"
            return dcc.Input(
                id=identity, value=value, type="text", inputMode=mode, debounce=WAIT_S,
                autoComplete="off", className="text",
            )  # fmt: skip
