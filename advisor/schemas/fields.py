"""Scalar fields that take exactly what they say and refuse with figures.

Numbers arrive as `int` and `Decimal` from the strict JSON parser (so that money stays exact), or as
`float` from Python callers.
"""

from __future__ import annotations

import datetime
import math
import re
import sys
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from marshmallow import fields

from advisor.core.errors import FieldError, nearest_name
from advisor.schemas.faults import fault

JsonSchema = dict[str, Any]

NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,99}$"


class ApiField(fields.Field[Any]):
    """A field with its description, `doc`; `optional` marks what an answer may leave out."""

    default_error_messages = {
        "required": "This field is required.",
        "null": [FieldError("", "null is not accepted here.", given=None)],
    }

    def __init__(self, doc: str = "", *, optional: bool = False, **kwargs: Any) -> None:
        metadata = {"description": doc} if doc else {}
        super().__init__(metadata=metadata | {"optional": optional}, **kwargs)

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> Any:
        return self._read(value)

    def _read(self, value: Any) -> Any:
        """The value loaded. Raises ValidationError; a field of an answer is never loaded."""
        raise NotImplementedError

    def json_schema(self, converter: Any, /) -> JsonSchema:
        """The JSON Schema of a value that is not null."""
        raise NotImplementedError


class Number(ApiField):
    """A real number within bounds, as `float`: no numeric strings, booleans or infinities."""

    def __init__(
        self, doc: str = "", minimum: float | None = None, maximum: float | None = None, **kw: Any
    ) -> None:
        super().__init__(doc, **kw)
        self.minimum, self.maximum = minimum, maximum

    def _read(self, value: Any) -> float:
        if not isinstance(value, int | float | Decimal) or isinstance(value, bool):
            raise fault("A number is expected.", given=value)
        # As a double, so that 0.1 is not below a bound of 0.1; and -0.0 becomes 0.0.
        number = float(value) + 0.0
        check_bounds(number, self.minimum, self.maximum)
        return number

    def json_schema(self, _: Any, /) -> JsonSchema:
        """A number with its bounds."""
        return {"type": "number"} | bounds(self.minimum, self.maximum)


class Whole(ApiField):
    """A whole number within bounds, as `int`."""

    def __init__(
        self, doc: str = "", minimum: int | None = None, maximum: int | None = None, **kw: Any
    ) -> None:
        super().__init__(doc, **kw)
        self.minimum, self.maximum = minimum, maximum

    def _read(self, value: Any) -> int:
        if not isinstance(value, int | float | Decimal) or isinstance(value, bool):
            raise fault("A whole number is expected.", given=value)
        check_bounds(value, self.minimum, self.maximum)
        if value != int(value):
            raise fault("A whole number is expected.", given=value)
        return int(value)

    def json_schema(self, _: Any, /) -> JsonSchema:
        """An integer with its bounds."""
        return {"type": "integer"} | bounds(self.minimum, self.maximum)


class Money(ApiField):
    """An amount of money, exact: a decimal text or a JSON number, up to `maximum`, with at most
    `places` decimal places."""

    def __init__(
        self, doc: str = "", maximum: int = 10**15, *, places: int = 12, **kwargs: Any
    ) -> None:
        super().__init__(doc, **kwargs)
        self.maximum, self.places = maximum, places
        self.pattern = f"^[0-9]{{1,{len(str(maximum))}}}(\\.[0-9]{{1,{places}}})?$"

    def _read(self, value: Any) -> Decimal:
        amount = self._decimal(value)
        if not 0 <= amount <= self.maximum:
            allowed = {"minimum": 0, "maximum": self.maximum}
            raise fault("The amount is out of bounds.", given=value, allowed=allowed)
        if -int(amount.as_tuple().exponent) > self.places:
            raise fault(f"An amount has at most {self.places} decimal places.", given=value)
        return amount if amount else Decimal(0)

    def _decimal(self, value: Any) -> Decimal:
        if isinstance(value, str) and re.fullmatch(self.pattern, value):
            return Decimal(value)
        if isinstance(value, int | Decimal) and not isinstance(value, bool):
            return Decimal(value)
        if isinstance(value, float) and math.isfinite(value):
            return Decimal(repr(value))
        detail = "An amount is a decimal text such as '12.50', or a number."
        raise fault(detail, given=value, allowed=self.pattern)

    def json_schema(self, _: Any, /) -> JsonSchema:
        """A decimal string, or a number."""
        number = {"type": "number", "minimum": 0, "maximum": self.maximum}
        return {"anyOf": [{"type": "string", "pattern": self.pattern}, number]}


