"""What every schema has in common."""

from __future__ import annotations

from typing import Any, ClassVar

from marshmallow import RAISE, Schema, ValidationError

from advisor.core.errors import ABSENT, FieldError, nearest_name
from advisor.schemas.faults import MOST_FAULTS

MOST_NEAR = 10
"""Unknown fields of one object that the nearest known one is looked up for."""
_UNKNOWN = "This field does not exist."


class Closed(Schema):
    """An object of known fields: any other is refused, with the nearest one that exists."""

    class Meta:
        """Refuse what is not declared."""

        unknown = RAISE

    json_schema_rules: ClassVar[dict[str, Any]] = {}
    """What the JSON Schema of this object says beyond its fields."""

    error_messages = {"type": "An object is expected.", "unknown": _UNKNOWN}

    def handle_error(self, error: ValidationError, *_: Any, **__: Any) -> None:
        """Complete each unknown field's message by the fields there are."""
        if not isinstance(error.messages, dict):
            return
        known = sorted(field.data_key or name for name, field in self.load_fields.items())
        unknown = [k for k, messages in error.messages.items() if messages == [_UNKNOWN]]
        # Looking for near names takes longer than all else: who has that many reads none of them.
        for count, name in enumerate(unknown[:MOST_FAULTS]):
            near = nearest_name(name, known) if count < MOST_NEAR else ABSENT
            error.messages[name] = [FieldError("", _UNKNOWN, allowed=known, nearest=near)]


class Answer(Schema):
    """A document the service answers: described for OpenAPI, never loaded.

    Every field is there, unless it is declared `optional`.
    """
