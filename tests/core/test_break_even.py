"""Provider break-even against worked examples, brute force and the cases that doubles get wrong."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from advisor.core.economics.break_even import BreakEven, break_even
from advisor.core.economics.break_even_inputs import BreakEvenInputs
from advisor.core.errors import InvalidInput


def solve(
    training_cost: str, price: str, serving_cost: str | None = None, calls: int | None = None
) -> BreakEven:
    cost = None if serving_cost is None else Decimal(serving_cost)
    return break_even(BreakEvenInputs(Decimal(training_cost), Decimal(price), cost, calls))


def test_calls_needed_without_serving_cost_are_the_least_that_cover_training() -> None:
    answer = solve("5576000", "0.01")
    assert (answer.status, answer.reason) == ("ok", None)
    assert answer.break_even_calls == 557_600_000
    assert solve("5576000", "0.01", calls=557_600_000).condition.holds is True
    assert solve("5576000", "0.01", calls=557_599_999).condition.holds is False


def test_serving_cost_raises_the_calls_needed_and_the_plain_figure_stays_beside_it() -> None:
    answer = solve("5576000", "0.01", "0.004")
    assert answer.break_even_calls == 929_333_334
    assert answer.break_even_calls_without_serving_cost == 557_600_000
    assert answer.contribution_per_call == Decimal("0.006")


@pytest.mark.parametrize(
    ("training_cost", "price", "serving_cost", "contribution", "says"),
    [
        ("5576000", "0.004", "0.004", "0", "contribution per call is 0"),
        ("5576000", "0.003", "0.004", "-0.001", "loses 0.001 USD"),
        ("5576000", "0", None, "0", "contribution per call is 0"),
        ("0", "0.003", "0.004", "-0.001", "although 0 <= price x calls always holds"),
    ],
)
def test_a_price_that_does_not_exceed_the_serving_cost_never_breaks_even(
    training_cost: str, price: str, serving_cost: str | None, contribution: str, says: str
) -> None:
    answer = solve(training_cost, price, serving_cost)
    assert answer.status == "never"
    assert answer.break_even_calls is None
    assert answer.contribution_per_call == Decimal(contribution)
    assert answer.reason is not None
    assert says in answer.reason


def test_selling_nothing_below_cost_satisfies_the_condition_yet_is_never_profitable() -> None:
    answer = solve("0", "0.003", "0.004", calls=0)
    assert answer.condition.holds is True
    assert answer.status == "never"
    assert solve("0", "0.003", "0.004", calls=1).condition.holds is False


@pytest.mark.parametrize(("price", "serving_cost"), [("0.01", "0.004"), ("0", "0"), ("0", None)])
def test_a_host_without_training_cost_has_nothing_to_recover(
    price: str, serving_cost: str | None
) -> None:
    answer = solve("0", price, serving_cost)
    assert (answer.status, answer.break_even_calls) == ("ok", 0)
    assert answer.training_cost_applies is False
    assert "no training cost to recover" in str(answer.reason)


def test_training_cost_applies_when_there_is_one() -> None:
    assert solve("5576000", "0.01").training_cost_applies is True


def test_price_needed_spreads_training_over_the_calls_and_adds_the_serving_cost() -> None:
    assert solve("5576000", "0.01", "0.004", 10**9).price_needed == Decimal("0.009576")
    assert solve("5576000", "0.01", calls=10**9).price_needed == Decimal("0.005576")


def test_a_price_needed_that_does_not_terminate_is_rounded_up_so_that_it_covers_training() -> None:
    price = solve("1", "1", calls=3).price_needed
    assert price == Decimal("0.3333333333333333333333333334")
    assert solve("1", str(price), calls=3).condition.holds is True


def test_cost_needed_is_the_serving_cost_at_which_the_calls_just_recover_training() -> None:
    # 0.01 - 5,576,000 / 10^9, the counterpart of the price needed.
    assert solve("5576000", "0.01", "0.006", 10**9).cost_needed == Decimal("0.004424")
    assert solve("5576000", "0.01", calls=10**9).cost_needed == Decimal("0.004424")
    assert solve("5576000", "0.005576", calls=10**9).cost_needed == 0
    answer = solve("5576000", "0.0055", "0.004", 10**9)
    assert answer.cost_needed is None
    assert "even if they cost nothing" in answer.null_reasons["cost_needed"]


def test_price_and_cost_needed_do_recover_it_and_less_does_not() -> None:
    rng = random.Random(31)
    known = 0
    for _ in range(300):
        asked = BreakEvenInputs(
            Decimal(rng.randint(1, 10**9)), Decimal(rng.randint(1, 10**6)).scaleb(-5),
            Decimal(rng.randint(0, 10**6)).scaleb(-6), rng.randint(1, 10**9),
            calls_per_month=Fraction(rng.randint(1, 10**6), 7),
            fixed_cost_per_month=Decimal(rng.choice([0, rng.randint(1, 10**5)])),
            one_off_cost=Decimal(rng.choice([0, 1234])),
            free_share=Fraction(rng.choice([0, 3]), 10),
            fee_share=Fraction(rng.choice([0, 29]), 1000),
        )  # fmt: skip
        found = break_even(asked)
        assert found.price_needed is not None
        ulp = 1 + Decimal(1).scaleb(-26)
        for price, holds in ((found.price_needed, True), (found.price_needed / ulp, False)):
            assert break_even(replace(asked, price_per_call=price)).condition.holds is holds
        if found.cost_needed is None:
            free = replace(asked, serving_cost_per_call=Decimal(0))
            assert break_even(free).condition.holds is False
            continue
        known += 1
        for cost, holds in ((found.cost_needed, True), (found.cost_needed * ulp, False)):
            dearer = replace(asked, serving_cost_per_call=cost)
            assert break_even(dearer).condition.holds is (holds or not cost)
    assert 50 < known < 300


def test_why_it_never_pays_names_the_price_and_the_cost_that_would_help() -> None:
    assert "price of a call has to exceed 0.004 USD" in str(solve("5", "0.003", "0.004").reason)
    assert "its serving cost to be below 0.003." in str(solve("5", "0.003", "0.004").reason)
    assert "no serving cost is low enough" in str(solve("5", "0", "0.004").reason)
    asked = BreakEvenInputs(
        Decimal(5), Decimal("0.01"), Decimal("0.004"), calls_per_month=Fraction(1000),
        fixed_cost_per_month=Decimal(8), free_share=Fraction(1, 5),
    )  # fmt: skip
    # (0.004 + 8 / 1000) / 0.8: at that price the calls of a month pay for it and leave nothing.
    reason = str(break_even(asked).reason)
    assert "has to exceed 0.015 USD: no serving cost" in reason
    assert break_even(replace(asked, price_per_call=Decimal("0.015"))).status == "never"
    assert break_even(replace(asked, price_per_call=Decimal("0.0151"))).status == "ok"


def test_margin_is_over_revenue_and_markup_over_cost() -> None:
    answer = solve("5576000", "0.01", "0.004", 2 * 10**9)
    assert answer.gross_margin == Decimal("0.6")
    assert answer.markup_on_cost == Decimal("1.5")
    assert answer.profit == Decimal(6_424_000)


def test_a_published_day_of_serving_gives_545_percent_markup_and_85_percent_margin() -> None:
    # DeepSeek's open-infra-index, day 6: $562,027 of theoretical income on $87,072 of GPU hours.
    answer = solve("0", "562027", "87072")
    assert float(answer.markup_on_cost or 0) == pytest.approx(5.454738607129732, rel=1e-9)
    assert float(answer.gross_margin or 0) == pytest.approx(0.8450750586715585, rel=1e-9)


def test_no_calls_lose_the_training_cost_and_leave_margins_undefined() -> None:
    answer = solve("5576000", "0.01", "0.004", 0)
    assert answer.profit == Decimal(-5_576_000)
    assert answer.condition.holds is False
    for name in ("gross_margin", "markup_on_cost", "price_needed"):
        assert getattr(answer, name) is None
        assert answer.null_reasons[name] == "calls is 0"


def test_every_figure_that_is_missing_has_its_reason() -> None:
    for answer in (
        solve("5", "0"),
        solve("5", "0", "0"),
        solve("5", "1", "0"),
        solve("5", "0", "1", 7),
        solve("5", "1", "0.5", 0),
    ):
        figures = answer.as_dict()
        absent = {name for name, value in figures.items() if value is None}
        missing = absent - {"reason", "best_price"}
        if answer.status == "never":
            assert answer.reason
        assert missing == set(answer.null_reasons)


def test_an_unknown_serving_cost_is_not_taken_for_a_free_call() -> None:
    unknown, free = solve("5", "1"), solve("5", "1", "0")
    assert unknown.gross_margin is None
    assert free.gross_margin == 1
    assert any("serving cost" in line for line in unknown.not_included)
    assert not any("serving cost" in line for line in free.not_included)


def test_the_condition_reads_as_the_sum_with_its_figures() -> None:
    assert solve("5576000", "0.01").condition.expression == "5576000 <= 0.01 x calls"
    assert solve("5576000", "0.01").condition.holds is None
    with_cost = solve("5576000", "0.01", "0.004", 10**9).condition
    assert with_cost.expression == "5576000 <= (0.01 - 0.004) x 1000000000 = 6000000"
    assert with_cost.holds is True
    monthly = BreakEvenInputs(
        Decimal(5_576_000), Decimal("0.01"), Decimal("0.004"), 10**9,
        calls_per_month=Fraction(10**8), fixed_cost_per_month=Decimal(30_000),
    )  # fmt: skip
    condition = break_even(monthly).condition
    expected = "5576000 <= (0.01 - 0.004) x 1000000000 - 30000 x months = 5700000"
    assert (condition.expression, condition.holds) == (expected, True)


def test_calls_above_2_to_the_53_are_exact_and_leave_as_strings() -> None:
    answer = solve("1000000000000000", "0.000000000001", "0", calls=2**53)
    assert answer.break_even_calls == 10**27
    body = answer.as_dict()
    assert body["break_even_calls"] == "1000000000000000000000000000"
    assert answer.condition.expression.startswith("1000000000000000 <= (0.000000000001 - 0) x ")
    assert solve(str(2**53), "1").as_dict()["break_even_calls"] == 2**53
    assert solve(str(2**53 + 1), "1").as_dict()["break_even_calls"] == str(2**53 + 1)


def test_a_case_that_binary_floats_round_to_51_gives_50() -> None:
    assert math.ceil(1 / (0.03 - 0.01)) == 51
    assert solve("1", "0.03", "0.01").break_even_calls == 50


def test_equality_counts_where_binary_floats_deny_it() -> None:
    assert not 57 <= 0.57 * 100
    assert solve("57", "0.57", calls=100).condition.holds is True


def test_calls_needed_equal_integer_arithmetic_in_cents() -> None:
    rng = random.Random(20_26)
    floats_wrong = 0
    for _ in range(5_000):
        training_cost, price = rng.randint(1, 199), rng.randint(2, 99)
        cost = rng.randint(1, price - 1)
        answer = solve(str(training_cost), f"{price / 100:.2f}", f"{cost / 100:.2f}")
        least = -(-training_cost * 100 // (price - cost))
        assert answer.break_even_calls == least
        floats_wrong += math.ceil(training_cost / (price / 100 - cost / 100)) != least
    assert floats_wrong > 0, "the sample must hold cases that binary floats get wrong"


def test_calls_needed_are_the_least_that_cover_training_whatever_the_number_of_decimals() -> None:
    rng = random.Random(7)
    for _ in range(500):
        training_cost = Decimal(rng.randint(1, 10**12)).scaleb(-rng.randint(0, 12))
        price = Decimal(rng.randint(2, 10**9)).scaleb(-rng.randint(0, 20))
        cost = price * Decimal(rng.randint(0, 99)) / 100
        calls = break_even(BreakEvenInputs(training_cost, price, cost)).break_even_calls
        assert calls is not None
        contribution = Fraction(price) - Fraction(cost)
        assert contribution * (calls - 1) < Fraction(training_cost) <= contribution * calls


def test_scaling_all_money_leaves_the_calls_needed_unchanged() -> None:
    assert (
        solve("5576000", "0.01", "0.004").break_even_calls
        == solve("83640", "0.00015", "0.00006").break_even_calls
    )


def test_the_answer_is_json_with_plain_decimals() -> None:
    answer = solve("1E+6", "1E-10", "0.0", calls=10**20)
    body = json.loads(json.dumps(answer.as_dict(), allow_nan=False))
    assert body["profit"] == "9999000000"
    assert body["contribution_per_call"] == "0.0000000001"
    assert body["price_needed"] == "0.00000000000001"
    assert body["currency"] == "USD"
    assert body["condition"]["holds"] is True
    assert body["not_included"]


def test_inputs_are_echoed_with_the_defaults_filled_in() -> None:
    assert BreakEvenInputs(Decimal("5E+3"), Decimal("0.010")).as_dict() == {
        "training_cost": "5000",
        "price_per_call": "0.01",
        "serving_cost_per_call": None,
        "calls": None,
        "calls_per_month": None,
        "fixed_cost_per_month": "0",
        "one_off_cost": "0",
        "free_share": 0,
        "fee_share": 0,
        "monthly_growth": 0,
        "price_decline_per_month": 0,
        "cost_decline_per_month": 0,
        "annual_discount_rate": 0,
        "horizon_months": None,
        "price_elasticity": None,
        "currency": "USD",
    }


def test_profit_of_the_largest_and_finest_figures_is_exact() -> None:
    largest, finest = Decimal("1e30"), Decimal("1e-30")
    answer = break_even(BreakEvenInputs(finest, largest, finest, 10**30))
    assert answer.profit is not None
    assert Fraction(answer.profit) == 10**60 - 1 - Fraction(1, 10**30)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"training_cost": Decimal(-1)}, "/training_cost"),
        ({"training_cost": Decimal("Infinity")}, "/training_cost"),
        ({"price_per_call": Decimal("NaN")}, "/price_per_call"),
        ({"price_per_call": Decimal("1e999")}, "/price_per_call"),
        ({"serving_cost_per_call": Decimal("5e-324")}, "/serving_cost_per_call"),
        ({"calls": -1}, "/calls"),
        ({"training_cost": Decimal("1." + "3" * 5000)}, "/training_cost"),
        ({"calls": 10**30 + 1}, "/calls"),
        ({"calls": 10**5000}, "/calls"),
        ({"calls": True}, "/calls"),
        ({"currency": "usd"}, "/currency"),
        (
            {"calls_per_month": Fraction(1), "cost_decline_per_month": Fraction(1, 10)},
            "/serving_cost_per_call",
        ),
    ],
)
def test_a_figure_out_of_its_domain_is_refused_by_name(
    change: dict[str, Any], pointer: str
) -> None:
    inputs = {"training_cost": Decimal(1), "price_per_call": Decimal(1)} | change
    with pytest.raises(InvalidInput) as refusal:
        BreakEvenInputs(**inputs)
    assert [error.pointer for error in refusal.value.errors] == [pointer]
