"""Names and figures in words, as all charts say them."""

from __future__ import annotations

from collections.abc import Mapping
from math import log10
from typing import Any

from advisor.core.comparison import in_short
from advisor.core.units import rounded_plain

PERCENTILES = ("p50", "p95", "p99")
_LEAST_PLAIN, _HUGE = 1e-9, 1e15
_WORDS = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"), (1e3, "thousand"))


def figure(value: float | str | None, unit: str = "") -> str:
    """A figure with four significant digits and its unit, with an exponent where it would have
    many zeros; `none` where there is none."""
    if value is None:
        return "none"
    number = float(value)
    short = number == 0 or _LEAST_PLAIN <= abs(number) < _HUGE
    text = rounded_plain(number) if short else f"{number:.4g}"
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


def the_plan(answer: Mapping[str, Any]) -> str:
    """The subject, and what it is."""
    plan = subject(answer)
    assert plan is not None
    return f"{'Recommended' if answer['recommended'] else 'Nearest'}, {named(plan)}"


def scaled(largest: float, unit: str | None) -> tuple[float, str | None]:
    """What to divide figures up to `largest` by so that they are read easily, and their unit."""
    if largest >= 2 * _HUGE:
        exponent = int(log10(largest / 2)) // 3 * 3
        return 10.0**exponent, " ".join(filter(None, (f"1e{exponent}", unit)))
    for factor, word in _WORDS:
        if largest >= 2 * factor:
            return factor, word if unit is None else f"{word} {unit}"
    return 1.0, unit


def spoken(value: float) -> str:
    """A large figure as it is said: 5.58 million."""
    factor, word = scaled(abs(value) * 2, None) if abs(value) < _HUGE else (1.0, None)
    text = figure(value / factor)
    return f"{text} {word}" if word else text
