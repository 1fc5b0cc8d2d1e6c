"""Two techniques at once, where they interact: more or less than both effects together?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from advisor.core.answer import rounded
from advisor.core.choice import TIE
from advisor.core.techniques.catalogue import Pair, pairs
from advisor.core.techniques.evaluation import Tried, changed
from advisor.core.techniques.outcome import Outcome, gained
from advisor.core.techniques.subject import Change, Subject
from advisor.core.workload import PlanRequest

INTERACTIONS = ("more_than_the_sum", "less_than_the_sum", "the_sum", "not_comparable")

Combined = dict[str, Any]


def combinations(
    subject: Subject, before: Outcome | None, found: Sequence[Tried]
) -> list[Combined]:
    """Every interacting pair of techniques that apply, each in its best setting, best pair first.

    `found` is ranked.
    """
    best: dict[str, Tried] = {}
    for each in found:
        if each.change is not None and each.effect is not None:
            best.setdefault(each.technique, each)
    pairs_there = [pair for pair in pairs() if pair.first in best and pair.second in best]
    tried = [
        (pair, both)
        for pair in pairs_there
        if (both := _both(subject, before, best[pair.first], best[pair.second])).effect
    ]
    tried.sort(key=lambda each: each[1].order)
    return [_answer(pair, best, both) for pair, both in tried]


def _both(subject: Subject, before: Outcome | None, first: Tried, second: Tried) -> Tried:
    one, other = first.change, second.change
    assert one is not None
    assert other is not None

    def apply(request: PlanRequest) -> PlanRequest:
        return other.apply(one.apply(request))

    setting = {**one.setting, **other.setting}
    in_place = one.in_place and other.in_place
    return changed(first.technique, subject, before, Change(setting, apply, in_place))


def _answer(pair: Pair, best: Mapping[str, Tried], both: Tried) -> Combined:
    effect = both.effect
    assert effect is not None
    assert both.after is not None
    gains = [_gain(best[name], effect.measure) for name in (pair.first, pair.second)]
    together = _gain(both, effect.measure)
    return {
        "techniques": [pair.first, pair.second],
        "setting": dict(both.setting),
        "how": pair.how,
        "after": both.after.figures,
        "effect": effect.as_dict(),
        "gains": [_number(gain) for gain in gains],
        "gain_together": _number(together),
        "interaction": _interaction(effect.before, gains, together),
    }


def _gain(one: Tried, measure: str) -> float | None:
    """By how much the measure is better; None where plans are not compared by it, or not in
    figures."""
    effect = one.effect
    if effect is None or effect.gains or effect.loses or effect.measure != measure:
        return None
    gain = gained(measure, effect.before, effect.after)
    return gain if math.isfinite(gain) else None


def _interaction(before: float, gains: Sequence[float | None], together: float | None) -> str:
    known = [gain for gain in gains if gain is not None]
    if together is None or len(known) < len(gains):
        return INTERACTIONS[3]
    more = together - sum(known)
    if abs(more) <= TIE * abs(before):
        return INTERACTIONS[2]
    return INTERACTIONS[0] if more > 0 else INTERACTIONS[1]


def _number(value: float | None) -> float | None:
    return None if value is None else rounded(value)
