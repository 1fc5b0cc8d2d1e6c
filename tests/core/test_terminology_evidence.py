"""What a plan's figures say of a claim."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.core.terminology.evidence import evidence


def plan(kind: str, share: float, used: float | None) -> dict[str, Any]:
    bottleneck = {
        "decode": {"kind": kind, "shares": {"memory_bandwidth": share}},
        "memory_capacity_used": used,
    }
    chosen = {
        "hardware": "h100-sxm-80gb", "replicas": 2, "tensor_parallel": 4, "bottleneck": bottleneck,
    }  # fmt: skip
    return {"id": "p1", "recommended": chosen, "rejected": []}


@pytest.mark.parametrize(
    ("kind", "used", "holds"),
    [
        ("memory_bandwidth", 0.5, "bandwidth"),
        ("overhead", 0.95, "capacity"),
        ("memory_bandwidth", 0.95, "both"),
        ("compute", 0.5, "neither"),
    ],
)
def test_the_figures_tell_which_reading_holds(kind: str, used: float, holds: str):
    found = evidence(plan(kind, 0.68, used))
    assert found["holds"] == holds
    assert (found["memory_bandwidth_share"], found["memory_capacity_used"]) == (0.68, used)
    assert "68%" in found["bandwidth"]
    assert f"{used:.0%}" in found["capacity"]
    assert "2 x TP4 on h100-sxm-80gb" in found["bandwidth"]


def test_a_plan_that_recommends_nothing_says_whether_something_did_not_fit():
    nothing = {"id": "p1", "recommended": None, "rejected": [{"code": "does_not_fit"}]}
    found = evidence(nothing)
    assert (found["holds"], found["memory_bandwidth_share"]) == (None, None)
    assert "does not fit" in found["capacity"]
