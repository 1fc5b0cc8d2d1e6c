"""What a plan says about cost: its recommended candidate at its actual load.

A request costs what the whole bill of an hour is over those served in it, busy or idle. What the
same replicas could serve at most is another question: `advisor.core.capacity`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

from advisor.core.economics.cash_flow import MONTHS_PER_YEAR
from advisor.core.economics.figures import quotient
from advisor.core.economics.ownership import HOURS_PER_YEAR
from advisor.core.economics.serving_cost import SECONDS_PER_HOUR
from advisor.core.errors import FieldError, InvalidInput

HOURS_PER_MONTH = HOURS_PER_YEAR // MONTHS_PER_YEAR
"""Of billing: 730."""


@dataclass(frozen=True)
class PlannedServing:
    """The bill of an hour is `per_hour` of `currency`, at a price of `price_as_of`; all `None`
    without a price. Rates are of the whole plan as it is loaded: `requests_per_s` at its peak, the
    mean ones are billed. Of the `replicas`, `spare_replicas` may be lost."""

    plan_id: str
    hardware: str
    per_hour: Decimal | None
    currency: str | None
    price_as_of: date | None
    accelerators: int
    replicas: int
    spare_replicas: int
    requests_per_s: Fraction
    mean_requests_per_s: Fraction
    input_tokens: Fraction
    cached_share: Fraction
    output_tokens: Fraction
    utilization: float | None
    verdict: str
    has_slo: bool
    prefill_time_share: Fraction | None

    def per_request(self, per_hour: Decimal) -> Decimal:
        """What a request costs at a bill of so much an hour."""
        return quotient(Fraction(per_hour) / (self.mean_requests_per_s * SECONDS_PER_HOUR))

    def replica_cost_per_month(self, per_hour: Decimal) -> Decimal:
        """730 hours of one replica, at a bill of so much an hour for all."""
        return quotient(HOURS_PER_MONTH * Fraction(per_hour) / self.replicas)

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
    """The figures of an answered plan. InvalidInput at /plan_id for one that recommends nothing: it
    would not hold its load."""
    best = plan["recommended"]
    if best is None:
        detail = f"This plan recommends nothing: {plan['reason']}"
        raise InvalidInput(FieldError("/plan_id", detail, given=plan["id"]))
    # What a trace leaves out of the inputs is measured of it.
    workload = plan["inputs"]["workload"] | (plan.get("trace") or {})
    cost = best["cost"]
    day = cost.get("price_as_of")  # Plans that were stored by earlier versions have none.
    served = _exact(best["throughput"]["requests_per_s"])
    asked = workload.get("request_rate_per_s")
    mean = served if asked is None else min(served, _exact(asked))
    return PlannedServing(
        plan_id=plan["id"],
        hardware=best["hardware"],
        per_hour=None if cost["per_hour"] is None else Decimal(cost["per_hour"]),
        currency=cost["currency"],
        price_as_of=None if day is None else date.fromisoformat(day),
        accelerators=best["accelerators"],
        replicas=best["replicas"],
        spare_replicas=plan["inputs"]["limits"]["spare_replicas"],
        requests_per_s=served,
        mean_requests_per_s=mean,
        input_tokens=_mean_of(workload, "input_tokens"),
        cached_share=_exact(workload["prefix_cache_hit"]),
        output_tokens=_mean_of(workload, "output_tokens"),
        utilization=best["load"]["utilization"],
        verdict=best["load"]["verdict"],
        has_slo=bool(plan["inputs"]["slo"])
        or any(one["slo"] for one in workload.get("classes") or ()),
        # Nor have they this.
        prefill_time_share=None
        if (share := best["bottleneck"].get("prefill_time_share")) is None
        else _exact(share),
    )


def _mean_of(workload: Mapping[str, Any], length: str) -> Fraction:
    """Mean tokens of a request: of all, or of each class by its weight."""
    classes = workload.get("classes")  # plans that were stored by earlier versions have none
    if not classes:
        return _mean(workload[length])
    return _weighted([_mean(one[length]) for one in classes], [one["weight"] for one in classes])


def _mean(length: Any) -> Fraction:
    if not isinstance(length, Mapping):
        return _exact(length)
    if "values" in length:
        return _weighted([_exact(each) for each in length["values"]], length["weights"])
    return _exact(length["mean"])


def _weighted(values: Sequence[Fraction], weights: Sequence[float]) -> Fraction:
    shares = [_exact(weight) for weight in weights]
    products = (value * share for value, share in zip(values, shares, strict=True))
    return sum(products, Fraction(0)) / sum(shares)


def _exact(value: float) -> Fraction:
    """A number of an answer as it is written there."""
    return Fraction(repr(value))
