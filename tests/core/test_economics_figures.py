"""Costs, prices and currencies against worked examples, and calculators known to be wrong."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from advisor.core.economics.currency import ExchangeRate, converted
from advisor.core.economics.ownership import HOURS_PER_YEAR, OwnershipInputs, ownership
from advisor.core.economics.planned import HOURS_PER_MONTH
from advisor.core.economics.pricing import Demand, best_price
from advisor.core.economics.purchase import reserved_pays_from
from advisor.core.economics.serving_cost import ServingCostInputs, serving_cost
from advisor.core.economics.training import TrainingInputs, training_cost
from advisor.core.errors import InvalidInput
from tests.core.economics_examples import close, example


def own(**changes: Any) -> ServingCostInputs:
    asked: dict[str, Any] = {
        "accelerator_hour_price": Decimal("2.5"),
        "accelerators": 1,
        "output_tokens_per_s": Fraction(1000),
        "utilization": Fraction(1),
    } | changes
    return ServingCostInputs(**asked)


# Serving


def test_utilization_divides_the_tokens_and_never_multiplies_the_bill():
    # Two public calculators multiply the bill: at 30 % they call a token cheaper than at full use.
    full = serving_cost(own()).per_million_output_tokens
    idle = serving_cost(own(utilization=Fraction(3, 10))).per_million_output_tokens
    assert float(idle) == pytest.approx(float(full) / 0.3)
    assert idle > full


def test_where_idle_hours_are_not_billed_utilization_makes_no_token_dearer():
    answer = serving_cost(own(utilization=Fraction(1, 10), billing="scale_to_zero"))
    full = serving_cost(own())
    assert answer.per_million_output_tokens == full.per_million_output_tokens
    assert answer.per_hour == full.per_hour / 10


def test_three_busy_hours_and_six_cold_starts_a_day():
    # Published beside the examples: $8.75 a day against $60.
    answer = serving_cost(
        own(utilization=Fraction(3, 24), billing="scale_to_zero", cold_starts_per_day=Fraction(6),
            cold_start_minutes=Fraction(5))
    )  # fmt: skip
    assert float(answer.per_hour) * 24 == pytest.approx(8.75)
    assert serving_cost(own()).per_hour * 24 == 60


def test_parts_of_the_bill_add_up_to_it():
    asked = own(
        input_tokens_per_s=Fraction(5000), cached_input_tokens_per_s=Fraction(700),
        output_to_input_cost_ratio=Fraction(4), cached_to_input_cost_ratio=Fraction(1, 10),
        utilization=Fraction(1, 2),
    )  # fmt: skip
    answer = serving_cost(asked)
    assert answer.per_million_input_tokens is not None
    assert answer.per_million_cached_input_tokens is not None
    parts = (
        (answer.per_million_output_tokens, 1000),
        (answer.per_million_input_tokens, 5000),
        (answer.per_million_cached_input_tokens, 700),
    )
    hourly = sum(float(price) * rate * 0.5 * 3600 / 1e6 for price, rate in parts)
    assert hourly == pytest.approx(2.5)
    # c_in = price per hour x 1e6 / (3600 (in + j cached + k out)), at half use twice that.
    assert float(answer.per_million_input_tokens) == pytest.approx(
        2 * 2.5e6 / (3600 * (5000 + 0.1 * 700 + 4 * 1000))
    )
    ratio = answer.per_million_output_tokens / answer.per_million_input_tokens
    assert float(ratio) == pytest.approx(4)


def test_without_a_ratio_an_input_token_has_no_price_rather_than_none():
    answer = serving_cost(own(input_tokens_per_s=Fraction(5000)))
    assert answer.per_million_input_tokens is None
    assert "output_to_input_cost_ratio" in answer.null_reasons["per_million_input_tokens"]


@pytest.mark.parametrize(("new", "cached"), [(750, 250), (0, 1000), (1000, 0)])
def test_parts_by_the_time_of_steps_add_up_whatever_is_cached(new: int, cached: int):
    rates = {"input": new, "cached_input": cached, "output": 1000}
    answer = serving_cost(
        own(input_tokens_per_s=Fraction(new), cached_input_tokens_per_s=Fraction(cached),
            prefill_time_share=Fraction(1, 8))
    )  # fmt: skip
    prices = {kind: getattr(answer, f"per_million_{kind}_tokens") for kind in rates}
    hourly = sum(Fraction(prices[kind] or 0) * rate * 3600 / 10**6 for kind, rate in rates.items())
    assert float(hourly) == pytest.approx(2.5, rel=1e-20)


def test_a_speed_up_divides_the_cost():
    given, expected = example("I2")
    price = Decimal(str(given["usd_h"]))
    old, new = (
        serving_cost(own(accelerator_hour_price=price, output_tokens_per_s=Fraction(rate)))
        for rate in (given["tps_old"], given["tps_old"] * Fraction("1.8"))
    )
    assert float(old.per_million_output_tokens) == close(expected["old"])
    assert float(new.per_million_output_tokens) == close(expected["new"])
    ratio = new.per_million_output_tokens / old.per_million_output_tokens
    assert float(ratio) == close(expected["cost_ratio"])


def test_a_duty_cycle_explains_a_price_26_times_higher():
    given, expected = example("J1")
    share = Fraction(str(expected["implied_relative_utilisation"]))
    full, idle = (serving_cost(own(utilization=u)) for u in (Fraction(1), share))
    ratio = idle.per_million_output_tokens / full.per_million_output_tokens
    assert float(ratio) == close(given["at_duty_cycle_per_mtok"])


@pytest.mark.parametrize("wrong", [0, 60, Fraction(101, 100), -1])
def test_a_utilization_in_percent_is_refused_with_a_hint(wrong: Any):
    with pytest.raises(InvalidInput) as refusal:
        own(utilization=Fraction(wrong))
    (error,) = refusal.value.errors
    assert error.pointer == "/utilization"
    assert "60 % is written 0.6" in error.detail


def test_what_is_always_on_has_no_cold_starts():
    with pytest.raises(InvalidInput) as refusal:
        own(cold_starts_per_day=Fraction(6))
    assert [error.pointer for error in refusal.value.errors] == ["/cold_starts_per_day"]


# Buying and owning


def test_a_reservation_pays_from_its_price_over_that_on_demand():
    # Google Cloud H100, 2025-03-17: 11.06 on demand, 7.67 for a year, 4.86 for three.
    on_demand = Decimal("11.06")
    year, three = (reserved_pays_from(Decimal(p), on_demand) for p in ("7.67", "4.86"))
    assert year is not None
    assert three is not None
    assert float(year) == pytest.approx(0.693, abs=5e-4)
    assert float(three) == pytest.approx(0.439, abs=5e-4)
    assert reserved_pays_from(Decimal(12), on_demand) is None


def owned(**changes: Any) -> OwnershipInputs:
    given = example("D5_")[0]
    asked: dict[str, Any] = {
        "capex": Decimal(str(given["capex_per_gpu"])),
        "life_years": Fraction(given["life_years"]),
        "price_per_kwh": Decimal(str(given["usd_per_kwh"])),
        "power_kw": Fraction(str(given["all_in_kw"])),
    } | changes
    return OwnershipInputs(**asked)


def test_useful_life_is_a_strong_lever():
    # Published beside the examples: 1.425, 1.103, 0.910 and 0.782 for 3 to 6 years.
    for years, expected in ((3, 1.425), (4, 1.103), (5, 0.910), (6, 0.782)):
        answer = ownership(owned(life_years=Fraction(years)))
        assert float(answer.per_hour) == pytest.approx(expected, abs=5e-4)


def test_an_annuity_pays_for_the_hardware_year_by_year():
    residual, rate, years = Fraction(1, 5), Fraction(1, 10), 4
    asked = owned(residual_share=residual, cost_of_capital=rate)
    annuity = Fraction(ownership(asked).by_part["capital"]) * HOURS_PER_YEAR
    debt = Fraction(asked.capex)
    for _ in range(years):
        debt = debt * (1 + rate) - annuity
    assert float(debt) == pytest.approx(float(Fraction(asked.capex) * residual), rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"life_years": Fraction(0)}, "/life_years"),
        ({"residual_share": Fraction(3, 2)}, "/residual_share"),
        ({"power_kw": None}, "/power_kw"),
        ({"load": Fraction(1, 2)}, "/load"),
        ({"power_kw": None, "tdp_w": Fraction(700), "load": Fraction(1, 2),
          "pue": Fraction(9, 10)}, "/pue"),
        ({"power_kw": None, "tdp_w": Fraction(700), "load": Fraction(1, 2)}, "/pue"),
        ({"cost_of_capital": Fraction(-1)}, "/cost_of_capital"),
    ],
)  # fmt: skip
def test_hardware_that_cannot_be_is_refused(changes: dict[str, Any], pointer: str):
    with pytest.raises(InvalidInput) as refusal:
        owned(**changes)
    assert [error.pointer for error in refusal.value.errors] == [pointer]


# Training


def run(**changes: Any) -> TrainingInputs:
    asked: dict[str, Any] = {
        "parameters_active": Fraction(8 * 10**9),
        "tokens": Fraction(15 * 10**12),
        "peak_tflops": Fraction("989.4"),
        "price_per_hour": Decimal("2.5"),
    } | changes
    return TrainingInputs(**asked)


def test_the_band_of_utilization_holds_the_cost():
    for mfu in (None, Fraction(1, 10), Fraction(3, 10), Fraction(1, 2)):
        answer = training_cost(run(mfu=mfu))
        low, high = answer.cost_range
        assert low <= answer.cost <= high
    typical = training_cost(run())
    assert typical.implied_mfu == 0.28
    assert float(typical.cost_range[1] / typical.cost_range[0]) == pytest.approx(0.37 / 0.24)


def test_hours_that_are_known_leave_no_range():
    # Llama 3 8B took 1.3 million H100-hours: an MFU of 0.155 and $3.25M.
    answer = training_cost(run(accelerator_hours=Fraction(1_300_000)))
    assert answer.cost == Decimal(3_250_000) == answer.cost_range[0] == answer.cost_range[1]
    assert answer.implied_mfu == pytest.approx(0.155, abs=1e-3)


def test_the_whole_is_the_final_run_times_its_multiplier():
    answer = training_cost(run(overhead_multiplier=Fraction(3)))
    assert float(answer.cost / answer.final_run_cost) == pytest.approx(3, rel=1e-15)


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"mfu": Fraction(11, 10)}, "/mfu"),
        ({"mfu": Fraction(0)}, "/mfu"),
        ({"accelerator_hours": Fraction(1)}, "/accelerator_hours"),
        ({"mfu": Fraction(1, 2), "accelerator_hours": Fraction(10**7)}, "/mfu"),
        ({"num_layers": 32}, "/hidden_size"),
        ({"overhead_multiplier": Fraction(1, 2)}, "/overhead_multiplier"),
    ],
)
def test_a_run_that_cannot_be_is_refused(changes: dict[str, Any], pointer: str):
    with pytest.raises(InvalidInput) as refusal:
        run(**changes)
    assert [error.pointer for error in refusal.value.errors] == [pointer]


# Prices and currencies


def test_profit_is_highest_where_elasticity_says_whatever_training_cost():
    given, expected = example("H2")
    elasticity, cost = Fraction(str(given["elasticity"])), Fraction(str(given["c"]))
    demand = Demand(Fraction("0.01"), Fraction(given["N_at_0_01"]), elasticity)
    profits = {}
    for price, values in expected.items():
        calls = demand.at(Fraction(price))
        assert float(calls) == close(values["N"])
        profits[price] = float((Fraction(price) - cost) * calls) - given["T"]
        assert profits[price] == close(values["profit_after_T"])
    best = best_price(demand, cost, Fraction(given["T"]))
    assert best.price_per_call == Decimal("0.009")
    assert max(profits, key=lambda price: profits[price]) == "0.009"
    assert best_price(demand, cost, Fraction(0)).price_per_call == best.price_per_call
    assert float(best.profit or 0) == close(expected["0.009"]["profit_after_T"])


def test_fees_raise_the_best_price_and_profit_is_still_highest_there():
    demand, cost, kept = (
        Demand(Fraction(1), Fraction(1000), Fraction(2)),
        Fraction(1, 4),
        Fraction(4, 5),
    )
    best = best_price(demand, cost, Fraction(0), kept)
    assert best.price_per_call is not None
    at = Fraction(best.price_per_call)

    def profit(price: Fraction) -> Fraction:
        return (price * kept - cost) * demand.at(price)

    assert float(profit(at)) == pytest.approx(float(best.profit or 0))
    assert profit(at) > max(profit(at * Fraction(99, 100)), profit(at * Fraction(101, 100)))


def test_demand_that_does_not_mind_the_price_has_no_best_one():
    demand = Demand(Fraction(1), Fraction(1000), Fraction(1))
    answer = best_price(demand, Fraction(1, 4), Fraction(0))
    assert (answer.status, answer.price_per_call) == ("unbounded", None)
    assert answer.reason


def test_currencies_mix_at_a_dated_rate_only():
    given, expected = example("K1")
    amount = Decimal(str(given["amount_eur"]))
    rate = ExchangeRate("EUR", "USD", Decimal(str(given["rate_usd_per_eur"])), "2025-03-17")
    assert float(converted(amount, "EUR", "USD", rate, "/plan_id")) == close(expected["usd"])
    for wrong in (None, ExchangeRate("USD", "EUR", rate.rate, rate.as_of)):
        with pytest.raises(InvalidInput) as refusal:
            converted(amount, "EUR", "USD", wrong, "/plan_id")
        assert [error.pointer for error in refusal.value.errors] == ["/plan_id"]
    assert converted(amount, "EUR", "EUR", None, "/plan_id") == amount


def test_a_month_has_730_hours():
    assert example("K2")[1]["hours_730"] == HOURS_PER_MONTH == HOURS_PER_YEAR / 12
