"""Queues of one replica: the birth-death chain of requests in service, and its waiting times.

Rows are plans, columns the number in service. Rates are per second. See the tests for the closed
forms (M/M/B) that these functions reproduce exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_NO_WAIT = 1e12
"""Decay [1/s] that stands for a wait that is always 0."""

_NEWTON_STEPS = 40
_NEWTON_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Stationary:
    """The stationary distribution of a replica under Poisson arrivals.

    `found` (rows, N) is the probability that a request is served beside n - 1 others, n = 1 ... N
    (arrivals see time averages; those that wait are served in a full batch). `wait_probability` is
    P(n >= B), `queued` the mean number waiting, `mean` the mean number in service and waiting.
    """

    found: Array
    wait_probability: Array
    queued: Array
    mean: Array


def stationary(rate: Array, slots: NDArray[np.int64], arrivals: Array) -> Stationary:
    """Solve the chain with births at `arrivals` and deaths at `rate`[min(n, slots)].

    `rate` (rows, N) is the departure rate with n = 1 ... N in service, `slots` (rows,) the largest
    number served at once, `arrivals` (rows,) below rate[slots]. The geometric tail past `slots` is
    summed analytically. Probabilities are kept as logarithms until they are normalised.
    """
    rows, columns = rate.shape
    n = np.arange(1, columns + 1)
    inside = n <= slots[:, None]
    with np.errstate(divide="ignore"):
        step = np.log(arrivals)[:, None] - np.log(rate)
    log_p = np.concatenate([np.zeros((rows, 1)), np.cumsum(step, axis=1)], axis=1)
    log_p[:, 1:][~inside] = -np.inf
    weight = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    row = np.arange(rows)
    last = weight[row, slots]
    ratio = arrivals / rate[row, slots - 1]
    tail = last / (1 - ratio)
    total = weight.sum(axis=1) - last + tail
    weight /= total[:, None]
    waiting = tail / total
    found = weight[:, :-1].copy()
    found[row, slots - 1] += waiting
    found[:, 1:] *= inside[:, 1:]
    queued = waiting * ratio / (1 - ratio)
    in_service = (weight[:, 1:] * n).sum(axis=1) + slots * (waiting - weight[row, slots])
    return Stationary(found, waiting, queued, in_service + queued)


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


def prefill_wait(delay: Array, delay_square: Array, arrivals: Array, variability: Array) -> Wait:
    """Wait of a prompt behind other prompts: lambda E[P^2] / (2 (1 - lambda E[P])), met with
    probability lambda E[P]; `variability` scales it for arrivals that are not Poisson.

    `delay` is what one prompt adds to the steps of others. Prompts that take the whole step time
    (lambda E[P] >= 1) are counted as 0.999: such a load is over the saturation of any plan.
    """
    busy = np.minimum(arrivals * delay, 0.999)
    mean = arrivals * delay_square / (2 * (1 - busy)) * variability
    with np.errstate(divide="ignore", invalid="ignore"):
        decay = np.where(mean > 0, busy / mean, np.inf)
    return Wait(busy, decay)


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
        a, b = (np.minimum(wait.decay[row], _NO_WAIT) for wait in (first, second))
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
