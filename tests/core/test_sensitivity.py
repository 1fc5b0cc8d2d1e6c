"""The tornado of break-even: open ends, ranks, elasticities."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from advisor.core.economics.break_even import break_even
from advisor.core.economics.break_even_inputs import BreakEvenInputs
from advisor.core.economics.sensitivity import sensitivity
from advisor.core.errors import InvalidInput


def ask(**changes: object) -> BreakEvenInputs:
    asked = {
        "training_cost": Decimal(5_576_000),
        "price_per_call": Decimal("0.01"),
        "serving_cost_per_call": Decimal("0.004"),
    } | changes
    return BreakEvenInputs(**asked)  # type: ignore[arg-type]


def test_a_swing_that_never_breaks_even_is_an_open_bar_before_all_others():
    answer = sensitivity(ask(), Fraction("0.6"))
    first = answer.tornado[0]
    assert (first.input, first.open_ended, first.swing) == ("price_per_call", True, None)
    assert (first.low.status, first.low.at) == ("never", None)
    assert first.high.at is not None
    assert [bar.open_ended for bar in answer.tornado] == [True, False, False]
    assert answer.matters_most == "price_per_call"


def test_each_end_is_break_even_with_that_input():
    answer = sensitivity(ask(one_off_cost=Decimal(100_000)), Fraction("0.1"))
    for bar in answer.tornado:
        for end in (bar.low, bar.high):
            changed = break_even(ask(**{"one_off_cost": Decimal(100_000), bar.input: end.value}))
            assert changed.break_even_calls is not None
            assert end.at is not None
            assert changed.break_even_calls - 1 < end.at <= changed.break_even_calls


def test_an_elasticity_is_the_slope_of_the_logarithms():
    answer = sensitivity(ask(fee_share=Fraction("0.1")), Fraction(1, 1000))
    for bar in answer.tornado:
        if bar.elasticity is None:
            continue
        assert bar.low.at is not None
        assert bar.high.at is not None
        assert answer.base is not None
        slope = float((bar.high.at - bar.low.at) / answer.base / (2 * Fraction(1, 1000)))
        assert bar.elasticity == pytest.approx(slope, rel=1e-4)


def test_with_a_rate_of_calls_months_are_compared():
    monthly = ask(calls_per_month=Fraction(10**8), monthly_growth=Fraction("0.05"))
    answer = sensitivity(monthly, Fraction("0.2"))
    assert answer.measure == "months"
    base = break_even(monthly).months
    assert answer.base is not None
    assert float(answer.base) == pytest.approx(base, rel=1e-12)
    names = {bar.input for bar in answer.tornado}
    assert {"calls_per_month", "monthly_growth"} < names


def test_a_value_that_an_input_cannot_have_is_infeasible_and_not_open():
    answer = sensitivity(
        ask(free_share=Fraction("0.6"), serving_cost_per_call=None), Fraction("0.98")
    )
    (bar,) = [bar for bar in answer.tornado if bar.input == "free_share"]
    assert (bar.high.status, bar.high.at, bar.open_ended) == ("infeasible", None, False)


def test_the_largest_and_finest_amounts_can_be_swung():
    finest = Decimal("1.000000000000000000000000000001")
    asked = ask(training_cost=Decimal(10**30), serving_cost_per_call=None, price_per_call=finest)
    for bar in sensitivity(asked, Fraction(1, 5)).tornado:
        given = Fraction(getattr(asked, bar.input))
        assert [Fraction(end.value) for end in (bar.low, bar.high)] == [
            given * Fraction(4, 5), given * Fraction(6, 5)
        ]  # fmt: skip
        assert {bar.low.status, bar.high.status} == {"ok"}


def test_what_never_pays_has_no_base():
    answer = sensitivity(ask(price_per_call=Decimal("0.003")), Fraction("0.2"))
    assert (answer.status, answer.base) == ("never", None)
    assert answer.reason


@pytest.mark.parametrize("swing", [Fraction(0), Fraction(1), Fraction(20)])
def test_a_swing_is_a_share(swing: Fraction):
    with pytest.raises(InvalidInput) as refusal:
        sensitivity(ask(), swing)
    assert [error.pointer for error in refusal.value.errors] == ["/swing"]


def test_where_no_swing_helps_none_matters_most():
    answer = sensitivity(ask(price_per_call=Decimal("0.001")), Fraction("0.1"))
    assert (answer.status, answer.matters_most) == ("never", None)
    assert {end.at for bar in answer.tornado for end in (bar.low, bar.high)} == {None}


def test_the_swing_that_first_gives_a_break_even_matters_most():
    answer = sensitivity(ask(price_per_call=Decimal("0.0039")), Fraction("0.1"))
    assert (answer.status, answer.matters_most) == ("never", "price_per_call")
    assert [bar.input for bar in answer.tornado][-1] == "training_cost"
