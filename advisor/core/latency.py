"""Latencies as means and quantiles, and how the deviations of their parts add up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from advisor.core.lengths import Component
from advisor.core.workload import Speculation

Array = NDArray[np.float64]

LEVELS = np.array([0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.99, 0.995, 0.999])
"""Quantile levels that every latency is tabulated at."""

LEVEL_OF = {"p50": 4, "p95": 7, "p99": 9}

Z = np.array([NormalDist().inv_cdf(level) for level in LEVELS])
"""Standard normal quantiles of `LEVELS`."""


@dataclass(frozen=True)
class Latency:
    """One latency [s]: its mean (rows,) and its quantiles (rows, len(LEVELS)). NaN: not defined."""

    mean: Array
    quantiles: Array

    def at(self, statistic: str) -> Array:
        """`mean`, `p50`, `p95` or `p99`, shape (rows,)."""
        return self.mean if statistic == "mean" else self.quantiles[:, LEVEL_OF[statistic]]

    def among(self, rows: NDArray[np.int64], count: int) -> Latency:
        """The latency of these rows among `count`, not defined in the others."""
        all_rows = undefined(count)
        all_rows.mean[rows], all_rows.quantiles[rows] = self.mean, self.quantiles
        return all_rows

    def share_within(self, limit: float) -> Array:
        """Share of requests at or below `limit` [s], by interpolation between `LEVELS`; 0 where
        the latency is not defined."""
        below = (self.quantiles <= limit).sum(axis=1)
        low = np.clip(below - 1, 0, len(LEVELS) - 2)
        row = np.arange(len(below))
        left, right = self.quantiles[row, low], self.quantiles[row, low + 1]
        with np.errstate(invalid="ignore", divide="ignore"):
            part = np.clip((limit - left) / (right - left), 0.0, 1.0)
        share = LEVELS[low] + np.nan_to_num(part) * (LEVELS[low + 1] - LEVELS[low])
        share = np.where(below == len(LEVELS), 1.0, share)
        return np.where(below == 0, 0.0, share)


def weighted(weights: Sequence[Array], parts: Sequence[Latency]) -> Latency:
    """The latency of requests of which each part has its share."""
    mean = sum(w * part.mean for w, part in zip(weights, parts, strict=True))
    quantiles = sum(w[:, None] * part.quantiles for w, part in zip(weights, parts, strict=True))
    return Latency(np.asarray(mean), np.asarray(quantiles))


def mixed(shares: Sequence[float], parts: Sequence[Latency]) -> Latency:
    """The latency of requests of several kinds together, of which each part has its share: its
    quantiles are those of the mixture.

    Each part spreads evenly between two levels, with what is outside them at the first and last.
    """
    if len(parts) == 1:
        return parts[0]
    share = np.array(shares)[:, None] / sum(shares)
    mean = sum(s * part.mean for s, part in zip(share[:, 0].tolist(), parts, strict=True))
    tables = np.maximum.accumulate(np.stack([part.quantiles for part in parts], axis=1), axis=2)
    apart = 1e-9 * np.maximum(tables.max(axis=(1, 2), keepdims=True), 1e-9)
    knots = tables + apart * np.arange(len(LEVELS))
    slope = share * np.diff(LEVELS) / np.diff(knots, axis=2)
    change = np.diff(slope, axis=2, prepend=0.0, append=0.0)
    mass = share * np.array([LEVELS[0], *np.zeros(len(LEVELS) - 2), 1 - LEVELS[-1]])
    flat = (len(knots), knots.shape[1] * knots.shape[2])
    knots, change, mass = (
        np.broadcast_to(x, knots.shape).reshape(flat) for x in (knots, change, mass)
    )
    order = np.argsort(knots, axis=1)
    knot, change, mass = (np.take_along_axis(x, order, axis=1) for x in (knots, change, mass))
    slope = np.cumsum(change, axis=1)[:, :-1]
    reached = np.cumsum(mass, axis=1)
    reached[:, 1:] += np.cumsum(slope * np.diff(knot, axis=1), axis=1)
    at = np.minimum((reached[:, :, None] < LEVELS).sum(axis=1), knot.shape[1] - 1)
    found, before, own = (np.take_along_axis(each, at, axis=1) for each in (knot, reached, mass))
    steep = np.take_along_axis(slope, np.maximum(at - 1, 0), axis=1)
    over = np.maximum(before - own - LEVELS, 0.0)
    return Latency(np.asarray(mean), found - over / np.maximum(steep, 1e-300))


def step_levels(speculation: Speculation) -> Array:
    """The levels of steps at which gaps between tokens have theirs: tokens that one step gains come
    together, so of all gaps only one a step takes its time. Below 0: no time at all."""
    return np.asarray(1 - (1 - LEVELS) * speculation.tokens_per_step)


def undefined(rows: int) -> Latency:
    """A latency that these plans have not."""
    return Latency(np.full(rows, np.nan), np.full((rows, len(LEVELS)), np.nan))


def end_to_end(ttft: Latency, tpot: Latency, output: Component) -> Latency:
    """TTFT + (OSL - 1) TPOT: means add; deviations add as squares, with the output's length."""
    mean = ttft.mean + output.gaps * tpot.mean
    of_ttft = ttft.quantiles - ttft.mean[:, None]
    of_tpot = output.gaps * (tpot.quantiles - tpot.mean[:, None])
    of_length = length_deviation(output) * (output.gaps * tpot.mean)[:, None]
    return Latency(mean, mean[:, None] + root_sum(of_ttft, of_tpot, of_length))


def length_deviation(length: Component) -> Array:
    """Relative deviation of a length's quantiles from its mean, (1, levels)."""
    return np.asarray(np.expm1(Z * length.sigma - length.sigma**2 / 2))[None, :]


def root_sum(*deviations: Array) -> Array:
    """Add independent deviations as signed squares: exact for normal ones, and monotone."""
    total = np.asarray(sum(d * np.abs(d) for d in deviations))
    return np.asarray(np.copysign(np.sqrt(np.abs(total)), total))


def shifted(latency: Latency, mean: Array, deviation: Array) -> Latency:
    """The latency moved to a new mean, with one more deviation."""
    own = latency.quantiles - latency.mean[:, None]
    return Latency(mean, np.maximum(mean[:, None] + root_sum(own, deviation), 0.0))


_LEAST_SHAPE = 0.1
"""Of less evenly spread times the mean is all that is kept."""


def skewed_quantiles(mean: Array, variance: Array) -> Array:
    """Quantiles at `LEVELS` of a time with this mean [s] and variance [s^2], (rows, levels): gamma
    (by Wilson and Hilferty, 1931) where it varies less than an exponential one, and 0 or, with the
    rest of the probability, exponential where it varies more."""
    shape = mean**2 / np.maximum(variance, 1e-300)
    shape = np.minimum(np.maximum(shape, _LEAST_SHAPE), 1e12)[:, None]
    cube = 1 - 1 / (9 * shape) + Z / np.sqrt(9 * shape)
    rare = 2 * shape / (1 + shape)
    exponential = np.maximum(np.log(rare / (1 - LEVELS)), 0.0) / rare
    gamma = np.maximum(cube, 0.0) ** 3
    # Between the two, shapes of 1 to 2, the one goes over into the other.
    part = np.minimum(np.maximum(shape - 1, 0.0), 1.0)
    return np.asarray(mean[:, None] * (part * gamma + (1 - part) * exponential))
