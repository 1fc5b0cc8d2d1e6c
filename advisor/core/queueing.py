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
    z = np.ones_like(arrivals) * peakedness
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

    def quantiles(self, levels: Array) -> Array:
        """Waits [s] that a share of requests does not exceed, (rows, levels)."""
        above = np.log(np.maximum(self.probability, 1e-300)[:, None] / (1 - levels))
        return np.maximum(above, 0.0) / self.decay[:, None]


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
