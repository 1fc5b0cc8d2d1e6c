"""Prompts that wait at the starts of steps: a Markov chain from one step to the next.

A step decodes every running sequence, and computes the prompts that wait when it begins, as many as
it has room for. Those that come meanwhile wait for the next. The longer a step, the more come: so
mixed steps follow one another, a request that had its first token meets the prompts that came
behind it, and waits are longer than the means of steps tell. The number waiting, the state, settles
within a few steps, while the number of sequences that decode hardly moves: the chain takes that
number as given.

A prompt longer than a step's room takes several steps, which are one transition here. Where many
share a step, states count groups of them. Rows are plans.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gamma

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.int64]

FEWEST_STATES, MOST_STATES = 8, 64
_SAMPLED = 6
"""Transitions for which the beginning of a decode is followed; what is left then shrinks in
proportion."""

_LAG = 0.3
"""How long before a request others came that it finds waiting, in mean steps; as simulated."""

_LEAST_CV2 = 0.02
"""Arrivals more regular than this meet others as these do: the series needs more terms below."""

_GAMMA_TERMS, _MOST_SCALED = 60, 25.0
"""Terms of the series of the incomplete gamma function, right up to this argument."""

_BURST_STEPS = 4
"""Rounds in which the prompts met in a burst, and the time that they take, are found."""

MOST_BUSY = 0.95
"""Share of time that prompts are taken to fill at most, where more of them would divide by 0."""

_LOG_FACTORIAL = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, MOST_STATES)))])

_NODES = np.array([0.5 - np.sqrt(1 / 12), 0.5 + np.sqrt(1 / 12)])
"""Moments of a step at which an arrival is looked at: Gauss-Legendre, exact for mean and variance
of what is left of it."""


@dataclass(frozen=True)
class Prompts:
    """What waits: `arrivals` of prompts [1/s] with squared variation `arrivals_cv2` of the times
    between, each of `chunks` steps, or `room` of them in one step (in groups of `group`), arrays of
    shape (rows,). `load` is the share of time that they take in full steps, `length_cv2` the
    squared variation of their lengths."""

    arrivals: Array
    arrivals_cv2: Array
    chunks: Array
    room: Index
    group: Index
    load: Array
    length_cv2: float


@dataclass(frozen=True)
class PromptChain:
    """The chain of each row, solved. `step` (rows, states) is the step [s] that computes so many
    groups, `share` (rows, states) how often it is taken; `gap` its mean [s], `gap_variance` the
    variance of a step and `drift` that of many steps' sum, per step [s^2]."""

    prompts: Prompts
    step: Array
    share: Array
    gap: Array
    gap_variance: Array
    drift: Array
    _seconds: Array
    _visits: Array
    _samples: Array
    _steps: Array
    _moves: list[tuple[Array, float, Array]]

    def decode(self, steps: Array) -> Array:
        """Mean time of so many steps after a prompt was computed [s], (rows,).

        They begin behind the prompts that came while it was: steps * mean + h(start) - h(end), with
        h the potentials of the chain. h(end) fades as the chain forgets.
        """
        transitions = steps / self._steps
        place = np.minimum(transitions, _SAMPLED)
        low = np.minimum(place.astype(np.int64), _SAMPLED - 1)
        row, part = np.arange(len(low)), place - low
        end = self._samples[row, low] * (1 - part) + self._samples[row, low + 1] * part
        with np.errstate(divide="ignore", invalid="ignore"):
            fades = self._samples[:, -1] / self._samples[:, -2]
        fades = np.clip(np.nan_to_num(fades), 0.0, 0.999)
        end = end * fades ** np.maximum(transitions - _SAMPLED, 0.0)
        return np.asarray(steps * self.gap + self._samples[:, 0] - end)

    def own(self, length: float = 1.0) -> Array:
        """Time that a prompt of so many mean lengths takes alone beside those that decode [s]."""
        chunks, group = self.prompts.chunks, self.prompts.group
        one = self.step[:, 0] + (self.step[:, 1] - self.step[:, 0]) / group
        plain = self.step[:, 0]
        return np.asarray(plain + (chunks * one - plain) * length)

    def pace(self) -> Array:
        """Time from one prompt to the next where so many wait that steps are full [s], (rows,)."""
        full = np.minimum(self.prompts.room, self.step.shape[1] - 1)
        return np.asarray(self._seconds[np.arange(len(full)), full] / (full * self.prompts.group))

    def stretch(self) -> Array:
        """How much longer steps get for each second that their decode part does, (rows,): by the
        prompts, too, that come in that time."""
        room = self.prompts.room[:, None]
        full = (self.step[:, -1:] - self.step[:, :1]) / np.minimum(room, self.step.shape[1] - 1)
        next_one = np.diff(self.step, axis=1, append=self.step[:, -1:])
        more = np.where(np.arange(self.step.shape[1]) < room, next_one, full)
        each = (self.share * more).sum(axis=1) * self.prompts.chunks / self.prompts.group
        return np.asarray(1 / (1 - np.clip(self.prompts.arrivals * each, 0.0, MOST_BUSY)))

    def queue(self, cv2: Array) -> Array:
        """Mean wait behind the prompts of a burst [s], (rows,), where arrivals of squared variation
        `cv2` come in bursts, else 0: of those met while they are computed, or, under load, that of
        GI/G/1 by Kraemer and Langenbach-Belz (1976)."""
        prompts, pace = self.prompts, self.pace()
        before = np.zeros_like(pace)
        for _ in range(_BURST_STEPS):
            before = met(prompts.arrivals * (1 + before) * pace, cv2)
        load, lengths = np.minimum(prompts.load, 0.999), prompts.length_cv2
        less = np.exp(-(1 - load) * (cv2 - 1) / np.maximum(cv2 + 4 * lengths, 1.0))
        loaded = pace * load / (1 - load) * (cv2 + lengths) / 2 * less
        return np.where(cv2 > 1, np.maximum(before * pace, loaded), 0.0)

    def gap_quantiles(self, levels: Array) -> Array:
        """Steps that a share of all steps does not exceed, (rows, levels) [s]; where lengths vary,
        each step with prompts stands for three, of shorter, mean and longer ones."""
        values, shares = self.step[:, None, :], self.share[:, None, :]
        if self.prompts.length_cv2:
            plain, states = self.step[:, :1, None], np.arange(self.step.shape[1])
            together = np.minimum(states, self.prompts.room[:, None]) * self.prompts.group[:, None]
            sigma = np.sqrt(np.log1p(self.prompts.length_cv2 / np.maximum(together, 1)))[:, None, :]
            nodes = np.array([-1.0, 0.0, 1.0])[:, None] * np.sqrt(3.0)
            factor = np.exp(nodes * sigma - sigma**2 / 2)
            most = values.max(axis=2, keepdims=True)
            longer = np.minimum(plain + (values - plain) * factor, np.maximum(most, values))
            values = np.where(states > 0, longer, values)
            shares = shares * np.array([1 / 6, 2 / 3, 1 / 6])[:, None]
        shape = np.broadcast_shapes(values.shape, shares.shape)
        values, shares = (
            np.broadcast_to(each, shape).reshape(shape[0], shape[1] * shape[2])
            for each in (values, shares)
        )
        order = np.argsort(values, axis=1)
        up_to = np.cumsum(np.take_along_axis(shares, order, axis=1), axis=1)
        place = (up_to[:, :, None] < levels * (1 - 1e-9)).sum(axis=1)
        place = np.minimum(place, values.shape[1] - 1)
        return np.asarray(np.take_along_axis(np.take_along_axis(values, order, axis=1), place, 1))

    def wait(self, idle: Array) -> tuple[Array, Array]:
        """Mean and variance of the time from an arrival to its first token [s], (rows,). `idle` is
        the probability that no sequence decodes, so that without prompts no step is under way.

        It is what is left of the step, and the steps that follow until one's own: that computes
        what was left over and all that came in the step, or, where this is more than its room,
        others' come before.
        """
        prompts, states = self.prompts, np.arange(self.step.shape[1])
        room = prompts.room[:, None]
        left = states - np.minimum(states, room)
        seconds = self._seconds
        own = seconds + np.diff(seconds, axis=1, append=seconds[:, -1:]) / prompts.group[:, None]
        passes, place = states // room, states % room
        most = np.take_along_axis(seconds, np.minimum(room, states[-1]), axis=1)
        behind = np.where(passes > 0, passes * most + np.take_along_axis(own, place, axis=1), 0.0)
        none_before = (passes == 0).astype(np.float64)
        under_way = np.where(states == 0, 1 - idle[:, None], 1.0)
        total = (self._visits * seconds).sum(axis=1, keepdims=True)
        alone = idle * self._visits[:, 0] * seconds[:, 0] / total[:, 0]
        mean, square = alone * own[:, 0], alone * own[:, 0] ** 2
        for length, chance, unseen in self._moves:
            weight = self._visits * length * under_way / total * (chance / len(_NODES))
            moves = unseen
            if _renewing(prompts):
                moves = reached(prompts, length, left, seen=True)
                weight = _as_seen(weight, prompts, self.gap)
            together, together_square = _mean_of(moves, own), _mean_of(moves, own**2)
            for node in _NODES:
                ahead = reached(prompts, length * node, left, seen=True)
                first = _mean_of(ahead, none_before)
                rest = length * (1 - node)
                later = _mean_of(ahead, behind) + first * together
                squared = _mean_of(ahead, behind**2) + first * together_square
                mean = mean + (weight * (rest + later)).sum(axis=1)
                square = square + (weight * (rest**2 + 2 * rest * later + squared)).sum(axis=1)
        variance = square - mean**2
        if prompts.length_cv2:
            added = own[:, 0] - self.step[:, 0] * prompts.chunks
            waiting = prompts.arrivals * mean
            variance = variance + added**2 * prompts.length_cv2 * waiting
        return np.asarray(mean), np.asarray(np.maximum(variance, 0.0))


