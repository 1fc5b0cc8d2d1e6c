"""From the values of a form to the body of a request, and from its faults back to the fields."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from advisor.core.errors import ABSENT, FieldError, InvalidInput
from advisor.explorer.fields import Field

Parse = Callable[[bytes], Any]
PASTED = "my-model"
"""The name of a model that is pasted as its config.json."""
LOADS = "load"
_WHOLE = re.compile(r"-?[0-9]{1,300}")
_NUMBER = re.compile(r"-?[0-9]{1,300}(\.[0-9]{1,300})?([eE][+-]?[0-9]{1,3})?")
_MOST_ALLOWED = 12


def body_of(fields: Iterable[Field], values: Mapping[str, Any], parse: Parse) -> dict[str, Any]:
    """The body that a form asks with. `parse` reads JSON as the service does.

    Raises InvalidInput for a config.json that is no JSON; all else the schemas judge.
    """
    load = values.get(LOADS, "")
    body: dict[str, Any] = {}
    for field in fields:
        value = values.get(field.name)
        if field.name == LOADS or not value or field.only_for not in ("", load):
            continue
        _put(body, field.pointer, _value(field, value, parse))
    if load == "saturate":
        _put(body, "/workload/saturate", True)
    return _plainer(body)


def text_of(body: Mapping[str, Any]) -> str:
    """A body as it is posted."""
    return json.dumps(body, indent=2, allow_nan=False)


def curl(address: str, body: Mapping[str, Any], *, with_key: bool) -> str:
    """The shell command that posts a body. A key is taken from the environment, never shown."""
    key = ' -H "Authorization: Bearer $ADVISOR_API_KEY"' if with_key else ""
    return (
        f"curl -s {shlex.quote(address)}{key} \\\n"
        f"  -H 'Content-Type: application/json' \\\n  -d {shlex.quote(text_of(body))}"
    )


def placed(
    errors: Iterable[FieldError], fields: Iterable[Field]
) -> tuple[dict[str, list[str]], list[str]]:
    """What is wrong with each field, by its name, and what concerns none of them."""
    fields = list(fields)
    by_field: dict[str, list[str]] = {}
    others: list[str] = []
    for error in errors:
        field = _field_at(error.pointer, fields)
        if field is None:
            others.append(f"{error.pointer or 'The request'}: {worded(error)}")
        else:
            by_field.setdefault(field.name, []).append(worded(error))
    return by_field, others


def worded(error: FieldError) -> str:
    """An error in one or two sentences."""
    parts = [error.detail]
    if error.nearest is not ABSENT:
        parts.append(f"Is {error.nearest} meant?")
    elif isinstance(error.allowed, Mapping):
        bounds = (f"{str(k).replace('_', ' ')} {v}" for k, v in error.allowed.items())
        parts.append(f"Allowed: {', '.join(bounds)}.")
    elif isinstance(error.allowed, list | tuple) and len(error.allowed) <= _MOST_ALLOWED:
        parts.append(f"Allowed: {', '.join(map(str, error.allowed))}.")
    return " ".join(parts)


def _field_at(pointer: str, fields: list[Field]) -> Field | None:
    """The field at a pointer, else the first within what it names, else that which holds it."""
    holding = [f for f in fields if f"{pointer}/".startswith(f"{f.pointer}/")]
    within = [f for f in fields if pointer and f.pointer.startswith(f"{pointer}/")]
    nearest = max(holding, key=lambda field: len(field.pointer), default=None)
    if nearest is not None and nearest.pointer == pointer:
        return nearest
    return within[0] if within else nearest


def _value(field: Field, value: Any, parse: Parse) -> Any:
    if field.kind == "number":
        return _number(value)
    if field.kind == "numbers":
        return [_number(each.strip()) for each in value.split(",")]
    if field.kind == "json":
        return _config(field, value, parse)
    return value


def _number(text: str) -> Any:
    """The number that a text is; a text that is none is left for the schema to refuse."""
    text = text.strip()
    if _WHOLE.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    return text


def _config(field: Field, text: str, parse: Parse) -> Any:
    try:
        parse(text.encode("utf-8", "replace"))
    except ValueError as error:
        detail = str(error).replace("The body", "This text", 1)
        raise InvalidInput(FieldError(field.pointer, detail)) from None
    return json.loads(text)


def _put(body: dict[str, Any], pointer: str, value: Any) -> None:
    *path, last = pointer.split("/")[1:]
    for name in path:
        inner = body.get(name)
        if not isinstance(inner, dict):
            # A pasted config takes the place of a model's name.
            inner = body[name] = {"name": PASTED} if name == "model" else {}
        body = inner
    body[last] = value


def _plainer(body: dict[str, Any]) -> dict[str, Any]:
    """The body with lengths that are all alike as plain numbers."""
    for name in ("input_tokens", "output_tokens"):
        length = body.get("workload", {}).get(name)
        if isinstance(length, dict) and length.keys() == {"mean"}:
            body["workload"][name] = length["mean"]
    return body
