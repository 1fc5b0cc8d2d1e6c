"""How sure a prediction is: an interval that held for four of five measured benchmarks like it.

`residuals.toml` keeps how far predictions lay from what was measured, by what was known of the case
(`basis`), and which engines, accelerators and models were measured at all. It is written by
`make accuracy` from the benchmarks in the repository.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from advisor.core.coefficients import table
from advisor.core.layouts import Layout
from advisor.core.model import ModelProfile

Array = NDArray[np.float64]

BASES = ("measured", "interpolated", "physics")
_FAMILY = {"ttft": "ttft", "tpot": "tpot", "itl": "tpot", "e2e": "tpot"}
_Z90 = 1.2815515655446004
"""Standard normal 90th percentile: an interval of 80 % is so many deviations to each side."""

_SUREST = 0.99
"""No probability is told as surer: some hundred measurements lie behind an interval."""


@dataclass(frozen=True)
class Width:
    """Both ends of an interval, as logarithms of what is measured over what is predicted."""

    low: float
    high: float

    def around(self, value: float, floor: float = 0.0) -> tuple[float, float]:
        """The interval around a predicted value, in its unit; no time falls below its floor."""
        low, high = value * math.exp(self.low), value * math.exp(self.high)
        return max(low, floor), max(high, floor)

    def share_below(self, log_limit: float) -> float:
        """Probability that the logarithm of measured over predicted is below a limit: the error
        taken as normal, with the interval's ends as its 10th and 90th percentiles. Between 0.01
        and 0.99, but 0 at minus infinity, where there is no finite value."""
        if log_limit == -math.inf:
            return 0.0
        share = 0.5 * math.erfc((self._middle - log_limit) / (self._deviation * math.sqrt(2)))
        return min(max(share, 1 - _SUREST), _SUREST)

    def margin(self, probability: float) -> float:
        """What a predicted value is multiplied with for what is measured to lie below it with this
        probability, by the same normal error; at least 1, so that the prediction holds too."""
        deviations = NormalDist().inv_cdf(probability)
        return max(math.exp(self._middle + deviations * self._deviation), 1.0)

    @property
    def _middle(self) -> float:
        return (self.low + self.high) / 2

    @property
    def _deviation(self) -> float:
        return (self.high - self.low) / (2 * _Z90)


@dataclass(frozen=True)
class Regime:
    """What was measured like a plan: `measured` (this engine, accelerator and model),
    `interpolated` (this engine on this generation, with models of this kind) or `physics`
    (neither)."""

    name: str
    basis: str
    kind: str

    def width(self, metric: str) -> Width:
        """The interval of `ttft`, `tpot`, `itl`, `e2e` or `throughput`."""
        return _widths()[_FAMILY.get(metric, metric), self.kind, self.basis]


def regime(model: ModelProfile, layout: Layout, engine: str) -> Regime:
    """The regime of a plan."""
    kind = "moe" if model.architecture.moe else "dense"
    device, cases = layout.hardware, _measured()
    if f"{engine}/{device.name}/{model.name}" in cases:
        basis = "measured"
    elif f"{engine}/{device.generation}/{kind}" in cases:
        basis = "interpolated"
    else:
        basis = "physics"
    place = device.generation or "an accelerator of no known generation"
    return Regime(f"{kind}, {engine} on {place}", basis, kind)


def met_probability(ratios: Mapping[str, Array], regimes: Sequence[Regime]) -> Array:
    """How likely plans of these regimes meet every SLO, of each of which `ratios` has the predicted
    value over its limit, (rows,): that of the least likely, since errors of one plan go together.
    """
    least = np.ones(len(regimes))
    for key, ratio in ratios.items():
        metric = key.split("_")[0]
        shares = [
            known.width(metric).share_below(-math.log(value)) if value > 0 else 1.0
            for known, value in zip(regimes, ratio.tolist(), strict=True)
        ]
        least = np.minimum(least, shares)
    return least


@cache
def _measured() -> frozenset[str]:
    return frozenset(table("residuals.toml")["measured"])


@cache
def _widths() -> dict[tuple[str, str, str], Width]:
    rows = table("residuals.toml")["width"]
    return {(r["metric"], r["kind"], r["basis"]): Width(r["low"], r["high"]) for r in rows}
