"""Shapes that several resources share: warnings, lists and their paging, problems."""

from __future__ import annotations

import re
from typing import Any

from marshmallow import fields

from advisor.schemas.base import Answer, Closed
from advisor.schemas.containers import ListOf, Section
from advisor.schemas.faults import fault
from advisor.schemas.fields import ApiField, Choice, JsonSchema, Text, Whole

MOST_ITEMS = 200
DEFAULT_ITEMS = 50


class MessageAnswer(Answer):
    """A warning."""

    code = Text("Stable identifier.")
    detail = Text("One or two sentences for people.")


class AnyJson(ApiField):
    """Any JSON value."""

    def json_schema(self, _: Any, /) -> JsonSchema:
        """No restriction."""
        return {}


class FieldErrorAnswer(Answer):
    """One field that cannot be accepted."""

    pointer = Text("JSON pointer (RFC 6901) of the field in the request body, or `/parameter`.")
    detail = Text("What is wrong with it.")
    given = AnyJson("The value that was given.", optional=True)
    allowed = AnyJson("What would be accepted: choices, or bounds.", optional=True)
    nearest = AnyJson("The accepted value closest to the given one.", optional=True)


class ProblemAnswer(Answer):
    """An error, as RFC 9457 describes it."""

    type = Text("URI reference of the kind of problem; `about:blank`: the status says it all.")
    title = Text("The kind of problem in a few words.")
    status = Whole("HTTP status code.")
    detail = Text("What went wrong this time.")
    instance = Text("Path of the request.")
    errors = ListOf(Section(FieldErrorAnswer), "Each field at fault; may be empty.")


class QueryWhole(ApiField):
    """A whole number in a query parameter."""

    def __init__(self, doc: str, minimum: int, maximum: int, **kwargs: Any) -> None:
        super().__init__(doc, **kwargs)
        self.minimum, self.maximum = minimum, maximum

    def _read(self, value: Any) -> int:
        bounds = {"minimum": self.minimum, "maximum": self.maximum}
        if not re.fullmatch("[0-9]{1,9}", value):
            raise fault("A whole number is expected.", given=value, allowed=bounds)
        if not self.minimum <= int(value) <= self.maximum:
            raise fault("The number is out of bounds.", given=value, allowed=bounds)
        return int(value)

    def json_schema(self, _: Any, /) -> JsonSchema:
        """An integer with its bounds."""
        return {"type": "integer", "minimum": self.minimum, "maximum": self.maximum}


class Opaque(ApiField):
    """A text that only the store can judge."""

    def _read(self, value: Any) -> Any:
        return value

    def json_schema(self, _: Any, /) -> JsonSchema:
        """A string."""
        return {"type": "string"}


class PageQuery(Closed):
    """Where a list starts, and how much of it is wanted."""

    limit = QueryWhole("Most items in one answer.", 1, MOST_ITEMS, load_default=DEFAULT_ITEMS)
    cursor = Opaque("`next_cursor` of the page before.", load_default=None, allow_none=False)


class NoQuery(Closed):
    """An operation that has no query parameters."""


def page_of(item: type[Answer], name: str) -> type[Answer]:
    """The answer of a list of `item`, as a schema called `name`."""
    members: dict[str, fields.Field[Any]] = {
        "items": ListOf(Section(item)),
        "next_cursor": Text(
            "Give it as `cursor` for the next page; null on the last.", allow_none=True
        ),
    }
    page = type(name, (Answer,), {**members, "__doc__": "One page of a list, ordered by its key."})
    assert issubclass(page, Answer)
    return page


ORIGINS = ("catalog", "user")


class StoredAnswer(Answer):
    """What every stored profile carries."""

    origin = Choice("`catalog` for an entry that came with the service, else `user`.", ORIGINS)
    created_at = Text("UTC, RFC 3339.")
    updated_at = Text("UTC, RFC 3339.")
