"""JSON read strictly: what two parsers could read differently is refused.

Refused are encodings other than UTF-8, a byte-order mark, duplicate keys, NaN and infinities,
numbers beyond a double, and nesting deeper than 64 levels. Numbers with a fraction or an exponent
become `Decimal`, so that money stays exact.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

DEEPEST = 64
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)


class MalformedJson(ValueError):
    """The text is no JSON that is accepted here; the message says why."""


def parse(body: bytes) -> Any:
    """The value that a request body holds. Raises `MalformedJson`."""
    text = _decode(body)
    _check_depth(text)
    try:
        return json.loads(
            text,
            parse_float=_number,
            parse_int=_whole,
            parse_constant=_constant,
            object_pairs_hook=_object,
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise MalformedJson(f"The body is not JSON: {error.msg} ({where}).") from None


def _decode(body: bytes) -> str:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedJson(f"The body is not UTF-8 (byte {error.start}).") from None
    if text.startswith("\ufeff"):
        raise MalformedJson("The body starts with a byte-order mark.")
    return text


def _check_depth(text: str) -> None:
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(text):
        bracket = token[0]
        if bracket in "[{":
            depth += 1
            if depth > DEEPEST:
                raise MalformedJson(f"The body is nested deeper than {DEEPEST} levels.")
        elif bracket in "]}":
            depth -= 1


def _number(text: str) -> Decimal:
    if math.isinf(float(text)):
        raise MalformedJson("The body has a number too large for a double.")
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent below any that decimals have
        return Decimal(0)


def _whole(text: str) -> int:
    if len(text) > 310 or math.isinf(float(text)):
        raise MalformedJson("The body has a number too large for a double.")
    return int(text)


def _constant(name: str) -> NoReturn:
    raise MalformedJson(f"The body has {name}, which is not JSON.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise MalformedJson(f"The key {twice[:100]!r} stands twice in one object.")
    return members