class DecimalText(ApiField):
    """An amount as it is answered: a decimal string."""

    def json_schema(self, _: Any, /) -> JsonSchema:
        """A decimal string."""
        return {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]+)?$"}


class WholeText(ApiField):
    """A whole number as it is answered: a string above 2**53, where doubles lose units."""

    def json_schema(self, _: Any, /) -> JsonSchema:
        """An integer, or a string of digits."""
        return {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": "^-?[0-9]+$"}]}


class Text(ApiField):
    """A text of bounded length that any database can hold: no NUL, no lone surrogates."""

    def __init__(
        self, doc: str = "", longest: int | None = None, *, shortest: int = 0,
        pattern: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(doc, **kwargs)
        self.shortest, self.longest, self.pattern = shortest, longest, pattern

    def _read(self, value: Any) -> str:
        if not isinstance(value, str):
            raise fault("A text is expected.", given=value)
        if any(c == "\x00" or "\ud800" <= c <= "\udfff" for c in value):
            raise fault("A text has no NUL character and no lone surrogate.")
        if len(value) < self.shortest or (self.longest is not None and len(value) > self.longest):
            raise fault(
                f"The text has {len(value)} characters.",
                allowed={"minimum_length": self.shortest, "maximum_length": self.longest},
            )
        if self.pattern and not re.fullmatch(self.pattern, value):
            raise fault("The text does not have the form expected.", given=value,
                        allowed=self.pattern)  # fmt: skip
        return value

    def json_schema(self, _: Any, /) -> JsonSchema:
        """A string with its length and pattern."""
        schema = {"minLength": self.shortest or None, "maxLength": self.longest,
                  "pattern": self.pattern}  # fmt: skip
        return {"type": "string"} | {key: v for key, v in schema.items() if v is not None}


class Name(Text):
    """A catalogue name: a lower-case slug."""

    def __init__(self, doc: str = "", **kwargs: Any) -> None:
        super().__init__(doc, 100, shortest=1, pattern=NAME_PATTERN, **kwargs)


class Currency(Text):
    """An ISO 4217 code."""

    def __init__(self, doc: str = "ISO 4217 currency code.", **kwargs: Any) -> None:
        super().__init__(doc, 3, shortest=3, pattern="^[A-Z]{3}$", **kwargs)


class Choice(ApiField):
    """One of a few words."""

    def __init__(self, doc: str, choices: Sequence[str], **kwargs: Any) -> None:
        super().__init__(doc, **kwargs)
        self.choices = tuple(choices)

    def _read(self, value: Any) -> str:
        if isinstance(value, str) and value in self.choices:
            return value
        near = (
            {"nearest": nearest_name(value[:100], self.choices)} if isinstance(value, str) else {}
        )
        raise fault("This is not one of the choices.", given=value, allowed=list(self.choices),
                    **near)  # fmt: skip

    def json_schema(self, _: Any, /) -> JsonSchema:
        """An enumeration of strings."""
        return {"type": "string", "enum": list(self.choices)}


class Flag(ApiField):
    """true or false, nothing that merely looks like it."""

    def _read(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise fault("true or false is expected.", given=value, allowed=[True, False])
        return value

    def json_schema(self, _: Any, /) -> JsonSchema:
        """A boolean."""
        return {"type": "boolean"}


class Date(ApiField):
    """A calendar date, kept as ISO 8601 text."""

    def _read(self, value: Any) -> str:
        try:
            if not isinstance(value, str) or not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
                raise ValueError
            return datetime.date.fromisoformat(value).isoformat()
        except ValueError:
            raise fault("A date is written YYYY-MM-DD.", given=value) from None

    def json_schema(self, _: Any, /) -> JsonSchema:
        """A string of format date."""
        return {"type": "string", "format": "date"}


def bounds(minimum: float | None, maximum: float | None) -> JsonSchema:
    """The bounds that there are, in JSON Schema's words."""
    pairs = {"minimum": minimum, "maximum": maximum}
    return {key: value for key, value in pairs.items() if value is not None}


def check_bounds(value: float | Decimal, minimum: float | None, maximum: float | None) -> None:
    """Refuse a number outside its bounds, and NaN and infinities whatever they are."""
    low = -sys.float_info.max if minimum is None else minimum
    high = sys.float_info.max if maximum is None else maximum
    if not low <= value <= high:
        detail = "The number is out of bounds."
        raise fault(detail, given=value, allowed=bounds(minimum, maximum))
