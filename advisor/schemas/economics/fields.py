"""Fields of exact numbers, and what every economic answer has."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

from marshmallow import fields

from advisor.core.economics.currency import HIGHEST_RATE
from advisor.core.economics.figures import (
    LARGEST_FIGURE,
    LARGEST_JSON_INTEGER,
    MOST_DECIMALS,
    Range,
    plain,
    quantity,
    range_errors,
)
from advisor.schemas.base import Answer, Closed
from advisor.schemas.common import MessageAnswer
from advisor.schemas.containers import ListOf, MapOf, Section
from advisor.schemas.faults import fault
from advisor.schemas.fields import (
    ApiField,
    Choice,
    Currency,
    Date,
    DecimalText,
    JsonSchema,
    Money,
    Name,
    Number,
    Text,
    Whole,
    WholeText,
)

_DIGITS = "[0-9]{16,31}"
_TEXT: JsonSchema = {"type": "string", "pattern": f"^{_DIGITS}$"}
STATUSES = ("ok", "never", "not_within_horizon", "unbounded", "infeasible")


def _default(value: Any, given: dict[str, Any]) -> dict[str, Any]:
    """How marshmallow is told of a default that JSON cannot hold: through a function."""
    if given.get("required"):
        return given
    if value is None:
        return {"allow_none": True, "load_default": None} | given
    found: Callable[[], Any] = lambda: value  # noqa: E731
    return {"load_default": found} | given


class Amount(Money):
    """An amount of money of the economic endpoints, up to 1e30; null where it has no default."""

    def __init__(self, doc: str, default: Decimal | None = None, **kwargs: Any) -> None:
        super().__init__(doc, LARGEST_FIGURE, places=MOST_DECIMALS, **_default(default, kwargs))
        self.default = default

    def json_schema(self, converter: Any, /) -> JsonSchema:
        """A decimal string, or a number."""
        known = {} if self.default is None else {"default": plain(self.default)}
        return super().json_schema(converter) | known


def _number(value: Any) -> Any:
    """A whole number above 2**53 that is sent as a text of digits, as answers write it."""
    if isinstance(value, str) and re.fullmatch(_DIGITS, value):
        return int(value) if int(value) > LARGEST_JSON_INTEGER else value
    return value


class Count(Whole):
    """A whole number up to 1e30; null where it is left out."""

    def __init__(self, doc: str) -> None:
        super().__init__(doc, 0, LARGEST_FIGURE, allow_none=True, load_default=None)

    def _read(self, value: Any) -> int:
        return super()._read(_number(value))

    def json_schema(self, converter: Any, /) -> JsonSchema:
        """An integer; above 2**53 a string of digits too."""
        return {"anyOf": [super().json_schema(converter), _TEXT]}


class Exact(ApiField):
    """A number that is not money, exact, within a range of the core; null without a default."""

    def __init__(
        self, doc: str, allowed: Range, default: Fraction | None = None, **kwargs: Any
    ) -> None:
        super().__init__(doc, **_default(default, kwargs))
        self.allowed, self.default = allowed, default
        self.minimum, self.maximum = allowed.allowed["minimum"], allowed.allowed["maximum"]

    def _read(self, given: Any) -> Fraction:
        value = _number(given)
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise fault("A number is expected.", given=given)
        number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
        for error in range_errors("", number, self.allowed):
            raise fault(error.detail, given=given, allowed=self.allowed.allowed)
        return Fraction(number)

    def json_schema(self, _: Any, /) -> JsonSchema:
        """A number with its bounds; above 2**53 a string of digits too."""
        known = {} if self.default is None else {"default": quantity(self.default)}
        number = {"type": "number"} | self.allowed.allowed
        if self.allowed.most > LARGEST_JSON_INTEGER:
            return {"anyOf": [number, _TEXT]} | known
        return number | known


class Quantity(ApiField):
    """A number as it is answered: whole ones above 2**53 as strings."""

    def json_schema(self, _: Any, /) -> JsonSchema:
        """A number, or a string of digits."""
        return {"anyOf": [{"type": "number"}, {"type": "string", "pattern": "^-?[0-9]+$"}]}


class Figure(ApiField):
    """A number of which only the input says whether it is money: a number, or a decimal string."""

    def json_schema(self, _: Any, /) -> JsonSchema:
        """A number, or a decimal string."""
        text = {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]+)?$"}
        return {"anyOf": [{"type": "number"}, text]}


@cache
def inputs_answer(body: type[Closed]) -> type[Answer]:
    """The schema of a body's echo: every field there is, as answers write it."""
    echoed = {name: _echo(field) for name, field in body().fields.items()}
    name = f"{body.__name__.removesuffix('Body')}InputsAnswer"
    answer = type(name, (Answer,), {**echoed, "__doc__": "The inputs, every default filled in."})
    assert issubclass(answer, Answer)
    return answer


