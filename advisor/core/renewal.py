"""How many requests arrive in a time: those of a renewal process, near another arrival or not.

Times between arrivals are gamma distributed with squared variation `cv2`: 1 is Poisson, less is
more regular, more comes in bursts.
"""

from __future__ import annotations

from math import gamma

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_LEAST_CV2 = 0.02
"""Arrivals more regular than this meet others as these do: the series needs more terms below."""

_FEWEST_TERMS, _TERMS_EACH, _MOST_SCALED = 12, 2, 25.0
"""Terms of the series of the incomplete gamma function: so many, and two for each unit of its
argument, which is cut at 25; what is left out is 2e-8 of it."""


def met(expected: Array, cv2: Array) -> Array:
    """Mean number of arrivals within a time before or after another one, in which `expected` come
    on average: the renewal function. It goes to expected + (cv2 - 1) / 2. `cv2` broadcasts.

    Another comes within the time with probability F, the incomplete gamma function. Regular
    arrivals meet that one at first; a cluster of a burst goes on with each, F / (1 - F) in all.
    """
    if (cv2 == 1).all():
        return expected
    excess, shape = (cv2 - 1) / 2, 1 / np.maximum(cv2, _LEAST_CV2)
    within = np.clip(_incomplete_gamma(shape, shape * expected), 1e-12, 0.999999)
    limit = np.maximum(expected + np.maximum(excess, 0.0), 1e-12)
    bursts = 1 / np.sqrt(np.hypot((1 / within - 1) ** 2, limit**-2))
    regular = np.maximum(within, expected + excess)
    return np.asarray(np.where(cv2 > 1, bursts, np.where(cv2 < 1, regular, expected)))


def _incomplete_gamma(shape: Array, value: Array) -> Array:
    """Probability that a gamma distributed number is below a value: x^a e^-x / Gamma(a + 1) times
    1 + x / (a + 1) + x^2 / ((a + 1) (a + 2)) + ... The shape broadcasts to the value."""
    value = np.minimum(value, _MOST_SCALED)
    terms = _FEWEST_TERMS + int(_TERMS_EACH * value.max(initial=0))
    factors = np.cumprod([1 / (shape + k) for k in range(1, terms)], axis=0)
    series = np.broadcast_to(factors[-1], value.shape).copy()
    for factor in (*factors[-2::-1], 1.0):
        series *= value
        series += factor
    gammas = np.reshape([gamma(a + 1) for a in shape.ravel().tolist()], shape.shape)
    return np.asarray(np.exp(shape * np.log(np.maximum(value, 1e-300)) - value) / gammas * series)


def dispersion(excess: Array, cv2: Array) -> Array:
    """Variance over mean of the number that comes in a time: 1 and twice the mean `excess` met
    within it, which grows as a power of the time at first."""
    shape = 1 / np.maximum(cv2, 1e-9)
    part = np.clip(excess / np.where(cv2 == 1, 1.0, (cv2 - 1) / 2), 0.0, 1.0)
    grown = np.where(cv2 > 1, 1 - shape / (1 + shape) * (1 - part), 0.5 * (1 + part))
    return np.asarray(np.maximum(1 + 2 * excess * grown, 0.0))


def chances(mean: Array, spread: Array | None, group: Index, came: Index) -> Array:
    """Chances that so many groups of `group` (rows,) arrive as in `came`, none for less than 0; it
    rises by one along its last axis, which is new to the result. The numbers have the means, of
    groups, and the variances over means given, (rows, ...); None: Poisson's.

    Negative binomial where they vary more than Poisson numbers, where less a mixture of these and
    of the mean itself.
    """
    if (group > 1).any():
        chance = _grouped(mean, spread, group, came)
    else:
        chance = _singly(mean, spread, came)
    if spread is None or (spread >= 1).all():
        return chance
    part = mean - np.floor(mean)
    even = np.maximum(1 - np.abs(came - mean[..., None]), 0.0) * (came >= 0)
    less = np.clip(mean * (1 - spread) / np.maximum(mean - part * (1 - part), 1e-12), 0.0, 1.0)
    return np.asarray(chance + (even - chance) * less[..., None])


def _singly(mean: Array, spread: Array | None, came: Index) -> Array:
    """Poisson or negative binomial numbers, each from the one before it."""
    share = np.divide(1, came, out=np.zeros(came.shape), where=came > 0)
    if spread is None:
        none, each = np.exp(-mean), mean
        chance = each[..., None] * share
    else:
        spread = np.maximum(spread, 1 + 1e-9)
        over = spread - 1
        none, each = np.exp(-mean * np.log1p(over) / over), (mean - over) / spread
        chance = each[..., None] * share
        chance += (over / spread)[..., None] * (share > 0)
    chance += came <= 0
    for column in range(1, chance.shape[-1]):  # faster than numpy's own cumulative product
        chance[..., column] *= chance[..., column - 1]
    chance *= none[..., None]
    chance *= came >= 0
    return np.asarray(chance)


def _grouped(mean: Array, spread: Array | None, group: Index, came: Index) -> Array:
    """Poisson numbers at multiples of the group, spread out."""
    size = group.reshape(-1, *(1,) * mean.ndim)
    whole = np.maximum(came, 0) * size
    factorials = np.cumsum(np.log(np.maximum(np.arange(int(whole.max()) + 1), 1)))
    logs = whole * np.log(np.maximum(mean[..., None] * size, 1e-300)) - factorials[whole]
    if spread is not None:
        logs /= np.maximum(spread, 1.0)[..., None]
    chance = np.exp(logs - logs.max(axis=-1, keepdims=True)) * (came >= 0)
    return np.asarray(chance / chance.sum(axis=-1, keepdims=True))
