"""Forms: fields as controls with their labels, hints and places for errors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dash import dcc, html

from advisor.explorer.attributes import attributes
from advisor.explorer.fields import Field, Group
from advisor.explorer.state import Values

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
        case _:
            return _text(field, value, [name for name, _ in offered])


def _text(field: Field, value: str, known: list[str]) -> html.Data:
    """A place where the page's script puts a field for text; `value` is what it has taken of it.

    Dash's own fields set their text again after each change, and lose keys pressed meanwhile.
    """
    looks = {
        "rows": {"long": 6, "json": 3}.get(field.kind),
        "inputMode": "decimal" if field.kind == "number" else "text",
        "known": known,
    }
    return html.Data(
        id={"field": field.name}, value=value, **attributes(data_text=json.dumps(looks))
    )
