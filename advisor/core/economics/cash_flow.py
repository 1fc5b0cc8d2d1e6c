"""Money over time: when a monthly stream of revenue and cost has paid for what was spent first.

Month t (from 1) brings R (1+g)^(t-1) (1-d)^(t-1), costs C (1+g)^(t-1) (1-e)^(t-1) to serve and F
whatever is sold. It is counted at the month's end and discounted by v^t, v = 1 / (1+r) with
r = (1+R_annual)^(1/12) - 1. Each of the three is a geometric series, a q (q^k - 1) / (q - 1) in k
months, which also holds for a part of a month.

Divided by the revenue's own growth, a month's flow is R - C x^t - F y^t: concave in t. So the
money recovered falls, rises and falls, each at most once and in this order, and what is not
recovered by the time it falls for good never is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

from advisor.core.economics.figures import WORKING, working

MONTHS_PER_YEAR = 12
LONGEST_HORIZON_MONTHS = 600
"""Fifty years: no demand, price or cost can be foreseen as far."""
ROOT_DIGITS = 24
_ONE = Decimal(1)
_FOREVER = 10**15
"""Months; what has not turned by then is taken to stay as it is."""


def monthly_rate(annual: Fraction) -> Decimal:
    """r = (1 + R)^(1/12) - 1."""
    twelfth = WORKING.divide(_ONE, Decimal(MONTHS_PER_YEAR))
    return WORKING.subtract(WORKING.power(working(1 + annual), twelfth), _ONE)


@dataclass(frozen=True)
class Recovery:
    """`months` and the `whole_months` that contain them, or why there are none: `status` is `ok`,
    `never` or `not_within_horizon`."""

    status: str
    months: Decimal | None = None
    whole_months: int | None = None


@dataclass(frozen=True)
class CashFlow:
    """A stream: `revenue`, `serving_cost` and `fixed_cost` are the first month's [money].

    `growth` is of the calls sold, `price_decline` and `cost_decline` are of what one brings in and
    costs, each by the month; `annual_discount_rate` by the year.
    """

    revenue: Fraction
    serving_cost: Fraction
    fixed_cost: Fraction = Fraction(0)
    growth: Fraction = Fraction(0)
    price_decline: Fraction = Fraction(0)
    cost_decline: Fraction = Fraction(0)
    annual_discount_rate: Fraction = Fraction(0)

    @cached_property
    def _discount(self) -> Decimal:
        return WORKING.divide(_ONE, WORKING.add(_ONE, monthly_rate(self.annual_discount_rate)))

    @cached_property
    def _ratios(self) -> tuple[Fraction, Fraction, Fraction]:
        """By what revenue, serving cost and fixed cost grow in a month."""
        grown = 1 + self.growth
        return grown * (1 - self.price_decline), grown * (1 - self.cost_decline), Fraction(1)

    @cached_property
    def _terms(self) -> tuple[tuple[Decimal, Decimal], ...]:
        """Present value of each part's first month, and its monthly ratio, discounted too."""
        amounts = (self.revenue, -self.serving_cost, -self.fixed_cost)
        return tuple(
            (WORKING.multiply(working(amount), self._discount),
             WORKING.multiply(working(ratio), self._discount))
            for amount, ratio in zip(amounts, self._ratios, strict=True)
            if amount
        )  # fmt: skip

    def recovered(self, months: Decimal) -> Decimal:
        """Present value of the first `months`, whole or not."""
        total = Decimal(0)
        for first, ratio in self._terms:
            if ratio == 1:
                series = months
            else:
                risen = WORKING.subtract(WORKING.power(ratio, months), _ONE)
                series = WORKING.divide(risen, WORKING.subtract(ratio, _ONE))
            total = WORKING.add(total, WORKING.multiply(first, series))
        return total

    def flows(self, months: int) -> Iterator[Decimal]:
        """Present value of each of the first months."""
        parts = list(self._terms)
        for _ in range(months):
            total = Decimal(0)
            for amount, _ratio in parts:
                total = WORKING.add(total, amount)
            yield total
            parts = [(WORKING.multiply(amount, ratio), ratio) for amount, ratio in parts]

    def payback(self, cost: Fraction, horizon: int | None = None) -> Recovery:
        """When `cost` is recovered: the end of the first whole month by which it is, and the moment
        within that month. Without a cost that is at once, unless the first month loses money."""
        if cost == 0 and self.revenue >= self.serving_cost + self.fixed_cost:
            return Recovery("ok", Decimal(0), 0)
        if self._steady:
            return self._steady_payback(cost, horizon)
        sought, reached = working(cost), Decimal(0)
        for month, flow in enumerate(self.flows(horizon or LONGEST_HORIZON_MONTHS), start=1):
            reached = WORKING.add(reached, flow)
            if reached >= sought:
                return Recovery("ok", self._moment(sought, month), month)
        ever = self._ever_recovers(sought, horizon or LONGEST_HORIZON_MONTHS)
        return Recovery("not_within_horizon" if ever else "never")

    @property
    def _steady(self) -> bool:
        changing = (self.growth, self.price_decline, self.cost_decline, self.annual_discount_rate)
        return not any(changing)

    def _steady_payback(self, cost: Fraction, horizon: int | None) -> Recovery:
        """T / (R - C - F), exact up to the last rounding."""
        monthly = self.revenue - self.serving_cost - self.fixed_cost
        if monthly <= 0:
            return Recovery("never")
        months = cost / monthly
        if months > (horizon or LONGEST_HORIZON_MONTHS):
            return Recovery("not_within_horizon")
        return Recovery("ok", working(months), -(-months.numerator // months.denominator))

    def _moment(self, sought: Decimal, month: int) -> Decimal:
        """The root of recovered(k) = sought in a month that ends above it, by regula falsi; an end
        that stays twice is given half its weight (the Illinois rule), so that both close in."""
        low, high = Decimal(month - 1), Decimal(month)
        below, above = (WORKING.subtract(self.recovered(at), sought) for at in (low, high))
        narrow, fell_short = Decimal(1).scaleb(-ROOT_DIGITS), None
        while above > 0 and high - low > narrow:
            part = WORKING.divide(below, WORKING.subtract(below, above))
            middle = WORKING.add(low, WORKING.multiply(high - low, part))
            value = WORKING.subtract(self.recovered(middle), sought)
            if abs(value) <= abs(sought) * narrow:
                return middle
            short = value < 0
            if short:
                low, below, above = middle, value, above / 2 if fell_short else above
            else:
                high, above, below = middle, value, below / 2 if fell_short is False else below
            fell_short = short
        return high

    def _ever_recovers(self, sought: Decimal, since: int) -> bool:
        """Whether the money recovered reaches `sought` after month `since`."""
        top = _last(lambda month: self._scaled(month + 1) > self._scaled(month), since)
        if self._scaled(top) <= 0:
            return False
        last = _last(lambda month: self._scaled(month) > 0, top)
        if last < _FOREVER:
            return self.recovered(Decimal(last + 1)) >= sought
        return self._in_the_end() > sought  # a limit, which no month reaches

    def _scaled(self, month: int) -> Decimal:
        """Flow of the month after `month`, over the growth of the revenue: concave in `month`."""
        revenue, serving, fixed = (working(ratio) for ratio in self._ratios)
        total = working(self.revenue)
        for amount, ratio in ((self.serving_cost, serving), (self.fixed_cost, fixed)):
            if amount:
                risen = WORKING.power(WORKING.divide(ratio, revenue), Decimal(month))
                total = WORKING.subtract(total, WORKING.multiply(working(amount), risen))
        return total

    def _in_the_end(self) -> Decimal:
        """What all months together recover, where flows stay positive: a / (1 - q), or infinity."""
        total = Decimal(0)
        for first, ratio in self._terms:
            if ratio >= 1:
                return Decimal("Infinity")
            total = WORKING.add(total, WORKING.divide(first, WORKING.subtract(_ONE, ratio)))
        return total


def _last(holds: Callable[[int], bool], start: int) -> int:
    """The last month from `start` up to which a property holds that once lost stays lost; `start`
    where it does not hold at all, `_FOREVER` where it is not seen to end."""
    if not holds(start):
        return start
    step = 1
    while start + step < _FOREVER and holds(start + step):
        step *= 2
    if start + step >= _FOREVER:
        return _FOREVER
    low, high = start + step // 2, start + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
