"""What a plan says about cost and capacity: its recommended candidate at its actual load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from advisor.core.economics.cash_flow import MONTHS_PER_YEAR
from advisor.core.economics.ownership import HOURS_PER_YEAR
from advisor.core.economics.serving_cost import SECONDS_PER_HOUR
from advisor.core.errors import FieldError, InvalidInput

HOURS_PER_MONTH = HOURS_PER_YEAR // MONTHS_PER_YEAR
"""Of billing: 730."""


@dataclass(frozen=True)
class PlannedServing:
    """Money of one `currency`; rates of the whole plan as it is loaded. `mean_requests_per_s` are
    billed, `requests_per_s` (at its peak) are those that it was seen to serve within its SLO."""

    plan_id: str
    per_hour: Decimal
    per_request: Decimal
    currency: str
    accelerators: int
    replicas: int
    requests_per_s: Fraction
    mean_requests_per_s: Fraction
    input_tokens: Fraction
    cached_share: Fraction
    output_tokens: Fraction
    utilization: float | None
    verdict: str
    has_slo: bool
    prefill_time_share: Fraction | None

    @property
    def replica_cost_per_month(self) -> Decimal:
        """730 hours of one replica."""
        return Decimal(HOURS_PER_MONTH) * self.per_hour / self.replicas

    @property
    def replica_capacity_requests_per_month(self) -> Fraction:
        """What one replica serves in 730 hours at the plan's peak rate."""
        return self.requests_per_s / self.replicas * SECONDS_PER_HOUR * HOURS_PER_MONTH

    @property
    def requests_per_month(self) -> Fraction:
        """What the plan serves in 730 hours at its mean rate."""
        return self.mean_requests_per_s * SECONDS_PER_HOUR * HOURS_PER_MONTH

    @property
    def peak_to_mean(self) -> Fraction:
        """Peak over mean rate."""
        return self.requests_per_s / self.mean_requests_per_s

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready: what was taken from the plan."""
        return {
            "plan_id": self.plan_id,
            "accelerators": self.accelerators,
            "replicas": self.replicas,
            "requests_per_s": float(self.requests_per_s),
            "mean_requests_per_s": float(self.mean_requests_per_s),
            "utilization": self.utilization,
            "verdict": self.verdict,
        }


def planned_serving(plan: Mapping[str, Any]) -> PlannedServing:
    """The figures of an answered plan. InvalidInput at /plan_id for a plan that recommends nothing,
    has no price or does not hold its load."""
    best = plan["recommended"]
    if best is None:
        _refuse(plan, f"This plan recommends nothing: {plan['reason']}")
    if best["cost"]["per_hour"] is None:
        _refuse(plan, f"This plan has no cost: the price of {best['hardware']} is not known.")
    if best["cost"]["per_request"] is None:
        _refuse(plan, f"This plan does not hold its load: it is {best['load']['verdict']}.")
    # What a trace leaves out of the inputs is measured of it.
    workload = plan["inputs"]["workload"] | (plan.get("trace") or {})
    served = _exact(best["throughput"]["requests_per_s"])
    asked = workload.get("request_rate_per_s")
    mean = served if asked is None else min(served, _exact(asked))
    return PlannedServing(
        plan_id=plan["id"],
        per_hour=Decimal(best["cost"]["per_hour"]),
        per_request=Decimal(best["cost"]["per_request"]),
        currency=best["cost"]["currency"],
        accelerators=best["accelerators"],
        replicas=best["replicas"],
        requests_per_s=served,
        mean_requests_per_s=mean,
        input_tokens=_mean(workload["input_tokens"]),
        cached_share=_exact(workload["prefix_cache_hit"]),
        output_tokens=_mean(workload["output_tokens"]),
        utilization=best["load"]["utilization"],
        verdict=best["load"]["verdict"],
        has_slo=bool(plan["inputs"]["slo"]),
        # Plans that were stored by earlier versions have none.
        prefill_time_share=None
        if (share := best["bottleneck"].get("prefill_time_share")) is None
        else _exact(share),
    )


def _refuse(plan: Mapping[str, Any], detail: str) -> None:
    raise InvalidInput(FieldError("/plan_id", detail, given=plan["id"]))


def _mean(length: Any) -> Fraction:
    return _exact(length["mean"] if isinstance(length, Mapping) else length)


def _exact(value: float) -> Fraction:
    """A number of an answer as it is written there."""
    return Fraction(repr(value))
