"""Advice in sentences: every figure in them is in the answer too."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from advisor.core.comparison import in_short
from advisor.core.techniques.catalogue import catalogue
from advisor.core.techniques.evaluation import Tried
from advisor.core.techniques.outcome import COSTS, WORST_LIMIT, Effect, Outcome, gained
from advisor.core.units import rounded_plain

Figures = Mapping[str, Any]

_MEASURES = {
    "cost_per_hour": ("cost per hour", ""),
    "cost_per_million_output_tokens": ("cost per million output tokens at saturation", ""),
    "e2e_p95_ms": ("p95 end-to-end latency", " ms"),
    "time_in_service_ms": ("the time in service of a request at saturation", " ms"),
    "saturation_output_tokens_per_s_per_accelerator": (
        "what is served at saturation", " output tokens/s per accelerator",
    ),
    "cost_per_hour_times_e2e": ("the geometric mean of cost and latency", ""),
    "cost_per_million_times_time": ("the geometric mean of cost and time in service", ""),
    WORST_LIMIT: ("what the plan has over the limit it misses by most", " times"),
}  # fmt: skip
"""What is measured, and its unit."""

_SEEN = (
    ("e2e_p95_ms", "p95 end-to-end latency", " ms"),
    ("ttft_p95_ms", "p95 TTFT", " ms"),
    ("tpot_p95_ms", "p95 TPOT", " ms"),
    ("saturation_output_tokens_per_s", "what is served at most", " output tokens/s"),
)
_MOVES = 0.005
"""A figure that moves by less is not told."""


def in_words(tried: Tried, currency: str | None) -> str:
    """What a technique would do to a plan, or why it does not apply."""
    name = label(tried.technique, tried.setting)
    if tried.effect is None or tried.after is None:
        return f"{name}: {tried.reason}"
    words = [f"{name} {_objective(tried.effect, tried.after, currency)}"]
    if tried.in_place is not None and tried.before is not None:
        words.append(_in_place(tried.before.figures, tried.in_place.figures))
    if tried.good is not None and tried.good.effect is not None and tried.good.after is not None:
        good = tried.good
        better = _objective(good.effect, good.after, currency)  # type: ignore[arg-type]
        words.append(
            "Its effect hangs on what is not known here: this is a poor case. In a good one "
            f"({_setting(good.setting)}) it {better}"
        )
    return " ".join(words)


def label(technique: str, setting: Mapping[str, Any]) -> str:
    """A technique and its setting."""
    title = catalogue()[technique].title
    return f"{title} ({_setting(setting)})" if setting else title


def _setting(setting: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in setting.items())


def _objective(effect: Effect, after: Outcome, currency: str | None) -> str:
    measure, unit = _measure(effect.measure, currency)
    where = pools_in_short(after.figures)
    if effect.gains:
        return f"would give a plan within every limit, where there is none now: {where}."
    if not after.kept and math.isnan(effect.before):
        return (
            f"would fit, where nothing does now, but leave no plan within the limits: the nearest, "
            f"{where}, misses {', '.join(after.missed) or 'one'}."
        )
    if effect.loses:
        return (
            f"would leave no plan within the limits: the nearest, {where}, misses "
            f"{', '.join(after.missed) or 'one'}."
        )
    if not (math.isfinite(effect.before) and math.isfinite(effect.after)):
        return f"would leave {measure} without a finite value, before or with it: {where}."
    before, then = rounded_plain(effect.before), rounded_plain(effect.after)
    if effect.verdict == "no_change":
        return f"would not move {measure}, {before}{unit} now, by as much as 0.5 %: {where}."
    return f"would take {measure} from {before} to {then}{unit} ({effect.change:+.0%}): {where}."


def _measure(name: str, currency: str | None) -> tuple[str, str]:
    """What a measure is called, and its unit."""
    measure, unit = _MEASURES[name]
    if name in COSTS and currency:
        unit = f" {currency}"
    return measure, unit


def pools_in_short(figures: Figures) -> str:
    """The deployment: one pool, or two by name."""
    pools: Sequence[Figures] = figures["pools"]
    if len(pools) == 1:
        return in_short(pools[0])
    return " and ".join(f"{in_short(pool)} for {pool['role']}" for pool in pools)


def _in_place(before: Figures, after: Figures) -> str:
    moved = []
    for key, name, unit in _SEEN:
        first, second = before[key], after[key]
        if first and second is not None and abs(second / first - 1) > _MOVES:
            moved.append(f"{name} from {rounded_plain(first)} to {rounded_plain(second)}{unit}")
    first, second = (each["pools"][0]["max_concurrency"] for each in (before, after))
    if first and abs(second / first - 1) > _MOVES:
        moved.append(f"room in the KV cache from {first} to {second} requests a replica")
    if not moved:
        return "On the same accelerators, split as they are, it moves nothing."
    return f"On the same accelerators, split as they are, it takes {', '.join(moved)}."


def combination(found: Mapping[str, Any], currency: str | None) -> str:
    """Two techniques at once, in a sentence."""
    one, other = (catalogue()[name].title for name in found["techniques"])
    second = other if other[1].isupper() else other[0].lower() + other[1:]
    both = f"{one} with {second} ({_setting(found['setting'])})"
    interaction = _INTERACTIONS.get(found["interaction"])
    if interaction is None:
        return f"{both}: {found['how']} The plans are not within the same limits."
    measure = found["effect"]["measure"]
    named, unit = _measure(measure, currency)
    first, last = (_moved(measure, gain, "it", unit) for gain in found["gains"])
    return (
        f"{both} would {_moved(measure, found['gain_together'], named, unit)}; by themselves the "
        f"first would {first} and the second {last}, so that together they do {interaction} the "
        f"sum. {found['how']}"
    )


_INTERACTIONS = {
    "more_than_the_sum": "better than",
    "less_than_the_sum": "worse than",
    "the_sum": "as well as",
}


def _moved(measure: str, gain: float, named: str, unit: str) -> str:
    """What a gain does to a measure."""
    if not gain:
        return f"leave {named} as it is"
    upwards = (gain > 0) == (gained(measure, 0.0, 1.0) > 0)
    return f"{'raise' if upwards else 'lower'} {named} by {rounded_plain(abs(gain))}{unit}"


def batching(kinds: Sequence[Mapping[str, Any]]) -> list[str]:
    """The kinds of batching, in a sentence."""
    if not kinds:
        return []
    each = ", ".join(
        f"{_BATCHINGS[one['batching']]} {rounded_plain(one['saturation_output_tokens_per_s'])}"
        for one in kinds
    )
    return [f"Output tokens/s at saturation on the same accelerators: {each}."]


_BATCHINGS = {
    "none": "one request at a time",
    "static": "static batches",
    "continuous": "continuous batching",
}


def disaggregation(found: Mapping[str, Any] | None) -> list[str]:
    """Two pools beside one of as many accelerators, in a sentence."""
    if found is None or found["aggregated"] is None:
        return []
    way, apart, one = found["transfer"], found["disaggregated"], found["aggregated"]
    figures = []
    for key, name, unit in _SEEN:
        if apart[key] is not None and one[key] is not None:
            values = rounded_plain(apart[key]), rounded_plain(one[key])
            figures.append(f"{name} {values[0]}{unit}, in one pool {values[1]}{unit}")
    size = rounded_plain(way["transferred_bytes_per_request"] / 1e6)
    plural = "s" if way["ranks"] > 1 else ""
    if apart["verdict"] == "unstable":
        figures.append("two pools cannot carry this load")
    return [
        f"{found['accelerators']} accelerators as two pools ({pools_in_short(apart)}): "
        f"{'; '.join(figures) or 'no latency has an end'}. The KV cache of a prompt, {size} MB, "
        f"takes {rounded_plain(way['transfer_ms'])} ms over the {way['over']} from {way['ranks']} "
        f"rank{plural}."
    ]
