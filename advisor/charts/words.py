"""Names and figures in words, as all charts say them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.core.comparison import in_short
from advisor.core.units import rounded_plain

PERCENTILES = ("p50", "p95", "p99")


def figure(value: float | str | None, unit: str = "") -> str:
    """A figure with three significant digits and its unit; `none` where there is none."""
    if value is None:
        return "none"
    text = rounded_plain(float(value))
    return f"{text} {unit}" if unit else text


def formats(candidate: Mapping[str, Any]) -> str:
    """The number formats of a plan."""
    precision = candidate["precision"]
    return f"{precision['weights']} weights, {precision['kv_cache']} KV cache"


def named(candidate: Mapping[str, Any]) -> str:
    """A plan in words."""
    return f"{in_short(candidate)}, {formats(candidate)}"


def subject(answer: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The plan that a chart of one plan shows: the one recommended, else the nearest."""
    found: Mapping[str, Any] | None = answer["recommended"] or answer["nearest"]
    return found


def standing(answer: Mapping[str, Any]) -> str:
    """What the subject is."""
    return "recommended" if answer["recommended"] else "nearest"
