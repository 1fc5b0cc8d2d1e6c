"""How sure a plan is said to be."""

from __future__ import annotations

import math

import pytest

from advisor.core.confidence import Width


def test_an_interval_of_four_in_five_leaves_a_tenth_on_each_side():
    width = Width(-0.2, 0.5)
    assert width.share_below(-0.2) == pytest.approx(0.1)
    assert width.share_below(0.5) == pytest.approx(0.9)
    assert width.share_below(0.15) == pytest.approx(0.5)


@pytest.mark.parametrize(("limit", "share"), [(-3.0, 0.01), (3.0, 0.99), (-math.inf, 0.0)])
def test_no_more_is_claimed_than_some_hundred_measurements_can_show(limit, share):
    assert Width(-0.2, 0.5).share_below(limit) == pytest.approx(share)
