"""Each technique tried on a plan: what the planner makes of the changed request, beside the plan as
it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from advisor.core.techniques import model_level, service_level
from advisor.core.techniques.outcome import (
    Effect,
    Outcome,
    effect,
    measure_of,
    planned,
    times_better,
)
from advisor.core.techniques.pools import disaggregated
from advisor.core.techniques.subject import Change, Given, Offers, Range, Refusal, Subject

DISAGGREGATION = "disaggregation"
OFFERS: Mapping[str, Callable[[Subject, Given], Offers]] = {
    each.__name__: each
    for each in (
        model_level.weight_quantization,
        model_level.distillation,
        model_level.kv_cache_quantization,
        model_level.kv_cache_management,
        model_level.attention_kernels,
        model_level.shared_kv_heads,
        model_level.speculative_decoding,
        service_level.continuous_batching,
        service_level.larger_batch,
        service_level.replicas,
        service_level.tensor_parallel,
        service_level.pipeline_parallel,
        service_level.expert_parallel,
        service_level.attention_data_parallel,
        service_level.prefix_caching,
        service_level.least_loaded_routing,
    )
}
"""Techniques by name that change a request; disaggregation is two requests."""


@dataclass(frozen=True)
class Tried:
    """One setting of a technique on a plan: the plan that the planner makes with it, and the same
    accelerators with it (None: it is another deployment, or cannot be). Without `after` it does not
    apply, and `reason` says why. `good` is a good case where that is not known: `after` is a poor
    one then."""

    technique: str
    setting: Mapping[str, Any]
    before: Outcome | None
    after: Outcome | None = None
    effect: Effect | None = None
    in_place: Outcome | None = None
    reason: str | None = None
    good: Tried | None = None
    change: Change | None = None
    details: Mapping[str, Any] | None = field(default=None, compare=False)

    @property
    def verdict(self) -> str | None:
        """Of the effect; `depends` where a poor and a good case differ."""
        if self.effect is None:
            return None
        if self.good is None or self.good.verdict == self.effect.verdict:
            return self.effect.verdict
        return "depends"

    @property
    def order(self) -> tuple[Any, ...]:
        """Best effect on the objective first, then the lower latency on the same accelerators; what
        does not apply last."""
        if self.effect is None:
            return (3,)
        place = 0 if self.effect.gains else 2 if self.effect.loses else 1
        times = self.effect.times or 1.0
        least = 1.0 if self.effect.verdict == "no_change" else times
        return place, -math.log(least), -math.log(self._faster() or 1.0), -math.log(times)

    def _faster(self) -> float | None:
        """How many times lower the latency is, in place where it can be."""
        after = self.in_place or self.after
        if self.before is None or after is None:
            return None
        return times_better("e2e_p95_ms", self.before.slowness, after.slowness)


def tried(name: str, subject: Subject, before: Outcome | None, given: Given) -> list[Tried]:
    """Every setting of a technique on a plan."""
    if name == DISAGGREGATION:
        return [_disaggregated(subject, before)]
    return [_one(name, subject, before, each) for each in OFFERS[name](subject, given)]


def changed(name: str, subject: Subject, before: Outcome | None, change: Change) -> Tried:
    """One change tried on a plan."""
    free = planned(change.apply(subject.free))
    if isinstance(free, str):
        return Tried(name, change.setting, before, reason=f"No plan with it: {free}")
    in_place = None
    if change.in_place and subject.pinned is not None:
        found = planned(change.apply(subject.pinned))
        in_place = None if isinstance(found, str) else found
    made = effect(measure_of(subject.request), before, free)
    return Tried(name, change.setting, before, free, made, in_place, change=change)


def _one(
    name: str, subject: Subject, before: Outcome | None, offer: Change | Range | Refusal
) -> Tried:
    if isinstance(offer, Refusal):
        return Tried(name, offer.setting, before, reason=offer.reason)
    if isinstance(offer, Change):
        return changed(name, subject, before, offer)
    poor = changed(name, subject, before, offer.poor)
    good = changed(name, subject, before, offer.good)
    if poor.effect is None or good.effect is None:
        return poor
    return Tried(**{**vars(poor), "good": good})


def _disaggregated(subject: Subject, before: Outcome | None) -> Tried:
    found = disaggregated(subject)
    if isinstance(found, str):
        return Tried(DISAGGREGATION, {}, before, reason=found)
    after, details = found
    pools = {each["role"]: each["accelerators"] for each in after.figures["pools"]}
    setting = {f"{role}_accelerators": count for role, count in pools.items()}
    made = effect(measure_of(subject.request), before, after)
    return Tried(DISAGGREGATION, setting, before, after, made, details=details)
