"""Many profiles at once."""

from __future__ import annotations

from typing import Any

from advisor.schemas.base import Answer, Closed
from advisor.schemas.common import FieldErrorAnswer
from advisor.schemas.containers import ListOf, Section
from advisor.schemas.faults import fault
from advisor.schemas.fields import ApiField, Choice, JsonSchema, Text, Whole

FORMATS = ("jsonl", "csv")
EXISTING = ("refuse", "replace")
RESULTS = {
    "created": 201, "replaced": 200, "unchanged": 200, "malformed": 400, "taken": 409,
    "invalid": 422,
}  # fmt: skip
"""What may become of an item, with the status that it alone would have been answered with."""


class QueryFlag(ApiField):
    """`true` or `false` in a query parameter."""

    def _read(self, value: Any) -> bool:
        if value not in ("true", "false"):
            raise fault("true or false is expected.", given=value, allowed=["true", "false"])
        return bool(value == "true")

    def json_schema(self, _: Any, /) -> JsonSchema:
        """A boolean."""
        return {"type": "boolean"}


class ImportQuery(Closed):
    """How profiles are taken in."""

    existing = Choice(
        "What to do with a profile whose name is there: refuse it, or replace the one there.",
        EXISTING, load_default="refuse", allow_none=False,
    )  # fmt: skip
    all_or_nothing = QueryFlag(
        "Store nothing unless everything can be stored.", load_default=False, allow_none=False
    )


class ExportQuery(Closed):
    """How profiles are given out."""

    format = Choice(
        "JSON Lines, or CSV with a column for each field.",
        FORMATS, load_default="jsonl", allow_none=False,
    )  # fmt: skip


class ImportedAnswer(Answer):
    """What became of one profile."""

    line = Whole("Where it stands in the body, from 1.")
    result = Choice("", tuple(RESULTS))
    status = Whole("HTTP status that it alone would have been answered with.")
    name = Text("null: it was refused.", allow_none=True)
    version = Whole("As its ETag gives it; null: it was refused.", allow_none=True)
    errors = ListOf(Section(FieldErrorAnswer), "Each field at fault.")


class ImportAnswer(Answer):
    """What became of each profile."""

    items = ListOf(Section(ImportedAnswer))
    stored = Whole("How many are there now.")
    refused = Whole("How many are not.")
