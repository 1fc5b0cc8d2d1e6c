"""The state of a page in its address: a link shows what was seen.

The values of a form are texts by the names of its fields, lists of texts where a field has many.
An address without a query stands for the defaults; with one it holds every field that is not empty.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, urlencode

from advisor.explorer.fields import Field, Group

Values = dict[str, "str | list[str]"]

LONGEST_PLAIN = 200
"""Characters from which on a text is packed."""
PACKED = ".z"
LONGEST_TEXT = 1_000_000
"""Characters that a packed text may unpack to."""


def fields_of(groups: Iterable[Group]) -> list[Field]:
    """The fields of a form, in their order."""
    return [field for group in groups for field in group.fields]


def defaults(groups: Iterable[Group]) -> Values:
    """The values of a form that nobody has changed."""
    return {f.name: f.default.split(",") if f.many and f.default else ([] if f.many else f.default)
            for f in fields_of(groups)}  # fmt: skip


def values_of(groups: Iterable[Group], query: str) -> Values:
    """The values that an address has: those of the fields, and answers to questions."""
    groups = tuple(groups)
    given = dict(parse_qsl(query.removeprefix("?"), keep_blank_values=True))
    if not given:
        return defaults(groups)
    given |= {name.removesuffix(PACKED): _unpacked(text) for name, text in given.items()
              if name.endswith(PACKED)}  # fmt: skip
    values: Values = {}
    for field in fields_of(groups):
        text = given.get(field.name, field.default if field.kind == "choice" else "")
        values[field.name] = [each for each in text.split(",") if each] if field.many else text
    return values | {name: text for name, text in given.items() if is_answer(name)}


def query_of(values: Mapping[str, str | list[str]]) -> str:
    """The query of an address, without its question mark."""
    parts = []
    for name, value in values.items():
        text = value if isinstance(value, str) else ",".join(value)
        if len(text) > LONGEST_PLAIN:
            parts.append((name + PACKED, _packed(text)))
        elif text:
            parts.append((name, text))
    return urlencode(parts, safe=",:/")


def is_answer(name: str) -> bool:
    """Whether a parameter answers a question of the terminology page: `answer-` and a number."""
    head, _, number = name.partition("-")
    return head == "answer" and number.isascii() and number.isdigit() and len(number) < 6


def _packed(text: str) -> str:
    return base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")


def _unpacked(text: str) -> str:
    """The text that was packed; an address that was cut or made up gives an empty one."""
    try:
        packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        return zlib.decompressobj().decompress(packed, LONGEST_TEXT).decode()
    except (ValueError, zlib.error):
        return ""