def states_needed(
    load: Array, at_once: Array, burst: Array, variability: float
) -> tuple[int, Index]:
    """How many states hold what waits, and groups of how many prompts they count, (rows,): what
    comes in a step, with a `burst` in it, and a queue whose tail falls as that of M/G/1 does, at a
    `load` of full steps with prompts."""
    at_once = at_once + 5 * np.sqrt(at_once)
    queue = 4 * variability * load / np.maximum(1 - load, 0.05)
    needed = at_once + 4 * burst + queue + 6
    group = np.maximum(np.ceil(at_once / (MOST_STATES - 16)), 1.0).astype(np.int64)
    states = np.ceil((needed / group).max(initial=0))
    return int(np.clip(states, FEWEST_STATES, MOST_STATES)), group


def solve(step: Array, prompts: Prompts) -> PromptChain:
    """The stationary chain. `step` (rows, states) are the steps with 0, 1, ... groups of prompts,
    no more than the room [s]; the last state stands for all above it."""
    states = step.shape[1]
    numbers = np.arange(states)
    served = np.minimum(numbers, prompts.room[:, None])
    left = numbers - served
    steps = np.where(numbers > 0, prompts.chunks[:, None], 1.0)
    seconds = step * steps
    each = [
        (length, chance, reached(prompts, length, left))
        for length, chance in _durations(seconds, step, served, prompts)
    ]
    moves = np.sum([chance * one for _, chance, one in each], axis=0)
    system = np.linalg.inv(np.eye(states) - moves + 1.0)
    visits = np.maximum(system.sum(axis=1), 0.0)
    visits /= visits.sum(axis=1, keepdims=True)
    pace = (visits * steps).sum(axis=1)
    gap = (visits * seconds).sum(axis=1) / pace
    excess = seconds - gap[:, None] * steps
    potential = _mean_of(system, excess)
    potential -= (visits * potential).sum(axis=1, keepdims=True)
    begun = visits * served
    begun[:, 1] += 1e-300  # where prompts come so rarely that none is seen
    begun /= begun.sum(axis=1, keepdims=True)
    behind = reached(prompts, seconds, left, seen=True) if _renewing(prompts) else moves
    begun = np.matmul(begun[:, None, :], behind)[:, 0]
    samples = [potential]
    for _ in range(_SAMPLED):
        samples.append(_mean_of(moves, samples[-1]))
    plain = visits * excess**2
    share = visits * steps / pace[:, None]
    return PromptChain(
        prompts=prompts,
        step=step,
        share=share,
        gap=gap,
        gap_variance=np.maximum((share * step**2).sum(axis=1) - gap**2, 0.0),
        drift=np.maximum((2 * visits * excess * potential - plain).sum(axis=1) / pace, 0.0),
        _seconds=seconds,
        _visits=visits,
        _samples=np.stack([(begun * each).sum(axis=1) for each in samples], axis=1),
        _steps=pace,
        _moves=each,
    )


