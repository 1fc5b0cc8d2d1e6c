"""Payback in time: closed forms, worked examples, and brute force over months in fractions."""

from __future__ import annotations

import random
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from operator import ge, le

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.economics.break_even import break_even
from advisor.core.economics.break_even_inputs import BreakEvenInputs
from advisor.core.economics.cash_flow import LONGEST_HORIZON_MONTHS, CashFlow, monthly_rate
from advisor.core.economics.demand import calls_ever_sold, calls_sold
from advisor.core.economics.present_value import monthly_irr, net_present_value
from advisor.core.errors import InvalidInput
from tests.core.economics_examples import close, example
from tests.core.strategies import examples

TRAINING = Fraction(5_576_000)


def flow(calls: int, growth: str = "0", price: str = "0", cost: str = "0", **more: str) -> CashFlow:
    """Calls at 0.01 that cost 0.004 to serve."""
    return CashFlow(
        revenue=Fraction(calls) / 100,
        serving_cost=Fraction(calls) * 4 / 1000,
        growth=Fraction(growth),
        price_decline=Fraction(price),
        cost_decline=Fraction(cost),
        **{name: Fraction(value) for name, value in more.items()},
    )


def test_calls_of_growing_demand():
    sold, expected = example("B2")
    first, growth = Fraction(sold["first_month_calls"]), Fraction("0.1")
    for months in (14, 15):
        reached = calls_sold(first, growth, Decimal(months))
        assert float(reached) == close(expected[f"cumulative_after_{months}"])
    assert calls_sold(first, Fraction(0), Decimal("2.5")) == 75_000_000


def test_shrinking_demand_has_a_bound_that_decides():
    assert calls_ever_sold(Fraction(100), Fraction(-1, 10)) == 1000
    assert calls_ever_sold(Fraction(100), Fraction(0)) is None
    within = flow(10_000_000, growth="-0.01").payback(TRAINING)
    assert within.status == "ok"
    beyond = flow(9_000_000, growth="-0.01").payback(TRAINING)
    assert beyond.status == "never"


def test_a_price_that_falls_below_a_cost_that_does_not_never_pays():
    # Published: with -5 % a month the best ever is $1.457M at month 18.
    falling = flow(30_000_000, price="0.05")
    assert falling.payback(TRAINING).status == "never"
    recovered = {month: falling.recovered(Decimal(month)) for month in range(1, 40)}
    best = max(recovered, key=lambda month: recovered[month])
    assert (best, round(float(recovered[best]) / 1e6, 3)) == (18, 1.457)


def test_a_cost_that_falls_too_pays_in_time():
    # Published: with the cost at -3 % a month and 100M calls, month 14.
    assert flow(100_000_000, price="0.05", cost="0.03").payback(TRAINING).whole_months == 14


def test_a_monthly_rate_compounds_to_the_annual_one():
    asked, expected = example("B5")
    rate = monthly_rate(Fraction(str(asked["annual_discount_rate"])))
    assert float(rate) == close(expected["monthly_rate"])


def test_a_perpetuity_that_is_worth_less_than_the_cost_never_pays():
    asked, expected = example("B6")
    forever = CashFlow(Fraction(60_000), Fraction(0), annual_discount_rate=Fraction("0.15"))
    bound = Fraction(str(expected["perpetuity_value"]))
    # A little below the perpetuity it pays after the horizon, a little above it never does.
    assert forever.payback(bound * 999_999 / 10**6).status == "not_within_horizon"
    assert forever.payback(bound * 1_000_001 / 10**6).status == "never"
    assert float(bound) < asked["T"]


def test_never_and_not_within_the_horizon_differ():
    slow = flow(1_000_000)
    assert slow.payback(TRAINING).status == "not_within_horizon"
    assert slow.payback(Fraction(3_600_000)).whole_months == LONGEST_HORIZON_MONTHS
    assert slow.payback(TRAINING, 12).status == "not_within_horizon"
    assert flow(1_000_000, fixed_cost="6000").payback(TRAINING).status == "never"
    late = CashFlow(
        Fraction(1), Fraction(2), growth=Fraction("0.01"), cost_decline=Fraction("0.01")
    )
    assert late.payback(Fraction(1000)).status == "ok"
    assert late.payback(Fraction(1000), 100).status == "not_within_horizon"


