"""Queues of one replica: the birth-death chain of requests in service, and its waiting times.

Rows are plans, columns the number in service. Rates are per second. See the tests for the closed
forms (M/M/B) that these functions reproduce exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_NEVER = 1e-12
"""Share of the arrival rate that stands for no births at all."""

_NO_WAIT = 1e12
"""Decay [1/s] that stands for a wait that is always 0."""

_NEWTON_STEPS = 40
_NEWTON_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Stationary:
    """The stationary distribution of a replica.

    `found` (rows, N) is the probability that a request is served beside n - 1 others, n = 1 ... N
    (those that wait are served in a full batch). `wait_probability` is that of finding all slots
    taken, `queued` the mean number waiting, `mean` the mean number in service and waiting.
    """

    found: Array
    wait_probability: Array
    queued: Array
    mean: Array


def stationary(
    rate: Array, slots: NDArray[np.int64], arrivals: Array, peakedness: Array | float = 1.0
) -> Stationary:
    """Solve the birth-death chain with deaths at `rate`[min(n, slots)].

    `rate` (rows, N) is the departure rate with n = 1 ... N in service, `slots` (rows,) the largest
    number served at once, `arrivals` (rows,) below rate[slots]. Arrivals with a coefficient of
    variation Ca have peakedness z = (1 + Ca^2) / 2: births at lambda / z + (1 - 1 / z) mu(n), which
    come at lambda on average, bunch for z > 1 and space out for z < 1 (Bernoulli-Poisson-Pascal
    traffic; z = 1 is Poisson). The geometric tail past `slots` is summed analytically.
    Probabilities are kept as logarithms until they are normalised.
    """
    rows, columns = rate.shape
    n, row = np.arange(1, columns + 1), np.arange(rows)
    inside = n <= slots[:, None]
    z = np.broadcast_to(peakedness, arrivals.shape)
    base, pull = (arrivals / z)[:, None], (1 - 1 / z)[:, None]
    births = np.concatenate([base, base + pull * rate], axis=1)
    births = np.maximum(births, _NEVER * arrivals[:, None])
    log_p = np.concatenate(
        [np.zeros((rows, 1)), np.cumsum(np.log(births[:, :-1] / rate), axis=1)], axis=1
    )
    log_p[:, 1:][~inside] = -np.inf
    weight = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    last, ratio = weight[row, slots], births[row, slots] / rate[row, slots - 1]
    tail = last / (1 - ratio)
    total = weight.sum(axis=1) - last + tail
    weight /= total[:, None]
    waiting = tail / total
    found = weight[:, :-1] * births[:, :-1]
    found[:, 1:] *= inside[:, 1:]
    of_waiting = waiting * births[row, slots]
    found[row, slots - 1] += of_waiting
    seen = found.sum(axis=1)
    queued = waiting * ratio / (1 - ratio)
    in_service = (weight[:, 1:] * n).sum(axis=1) + slots * (waiting - weight[row, slots])
    return Stationary(found / seen[:, None], of_waiting / seen, queued, in_service + queued)


@dataclass(frozen=True)
class Wait:
    """A waiting time: 0, or with `probability` exponential with mean 1 / `decay` [s]."""

    probability: Array
    decay: Array

    @property
    def mean(self) -> Array:
        """Mean wait [s]."""
        return self.probability / self.decay


def slot_wait(chain: Stationary, saturation: Array, arrivals: Array, variability: Array) -> Wait:
    """Wait for a place in a batch.

    P(W > t) = P(n >= B) exp(-(mu(B) - lambda) t) holds for exponential work; the mean is scaled by
    `variability` = (Ca^2 + Cs^2) / 2 of arrivals and of work per request (Kingman), so that fixed
    lengths halve it.
    """
    return Wait(chain.wait_probability, (saturation - arrivals) / variability)


def prefill_wait(busy: Array, rest: Array, load: Array, variability: Array | float) -> Wait:
    """Wait of a prompt behind the prompts that are being computed when it comes, met with
    probability `busy`, and behind those that came before it.

    `busy` is the share of time in which prompts are computed, `rest` the mean rest of their steps
    [s], `load` the share of time that prompts take at least. For Poisson arrivals the mean is
    busy * rest / (1 - load): M/G/1 where a prompt fills its step (lambda E[P^2] / (2 (1 - lambda
    E[P]))), and no queue where many share one. The queue's part is scaled by `variability`. Loads
    are cut at 0.999: such a plan is saturated.
    """
    load = np.minimum(load, 0.999)
    mean = busy * rest * (1 + variability * load / (1 - load))
    with np.errstate(divide="ignore", invalid="ignore"):
        decay = np.where(mean > 0, busy / mean, np.inf)
    return Wait(np.minimum(busy, 0.999), decay)


def combined_wait_quantile(first: Wait, second: Wait, level: Array) -> Array:
    """Quantiles [s] of the sum of two independent waits, shape (rows, levels).

    The tail of the sum is P1 (1 - P2) e^(-at) + P2 (1 - P1) e^(-bt) + P1 P2 H(t), with H the tail
    of the sum of two exponentials. Where it starts above 1 - level, the quantile is found by
    Newton steps on its logarithm, kept within a shrinking bracket.
    """
    p, q = first.probability, second.probability
    target = np.broadcast_to(1 - level, (len(p), len(level)))
    row, column = np.nonzero(1 - ((1 - p) * (1 - q))[:, None] > target)
    result = np.zeros(target.shape)
    if len(row):
        a, b = (
            np.where(wait.probability[row] > 0, np.minimum(wait.decay[row], _NO_WAIT), _NO_WAIT)
            for wait in (first, second)
        )
        result[row, column] = _tail_inverse(p[row], a, q[row], b, target[row, column])
    return result


def _tail_inverse(p: Array, a: Array, q: Array, b: Array, target: Array) -> Array:
    """Time at which the tail of the sum of two zero-inflated exponentials falls to `target`."""
    b = np.where(np.abs(a - b) < 1e-6 * a, b * (1 + 1e-5), b)
    both = p * q / (b - a)
    of_a, of_b = p * (1 - q) + both * b, q * (1 - p) - both * a
    low, high = np.zeros_like(target), np.log(2 / target) * (1 / a + 1 / b)
    slower = np.minimum(a, b)
    t = np.clip(np.log(np.maximum(p, q) / target) / slower, 0.0, high)
    for _ in range(_NEWTON_STEPS):
        ea, eb = of_a * np.exp(-a * t), of_b * np.exp(-b * t)
        tail = np.maximum(ea + eb, 1e-300)
        above = tail > target
        low, high = np.where(above, t, low), np.where(above, high, t)
        slope = np.maximum((a * ea + b * eb) / tail, 1e-12 * slower)
        step = t + np.log(tail / target) / slope
        inside = (step >= low) & (step <= high)
        before, t = t, np.where(inside, step, (low + high) / 2)
        if np.all(np.abs(t - before) <= _NEWTON_TOLERANCE * t):
            break
    return t