def reached(prompts: Prompts, seconds: Array, left: Index, seen: bool = False) -> Array:
    """Distribution of the groups that wait after times of shape (rows, states) that began with so
    many `left`, in a new last axis; what exceeds the states is in the last. `seen`: in a time that
    begins or ends with another arrival, which in bursts is followed by more, in regular arrivals by
    fewer.

    Mean and variance of what comes are those of a renewal process. Where it varies more than
    Poisson numbers the distribution is negative binomial, where less a mixture of theirs and of the
    mean itself.
    """
    states, groups = seconds.shape[1], prompts.group[:, None]
    mean = prompts.arrivals[:, None] * seconds
    number = np.arange(states) - left[..., None]
    came = np.maximum(number, 0)
    if (prompts.arrivals_cv2 == 1).all() and (groups == 1).all():
        logs = came * np.log(np.maximum(mean, 1e-300))[..., None] - _LOG_FACTORIAL[came]
        chance = np.exp(logs - mean[..., None]) * (number >= 0)
        chance[..., -1] = np.maximum(1 - chance[..., :-1].sum(axis=-1), 0.0)
        return np.asarray(chance)
    cv2 = prompts.arrivals_cv2[:, None]
    around = met(mean, cv2)
    # A busy queue sees how arrivals vary over as many steps as it takes to empty.
    longer = mean / np.maximum(1 - prompts.load, 0.05)[:, None]
    dispersion = _dispersion(met(longer, cv2) - longer, cv2)
    mean = (np.maximum(around, 1e-12) if seen else mean) / groups
    chance = _counts(mean, np.maximum(dispersion, 1.0), prompts.group)
    if (dispersion < 1).any():
        part = mean - np.floor(mean)
        even = np.maximum(1 - np.abs(np.arange(states) - mean[..., None]), 0.0)
        even[..., -1] += 1 - even.sum(axis=-1)
        less = mean * (1 - dispersion) / np.maximum(mean - part * (1 - part), 1e-12)
        less = np.clip(less, 0.0, 1.0)[..., None]
        chance = chance * (1 - less) + even * less
    moved = np.take_along_axis(chance, came, axis=-1) * (number >= 0)
    moved[..., -1] += 1 - moved.sum(axis=-1)
    return np.asarray(moved)


