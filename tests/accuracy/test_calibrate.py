"""The fit finds a coefficient again that the rows were made with, and writes it down."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import pytest

from advisor.accuracy import calibrate
from advisor.accuracy.rows import rows
from advisor.accuracy.simulated import simulated
from advisor.core.coefficients import changed, table

KEY = ("bandwidth_efficiency", "hopper")


@pytest.fixture
def one_key(monkeypatch):
    monkeypatch.setattr(calibrate, "fitted_keys", lambda: (KEY,))


def made_with(value):
    """A few closed loops of one dense model, "measured" where the coefficient has this value."""
    few = [
        row for row in rows()
        if row.device == "h100-sxm-80gb" and row.kind == "dense" and row.engine == "vllm"
        and row.load == "fixed_concurrency" and (row.concurrency or 99) <= 16
    ][:4]  # fmt: skip
    assert len(few) >= 3
    with changed({KEY: value}):
        return [
            replace(row, measured={"tpot_mean_ms": simulated(row)["tpot_mean_ms"]}) for row in few
        ]


@pytest.mark.usefixtures("one_key")
@pytest.mark.parametrize("value", [0.7, 0.9])
def test_a_step_goes_a_good_part_of_the_way_to_the_value_that_made_the_rows_and_rests_there(
    value, monkeypatch
):
    monkeypatch.setattr(calibrate, "_SPREAD", 100)
    made = made_with(value)
    first = calibrate.fit(made, workers=1)
    stated, found = first.stated[KEY], first.improved()[KEY]
    assert 0.4 < (found - stated) / (value - stated) < 1.6
    rest = calibrate.fit(made, {KEY: value}, workers=1).improved()[KEY]
    assert rest == pytest.approx(value, abs=1e-4)


@pytest.mark.usefixtures("one_key")
@pytest.mark.parametrize("value", [0.6, 0.9])
def test_few_rows_leave_a_coefficient_between_what_made_them_and_the_wider_one(value):
    wider = table("coefficients.toml")[KEY[0]]["default"]
    rest = calibrate.fit(made_with(value), {KEY: value}, workers=1).improved()[KEY]
    low, high = sorted((wider, value))
    assert low + 0.01 < rest < high - 0.01


@pytest.mark.usefixtures("one_key")
def test_rows_that_are_hidden_do_not_move_a_coefficient():
    made = made_with(0.7)
    found = calibrate.fit(made, {KEY: 0.7}, workers=1)
    wider = table("coefficients.toml")[KEY[0]]["default"]
    none, few, all_but_one = (
        found.without({row.id for row in hidden})[KEY] for hidden in (made[:0], made[:1], made[1:])
    )
    assert none == pytest.approx(0.7)
    assert 0.7 < few < all_but_one < wider


def test_every_fitted_value_is_written_in_its_place_and_no_other_changes():
    stated = {key: calibrate._stated(key) for key in calibrate.fitted_keys()}
    text = calibrate.rewritten({key: value * 1.5 for key, value in stated.items()})
    before, after = table("coefficients.toml"), tomllib.loads(text)
    for name, entry in after.items():
        kept = {"default": entry["default"], **entry.get("values", {})}
        for key, value in kept.items():
            was = stated.get((name, key))
            if was is None:
                was_kept = {"default": before[name]["default"], **before[name].get("values", {})}
                assert value == was_kept[key]
            else:
                assert value == pytest.approx(was * 1.5, rel=0.05)


@pytest.mark.parametrize(
    ("name", "key", "wider"),
    [
        ("expert_gemm_factor", "vllm/hopper/mxfp4", "mxfp4"),
        ("expert_gemm_factor", "cdna4/fp8_block", "fp8_block"),
        ("expert_gemm_factor", "mxfp4", "default"),
        ("moe_layer_overhead_us", "vllm/hopper", "vllm"),
        ("bandwidth_efficiency", "hopper", "default"),
        ("bandwidth_efficiency", "default", "default"),
    ],
)
def test_each_key_has_a_wider_one_that_would_hold_without_it(name, key, wider):
    assert calibrate.wider_key(name, key) == wider


def test_without_a_row_of_its_own_a_coefficient_becomes_as_the_wider_one(monkeypatch):
    own, wider = ("bandwidth_efficiency", "hopper"), ("bandwidth_efficiency", "default")
    monkeypatch.setattr(calibrate, "fitted_keys", lambda: (own, wider))
    monkeypatch.setattr(calibrate, "_LONGEST_STEP", 10)
    rested = {own: 0.9}
    for _ in range(6):
        found = calibrate.fit(made_with(0.9), rested, workers=1)
        rested = found.improved()
    nothing = found.without({each.row.id for each in found.residuals})
    assert rested[own] > nothing[own] + 0.02
    assert nothing[own] == pytest.approx(nothing[wider], abs=1e-3)
    assert nothing[wider] == pytest.approx(found.stated[wider], abs=1e-3)


def test_a_coefficient_moves_no_row_that_does_not_use_it(monkeypatch):
    keys = (KEY, ("bandwidth_efficiency", "cdna3"), ("expert_gemm_factor", "vllm/hopper/mxfp4"))
    monkeypatch.setattr(calibrate, "fitted_keys", lambda: keys)
    slopes = calibrate.fit(made_with(0.8), workers=1).slopes
    assert (slopes[:, 0] < 0).all()
    assert (slopes[:, 1:] == 0).all()