def _echo(field: fields.Field[Any]) -> ApiField:
    nullable: dict[str, Any] = {"allow_none": field.allow_none}
    match field:
        case Money():
            return DecimalText(**nullable)
        case Exact():
            return Quantity(**nullable)
        case Whole():
            return WholeText(**nullable)
        case Section():
            return Section(inputs_answer(type(field.schema)), **nullable)
        case Choice():
            return Choice("", field.choices, **nullable)
        case Text() | Date():
            return Text(**nullable)
    raise TypeError(type(field).__name__)


class UsedPriceAnswer(Answer):
    """A price that was used and not given."""

    name = Text("Its name in the list, or the hardware that it is of.")
    as_of = Text("Day on which it was seen; null: not known.", allow_none=True)
    price_age_days = Whole("Days since then; null: not known.", allow_none=True)
    source = Text("Where it is from.")


class EconomicsAnswer(Answer):
    """What every economic answer has."""

    status = Choice("`ok`, or why there is no figure; see `reason`.", STATUSES)
    reason = Text("Why it is not `ok`, or what else to know.", allow_none=True)
    currency = Currency()
    not_included = ListOf(Text(), "What the sum leaves out.")
    assumptions = ListOf(Section(MessageAnswer), "What the figures rest on.")
    warnings = ListOf(Section(MessageAnswer))
    prices_used = ListOf(
        Section(UsedPriceAnswer), "Listed prices, and those of profiles and plans."
    )
    planner_version = Text("Version of the service.")


class NullReasonsAnswer(EconomicsAnswer):
    """An answer in which figures may be missing."""

    null_reasons = MapOf(Text(), "Why a figure is null, by field.")


class ExchangeRateBody(Closed):
    """What a unit of one currency is in another, on a day."""

    from_currency = Currency("What is converted.", required=True)
    to_currency = Currency("What it is converted to.", required=True)
    rate = Money("Units of `to_currency` for one of `from_currency`.", HIGHEST_RATE,
                 places=MOST_DECIMALS, required=True)  # fmt: skip
    as_of = Date("The day of the rate.", required=True)


class UsedPlanAnswer(Answer):
    """What was taken from a plan: its recommended candidate at its load."""

    plan_id = Text("The plan.")
    accelerators = Whole()
    replicas = Whole()
    requests_per_s = Number("At the peak planned for.")
    mean_requests_per_s = Number("What bills are spread over.")
    utilization = Number("Load as a share of saturation.", allow_none=True)
    verdict = Text("How the plan holds its load.")


def plan_field() -> Text:
    """The plan that a figure is taken from."""
    return Text("Id of a plan: its recommended candidate, at its load.", 40, shortest=1,
                allow_none=True, load_default=None)  # fmt: skip


def exchange_rate_field(of: str) -> Section:
    """The rate at which amounts of a plan, a profile or a list are converted."""
    return Section(ExchangeRateBody, f"From the currency of {of}.", allow_none=True,
                   load_default=None)  # fmt: skip


def offer_field(what: str, instead_of: str) -> Name:
    """The name of a listed price."""
    return Name(f"{what}, by its name in the list, in place of {instead_of}.", allow_none=True,
                load_default=None)  # fmt: skip