def _counts(mean: Array, dispersion: Array, group: Index) -> Array:
    """Negative binomial numbers of groups with these means and variances over means, (rows, states,
    states); of Poisson numbers at multiples of the group, spread out, where groups are counted."""
    number = np.arange(1, mean.shape[1])
    above = dispersion[..., None]
    if (group == 1).all():
        pull = 1 - 1 / above
        ratio = pull + (mean[..., None] / above - pull) / number
        logs = np.cumsum(np.log(np.maximum(ratio, 1e-300)), axis=-1)
    else:
        whole = number * group[:, None, None]
        factorials = np.cumsum(np.log(np.arange(1, int(whole.max()) + 1)))
        logs = whole * np.log(np.maximum(mean[..., None] * group[:, None, None], 1e-300))
        logs = (logs - factorials[whole - 1]) / above
    logs = np.concatenate([np.zeros((*mean.shape, 1)), logs], axis=-1)
    chance = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray(chance / chance.sum(axis=-1, keepdims=True))


def met(expected: Array, cv2: Array) -> Array:
    """Mean number of arrivals within a time before or after another one, in which `expected` come
    on average: the renewal function of gamma distributed times between arrivals of squared
    variation `cv2`. It goes to expected + (cv2 - 1) / 2.

    Another comes within the time with probability F, the incomplete gamma function. Regular
    arrivals meet that one at first; a cluster of a burst goes on with each, F / (1 - F) in all.
    """
    cv2 = np.broadcast_to(cv2, expected.shape)
    excess, shape = (cv2 - 1) / 2, 1 / np.maximum(cv2, _LEAST_CV2)
    scaled = np.minimum(shape * expected, _MOST_SCALED)
    term = np.exp(shape * np.log(np.maximum(scaled, 1e-300)) - scaled) / _gamma_function(shape + 1)
    within = term.copy()
    for k in range(1, _GAMMA_TERMS):
        term = term * scaled / (shape + k)
        within += term
    within = np.clip(within, 1e-12, 0.999999)
    limit = expected + np.maximum(excess, 0.0)
    bursts = ((within / (1 - within)) ** -4 + np.maximum(limit, 1e-12) ** -4) ** -0.25
    regular = np.maximum(within, expected + excess)
    return np.asarray(np.where(cv2 > 1, bursts, np.where(cv2 < 1, regular, expected)))


