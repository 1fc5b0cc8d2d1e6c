"""Documents as rows of a table: one column for each scalar, JSON in the cells of all else.

The fields of an object of scalars, and the known keys of a map, are columns named
`object.field`. An empty cell is a field left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from marshmallow import Schema

from advisor.schemas.containers import MapOf, Section
from advisor.schemas.fields import ApiField, Choice, Date, Flag, Money, Number, Text, Whole

TEXTS = (Text, Choice, Date, Money)
"""Fields that take a cell as it is."""
SCALARS = (*TEXTS, Number, Whole, Flag)

Columns = Mapping[str, ApiField]


def columns(schema: type[Schema]) -> dict[str, ApiField]:
    """The columns of documents that `schema` loads, with the field of each."""
    found: dict[str, ApiField] = {}
    for name, field in schema().fields.items():
        assert isinstance(field, ApiField)
        inner = _inner(field)
        found |= {f"{name}.{key}": each for key, each in inner.items()} or {name: field}
    return found


def document(
    cells: Mapping[str, str], known: Columns, parse: Callable[[str], Any]
) -> dict[str, Any]:
    """The document that a row, by its columns, stands for; `parse` reads JSON or raises ValueError.

    What is in no known column, or is not what its column takes, is left for the schema to refuse.
    """
    sections = {name.partition(".")[0] for name in known if "." in name}
    found: dict[str, Any] = {}
    for name, cell in cells.items():
        if cell == "":
            continue
        value = _value(cell, known.get(name), parse)
        section, _, key = name.partition(".")
        if key and section in sections:
            # A cell for the whole object, which is no column, is left for the schema to refuse.
            inside = found.setdefault(section, {})
            if isinstance(inside, dict):
                inside[key] = value
        else:
            found[name] = value
    return found


def row(content: Mapping[str, Any], known: Columns) -> Iterable[str]:
    """The cells of a document, in the order of its columns."""
    for name in known:
        section, _, key = name.partition(".")
        value = content.get(section)
        if key:
            value = None if value is None else value.get(key)
        yield _cell(value)


def _inner(field: ApiField) -> Mapping[str, ApiField]:
    if isinstance(field, MapOf) and field.keys is not None and isinstance(field.inner, SCALARS):
        return dict.fromkeys(field.keys, field.inner)
    if isinstance(field, Section):
        fields = field.schema.fields
        if all(isinstance(each, SCALARS) for each in fields.values()):
            return fields  # type: ignore[return-value]
    return {}


def _value(cell: str, field: ApiField | None, parse: Callable[[str], Any]) -> Any:
    if field is None or isinstance(field, TEXTS):
        return cell
    try:
        return parse(cell)
    except ValueError:
        return cell


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, allow_nan=False)