def test_without_a_cost_it_is_paid_at_once_unless_the_first_months_lose_money():
    assert flow(10).payback(Fraction(0)).months == 0
    assert CashFlow(Fraction(1), Fraction(2)).payback(Fraction(0)).status == "never"
    growing = CashFlow(Fraction(10), Fraction(4), Fraction(8), growth=Fraction("0.1"))
    assert growing.payback(Fraction(0)).whole_months == brute_force(growing, Fraction(0))


def brute_force(stream: CashFlow, cost: Fraction, horizon: int = 60) -> int | None:
    """The first month at whose end the money is back, month by month, exact to 200 digits."""
    with localcontext() as context:
        context.prec = 200
        total, revenue, serving, fixed, up, down, cheaper = (
            Decimal(each.numerator) / each.denominator
            for each in (
                -cost, stream.revenue, stream.serving_cost, stream.fixed_cost, 1 + stream.growth,
                1 - stream.price_decline, 1 - stream.cost_decline,
            )
        )  # fmt: skip
        for month in range(1, horizon + 1):
            total += revenue - serving - fixed
            if total >= 0:
                return month
            revenue *= up * down
            serving *= up * cheaper
    return None


def test_whole_months_equal_brute_force():
    rng = random.Random(6)
    percent = [Fraction(each, 100) for each in range(-5, 8)]
    paid = never = 0
    for _ in range(400):
        stream = CashFlow(
            Fraction(rng.randint(1, 2000)), Fraction(rng.randint(0, 1000)),
            Fraction(rng.choice([0, 0, 50, 200])), growth=rng.choice(percent),
            price_decline=rng.choice(percent), cost_decline=rng.choice(percent),
        )  # fmt: skip
        cost = Fraction(rng.randint(1, 20_000))
        found = stream.payback(cost, 60)
        assert found.whole_months == brute_force(stream, cost)
        if found.months is not None:
            paid += 1
            assert found.whole_months is not None
            assert found.whole_months - 1 < found.months <= found.whole_months
            assert float(stream.recovered(found.months)) == pytest.approx(float(cost), rel=1e-9)
        elif found.status == "never":
            never += 1
            assert brute_force(stream, cost, 1500) is None
    assert min(paid, never) > 50


def test_present_value_and_the_rate_at_which_it_is_zero():
    asked, expected = example("B7")
    stream = CashFlow(
        Fraction(asked["monthly_contribution"]), Fraction(0),
        annual_discount_rate=Fraction(str(asked["annual_discount_rate"])),
    )  # fmt: skip
    npv = net_present_value(stream, Fraction(asked["T"]), asked["months"])
    assert float(npv) == close(expected["npv"])
    assert float(monthly_irr(stream, Fraction(asked["T"]), 12)) == close(expected["monthly_irr"])


def test_no_one_rate_is_given_where_several_would_do():
    stream = flow(100_000_000, price="0.05")
    assert "several rates" in str(monthly_irr(stream, Fraction(1000), 40))
    assert "same sign" in str(monthly_irr(CashFlow(Fraction(0), Fraction(1)), Fraction(1), 5))


def test_a_stream_that_just_returns_its_cost_earns_nothing():
    for months in (20, 37):
        stream = CashFlow(Fraction(5), Fraction(0))
        assert monthly_irr(stream, Fraction(5 * months), months) == 0


def test_the_rate_is_as_precise_for_any_size_of_the_cost():
    for cost, revenue in ((Fraction(1, 10**30), 10**60), (Fraction(10**30), Fraction(1, 10**30))):
        rate = monthly_irr(CashFlow(Fraction(revenue), Fraction(0)), cost, 1)
        assert float(rate) == close(revenue / cost - 1)


