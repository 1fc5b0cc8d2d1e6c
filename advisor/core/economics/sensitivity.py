"""Which input matters most: break-even with each figure a little lower and higher (a tornado).

The measure is N* = (T + W) / (p - c - F / m), not rounded up, or the months to payback where calls
have a rate. A swing after which nothing is ever recovered has no end: its bar is open, and longer
than any that has one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from advisor.core.economics.break_even_inputs import BreakEvenInputs
from advisor.core.economics.figures import Range, as_json, exact, range_errors
from advisor.core.errors import InvalidInput

SWING = Range(Fraction(1, 1000), Fraction(99, 100), "20 % is written 0.2.")
SWUNG = (
    "training_cost", "price_per_call", "serving_cost_per_call", "one_off_cost", "calls_per_month",
    "fixed_cost_per_month", "free_share", "fee_share", "monthly_growth", "price_decline_per_month",
    "cost_decline_per_month", "annual_discount_rate",
)  # fmt: skip


@dataclass(frozen=True)
class End:
    """Break-even with one input changed: `value` of it, `at` of the measure, `None` unless `ok`.

    `status` is as of break-even, or `infeasible` where the input cannot have that value.
    """

    value: Decimal | Fraction
    at: Fraction | None
    status: str


@dataclass(frozen=True)
class Bar:
    """One input of the tornado; `swing` is between its ends, `None` where an end is open.

    `elasticity`: by how many percent the measure changes with one percent of the input, for calls.
    """

    input: str
    low: End
    high: End
    swing: Fraction | None
    open_ended: bool
    elasticity: float | None

    @property
    def decides(self) -> bool:
        """Whether there is a break-even at one end at least."""
        return self.low.at is not None or self.high.at is not None


@dataclass(frozen=True)
class Sensitivity:
    """Bars by falling swing, open ones first; those without a break-even at either end last.
    `matters_most` is `None` where all are such."""

    status: str
    reason: str | None
    measure: str
    base: Fraction | None
    tornado: tuple[Bar, ...]
    matters_most: str | None

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return dict(as_json(self))


def sensitivity(inputs: BreakEvenInputs, swing: Fraction) -> Sensitivity:
    """The tornado of break-even. InvalidInput for a swing that is no share."""
    if errors := range_errors("/swing", swing, SWING):
        raise InvalidInput(*errors)
    base = _measure(inputs)
    bars = [_bar(inputs, name, swing, base.at) for name in SWUNG if getattr(inputs, name)]
    bars.sort(key=lambda bar: (not bar.decides, not bar.open_ended, -(bar.swing or 0)))
    return Sensitivity(
        status=base.status,
        reason=None if base.status == "ok" else _REASONS[base.status],
        measure="break_even_calls" if inputs.calls_per_month is None else "months",
        base=base.at,
        tornado=tuple(bars),
        matters_most=bars[0].input if bars and bars[0].decides else None,
    )


_REASONS = {
    "never": "With the figures given nothing is ever recovered, so there is no base to swing.",
    "not_within_horizon": "With the figures given the cost is recovered after the horizon.",
}


def _bar(inputs: BreakEvenInputs, name: str, swing: Fraction, base: Fraction | None) -> Bar:
    low, high = (_end(inputs, name, 1 + sign * swing) for sign in (-1, 1))
    closed = low.at is not None and high.at is not None
    return Bar(
        input=name,
        low=low,
        high=high,
        swing=abs(high.at - low.at) if low.at is not None and high.at is not None else None,
        open_ended=not closed and "infeasible" not in (low.status, high.status),
        elasticity=_elasticity(inputs, name) if base else None,
    )


def _end(inputs: BreakEvenInputs, name: str, factor: Fraction) -> End:
    """Break-even with `name` times a factor."""
    given = getattr(inputs, name)
    value: Any = Fraction(given) * factor
    if isinstance(given, Decimal):
        value = exact(value)
    try:
        return replace(_measure(replace(inputs, **{name: value})), value=value)
    except InvalidInput:
        return End(value, None, "infeasible")


def _measure(inputs: BreakEvenInputs) -> End:
    """The measure with these inputs."""
    flow = inputs.cash_flow()
    if flow is not None:
        found = flow.payback(inputs.to_recover, inputs.horizon_months)
        at = None if found.months is None else Fraction(found.months)
        return End(Decimal(0), at, found.status)
    contribution = inputs.contribution
    if contribution > 0:
        return End(Decimal(0), inputs.to_recover / contribution, "ok")
    nothing = contribution == 0 == inputs.to_recover
    return End(Decimal(0), Fraction(0) if nothing else None, "ok" if nothing else "never")


def _elasticity(inputs: BreakEvenInputs, name: str) -> float | None:
    """d ln N* / d ln x: T / (T + W) and W / (T + W), -p' / (p' - c), c / (p' - c)."""
    if inputs.calls_per_month is not None or not inputs.to_recover:
        return None
    parts = {
        "training_cost": Fraction(inputs.training_cost) / inputs.to_recover,
        "one_off_cost": Fraction(inputs.one_off_cost) / inputs.to_recover,
        "price_per_call": -inputs.revenue_per_call / inputs.contribution,
        "serving_cost_per_call": inputs.serving_cost / inputs.contribution,
    }
    return float(parts[name]) if name in parts else None