def _gamma_function(value: Array) -> Array:
    each, where = np.unique(value, return_inverse=True)
    return np.array([gamma(x) for x in each])[where].reshape(value.shape)


def _dispersion(excess: Array, cv2: Array) -> Array:
    """Variance over mean of the number that comes in a time: 1 and twice the mean `excess` met
    within it, which grows as a power of the time at first."""
    shape = 1 / np.maximum(cv2, 1e-9)
    part = np.clip(excess / np.where(cv2 == 1, 1.0, (cv2 - 1) / 2), 0.0, 1.0)
    grown = np.where(cv2 > 1, 1 - shape / (1 + shape) * (1 - part), 0.5 * (1 + part))
    return np.asarray(np.maximum(1 + 2 * excess * grown, 0.0))


def _as_seen(weight: Array, prompts: Prompts, gap: Array) -> Array:
    """The states as arrivals find them: in bursts more often with other prompts, which came a short
    time before, than at any time, in regular arrivals less often."""
    lag = _LAG * prompts.arrivals * gap
    cv2 = prompts.arrivals_cv2
    density = (met(1.5 * lag, cv2) - met(0.5 * lag, cv2)) / lag
    tilted = weight.copy()
    tilted[:, 1:] *= density[:, None]
    whole = np.maximum(tilted.sum(axis=1, keepdims=True), 1e-300)
    return np.asarray(tilted / whole * weight.sum(axis=1, keepdims=True))


def _durations(
    seconds: Array, step: Array, served: Array, prompts: Prompts
) -> list[tuple[Array, float]]:
    """Times of the transitions with their chances: two, a deviation of the lengths to each side,
    where lengths vary."""
    if not prompts.length_cv2:
        return [(seconds, 1.0)]
    plain = step[:, :1] * np.where(served > 0, prompts.chunks[:, None], 1.0)
    together = np.maximum(served * prompts.group[:, None], 1)
    off = np.minimum(np.sqrt(prompts.length_cv2 / together), 0.98) * (seconds - plain)
    return [(seconds - off, 0.5), (seconds + off, 0.5)]


def _renewing(prompts: Prompts) -> bool:
    """Whether some arrivals are not Poisson's, so that another arrival tells of more or fewer."""
    return bool((prompts.arrivals_cv2 != 1).any())


def _mean_of(chance: Array, values: Array) -> Array:
    """Means of values (rows, states) over distributions (rows, states, states), (rows, states)."""
    return np.asarray(np.matmul(chance, values[:, :, None])[:, :, 0])