def ask(**changes: object) -> BreakEvenInputs:
    asked = {
        "training_cost": Decimal(5_576_000),
        "price_per_call": Decimal("0.01"),
        "serving_cost_per_call": Decimal("0.004"),
        "calls_per_month": Fraction(100_000_000),
    } | changes
    return BreakEvenInputs(**asked)  # type: ignore[arg-type]


def test_free_calls_and_fees_take_from_the_price():
    free = break_even(ask(free_share=Fraction("0.3")))
    assert free.break_even_calls == 1_858_666_667  # published beside the examples
    fee = break_even(ask(fee_share=Fraction("0.3")))
    assert fee.break_even_calls == free.break_even_calls
    assert free.contribution_per_call == Decimal("0.003")


def test_what_changes_over_time_needs_a_rate_of_calls():
    with pytest.raises(InvalidInput) as refusal:
        ask(calls_per_month=None, monthly_growth=Fraction("0.1"))
    assert [error.pointer for error in refusal.value.errors] == ["/calls_per_month"]


def test_a_vanishing_discount_changes_nothing():
    plain = break_even(ask()).months
    discounted = break_even(ask(annual_discount_rate=Fraction(1, 10**12))).months
    assert discounted == pytest.approx(plain, rel=1e-9)


def test_where_prices_change_figures_of_a_number_of_calls_are_not_guessed():
    answer = break_even(ask(price_decline_per_month=Fraction("0.01"), calls=10**9))
    for name in ("profit", "revenue", "price_needed", "roi_on_training"):
        assert getattr(answer, name) is None
        assert "when it is sold" in answer.null_reasons[name]
    assert answer.condition.holds is None
    assert answer.condition_without_serving_cost.holds is True


def test_what_declines_from_nothing_changes_nothing():
    steady = ask(serving_cost_per_call=Decimal(0), calls=10**9)
    falling = replace(steady, cost_decline_per_month=Fraction("0.05"))
    assert break_even(falling) == break_even(steady)


money = st.decimals("0.001", "1000", places=3)
rates = st.fractions(Fraction(-1, 20), Fraction(1, 10), max_denominator=200)


@examples(80)
@given(cost=money, price=money, serving=money, more=st.decimals("0.001", "10", places=3),
       growth=rates, decline=rates, discount=st.fractions(0, 1, max_denominator=50))  # fmt: skip
def test_payback_is_no_sooner_at_a_higher_cost_and_no_later_at_a_higher_price(
    cost: Decimal, price: Decimal, serving: Decimal, more: Decimal, growth: Fraction,
    decline: Fraction, discount: Fraction,
):  # fmt: skip
    def months(**changes: Decimal) -> tuple[float, float]:
        asked = {"training_cost": cost * 100, "price_per_call": price,
                 "serving_cost_per_call": serving} | changes  # fmt: skip
        answer = break_even(
            ask(**asked, calls_per_month=Fraction(10), monthly_growth=growth,
                price_decline_per_month=decline, annual_discount_rate=discount)
        )  # fmt: skip
        never = float("inf")
        calls = answer.break_even_calls
        return (
            never if answer.months is None else answer.months,
            never if calls is None or answer.months is None else calls,
        )

    base = months()
    for dearer in (
        months(training_cost=cost * 100 + more),
        months(serving_cost_per_call=serving + more),
    ):
        assert all(map(ge, dearer, base))
    assert all(map(le, months(price_per_call=price + more), base))


@examples(200)
@given(cost=money, price=money, serving=money, more=money)
def test_calls_needed_are_monotone_in_cost_price_and_serving_cost(
    cost: Decimal, price: Decimal, serving: Decimal, more: Decimal
):
    def calls(cost: Decimal, price: Decimal, serving: Decimal) -> float:
        found = break_even(BreakEvenInputs(cost, price, serving)).break_even_calls
        return float("inf") if found is None else found

    base = calls(cost, price, serving)
    assert calls(cost + more, price, serving) >= base
    assert calls(cost, price, serving + more) >= base
    assert calls(cost, price + more, serving) <= base
