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
def test_a_step_goes_a_good_part_of_the_way_to_the_value_that_made_the_rows_and_rests_there(value):
    made = made_with(value)
    first = calibrate.fit(made, workers=1)
    stated, found = first.stated[KEY], first.improved()[KEY]
    assert 0.4 < (found - stated) / (value - stated) < 1
    assert calibrate.fit(made, {KEY: value}, workers=1).improved()[KEY] == pytest.approx(value)


@pytest.mark.usefixtures("one_key")
def test_rows_that_are_hidden_do_not_move_a_coefficient():
    made = made_with(0.7)
    found = calibrate.fit(made, workers=1)
    hidden = {row.id for row in made[1:]}
    assert found.improved({row.id for row in made})[KEY] == pytest.approx(found.stated[KEY])
    assert found.improved(hidden)[KEY] < found.stated[KEY]


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
