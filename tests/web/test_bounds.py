from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from marshmallow import Schema, ValidationError

from advisor.core.errors import FieldError
from advisor.schemas.allocation import AllocationBody
from advisor.schemas.containers import Either, ListOf, MapOf, Section, Variant
from advisor.schemas.economics.break_even import SensitivityBody
from advisor.schemas.economics.fields import Exact
from advisor.schemas.economics.serving import RequestPriceBody, SelfHostBody, ServingCostBody
from advisor.schemas.economics.training import (
    InferenceAwareSizeBody,
    OwnershipBody,
    TrainingCostBody,
)
from advisor.schemas.fields import Money, Number, Whole
from advisor.schemas.hardware import HardwareProfileBody
from advisor.schemas.models import ModelProfileBody
from advisor.schemas.plans import PlanBody
from advisor.schemas.techniques import AdviceBody
from advisor.schemas.terminology import CheckBody, FindingRepliesBody

BODIES = [
    HardwareProfileBody,
    ModelProfileBody,
    PlanBody,
    AdviceBody,
    AllocationBody,
    SensitivityBody,
    RequestPriceBody,
    SelfHostBody,
    ServingCostBody,
    TrainingCostBody,
    OwnershipBody,
    InferenceAwareSizeBody,
    CheckBody,
    FindingRepliesBody,
]


_seen: set[type[Schema]] = set()


def number_fields(field: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every field of a number or an amount under a field or a schema, with where it stands."""
    match field:
        case Schema() if type(field) in _seen:
            return
        case Schema():
            _seen.add(type(field))
            for name, inner in field.fields.items():
                yield from number_fields(inner, f"{path}/{name}")
        case Number() | Whole() | Money() | Exact():
            yield path, field
        case ListOf() | MapOf():
            yield from number_fields(field.inner, f"{path}/*")
        case Section():
            yield from number_fields(field.schema, path)
        case Either():
            yield from number_fields(field.scalar, path)
            yield from number_fields(field.schema, path)
        case Variant():
            for kind, schema in field.kinds.items():
                yield from number_fields(schema, f"{path}[{kind}]")


FIELDS = dict(pair for body in BODIES for pair in number_fields(body(), body.__name__))
each = pytest.mark.parametrize("field", FIELDS.values(), ids=FIELDS)


def limits(field: Any) -> tuple[Any, Any]:
    minimum = 0 if isinstance(field, Money) else field.minimum
    return minimum, field.maximum


def refused(field: Any, value: Any) -> dict[str, Any]:
    with pytest.raises(ValidationError) as refusal:
        field.deserialize(value)
    (error,) = refusal.value.messages
    assert isinstance(error, FieldError)
    return error.as_dict()


def test_there_are_as_many_numbers_as_the_contract_has():
    assert len(FIELDS) > 50


@each
def test_every_number_has_finite_bounds_that_it_takes_itself(field: Any):
    minimum, maximum = limits(field)
    assert -(10**31) < minimum < maximum < 10**31
    for value in (minimum, maximum, Decimal(repr(minimum)), Decimal(repr(maximum))):
        loaded = field.deserialize(value)
        assert loaded == value or math.isclose(loaded, value)


@each
def test_a_number_just_outside_is_refused_with_the_bounds_and_what_was_given(field: Any):
    minimum, maximum = limits(field)
    step = 1 if isinstance(field, Whole) else Decimal("1e-9")
    for value in (
        Decimal(repr(minimum)) - step,
        Decimal(repr(maximum)) * Decimal("1.000001") + step,
    ):
        error = refused(field, value)
        assert error["allowed"] == {"minimum": minimum, "maximum": maximum}
        assert error["given"] == pytest.approx(float(value))


@each
@pytest.mark.parametrize(
    "value", [1e308, -1e308, sys.float_info.max, math.inf, -math.inf, math.nan]
)
def test_a_number_beyond_reason_is_refused(field: Any, value: float):
    with pytest.raises(ValidationError):
        field.deserialize(value)


@each
def test_the_smallest_double_is_refused_unless_zero_is_accepted_too(field: Any):
    if isinstance(field, Number) and field.minimum == 0:
        assert field.deserialize(Decimal("5e-324")) == 5e-324
    else:
        with pytest.raises(ValidationError):
            field.deserialize(Decimal("5e-324"))


@each
def test_negative_zero_is_zero_or_out_of_bounds(field: Any):
    try:
        loaded = field.deserialize(Decimal("-0.0"))
    except ValidationError:
        assert limits(field)[0] > 0
    else:
        assert not str(loaded).startswith("-")
        assert loaded == 0


@each
def test_what_only_looks_like_a_number_is_refused(field: Any):
    values: list[Any] = [True, False, "abc", "", "1e3", "NaN", [], {}, "0x1", "１"]
    for value in values:
        assert refused(field, value)["detail"]


@each
def test_a_numeric_string_is_an_amount_of_money_and_nothing_else(field: Any):
    if isinstance(field, Money):
        assert field.deserialize("12.50") == Decimal("12.50")
    else:
        assert refused(field, "12")["given"] == "12"


@pytest.mark.parametrize("field", [f for f in FIELDS.values() if isinstance(f, Whole)])
def test_a_whole_number_may_be_written_with_a_fraction_of_zero(field: Whole):
    assert field.maximum is not None
    value: int = field.maximum
    loaded = field.deserialize(Decimal(f"{value}.0"))
    assert (loaded, type(loaded)) == (value, int)
    with pytest.raises(ValidationError):
        field.deserialize(Decimal(f"{value - 1}.5"))
