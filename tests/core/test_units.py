"""Figures in sentences."""

from __future__ import annotations

import pytest

from advisor.core.units import plain, rounded_plain
from tests.core.profiles import answer, workload


@pytest.mark.parametrize(
    ("value", "text"), [(1048576, "1048576"), (0.05, "0.05"), (1e6, "1000000"), (250.0, "250")]
)
def test_a_figure_is_told_in_full(value, text):
    assert plain(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12712.3, "12710"), (0.038666, "0.03867"), (3.0, "3"), (0.9999999, "1"),
        (123456789, "123500000"),
    ],
)  # fmt: skip
def test_a_computed_figure_has_four_digits_and_no_exponent(value, text):
    assert rounded_plain(value) == text


def test_a_slow_plan_is_explained_without_an_exponent():
    found = answer(
        load=workload(100, 5000, concurrency=4), objective="latency", slo={"e2e_p95_ms": 2e6}
    )
    assert found["candidates"][0]["latency"]["e2e_ms"]["p95"] > 1e4
    assert not [line for line in found["explanation"] if "e+" in line]
