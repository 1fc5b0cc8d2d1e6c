"""marshmallow's nested messages as the flat list of field errors that the API answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import islice
from typing import Any

from marshmallow import Schema, ValidationError

from advisor.core.errors import ABSENT, FieldError, InvalidInput

MOST_FAULTS = 100
"""More faults than this are not listed: nobody reads them, and a hostile body could cause many."""
LONGEST_ECHO = 200
"""Code points of a refused text, or of a field's name, that an error repeats."""


def fault(detail: str, **figures: Any) -> ValidationError:
    """A refusal of the value at hand, with its `given`, `allowed` and `nearest`."""
    if "given" in figures:
        figures["given"] = echo(figures["given"])
    return ValidationError([FieldError("", detail, **figures)])


def echo(value: Any) -> Any:
    """`value` as an error may repeat it: scalars, long texts cut; not objects and arrays."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST_ECHO else value[:LONGEST_ECHO] + "…"
    if isinstance(value, Decimal):
        return float(value)
    return value if value is None or isinstance(value, bool | int | float) else ABSENT


def field_errors(error: ValidationError) -> tuple[FieldError, ...]:
    """The first 100 faults of a refused document, each with its JSON pointer."""
    return tuple(islice(_walk(error.messages, ""), MOST_FAULTS))


def loaded(schema: Schema, document: Any) -> dict[str, Any]:
    """A document that did not come as the body of a request, loaded. InvalidInput where the body
    would be refused."""
    try:
        found: dict[str, Any] = schema.load(document)
    except ValidationError as error:
        raise InvalidInput(*field_errors(error)) from None
    return found


def _walk(messages: Any, pointer: str) -> Iterator[FieldError]:
    if isinstance(messages, FieldError):
        yield messages.under(pointer)
    elif isinstance(messages, str):
        yield FieldError(pointer, messages)
    elif isinstance(messages, Mapping):
        for key, inner in messages.items():
            yield from _walk(inner, pointer if key == "_schema" else f"{pointer}/{_token(key)}")
    else:
        for inner in messages:
            yield from _walk(inner, pointer)


def _token(key: Any) -> str:
    text = str(echo(str(key)))
    return text.replace("~", "~0").replace("/", "~1")
