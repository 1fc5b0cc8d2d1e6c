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

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from advisor.core.length_totals import COARSE, FINE, Totals, totals
from advisor.core.lengths import Length
from advisor.core.occupancy import States
from advisor.core.renewal import chances, dispersion, met

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_STATES = (10, 24, 64)
"""How many states a chain may have: rows that need as many are solved together."""

_BLOCK_CELLS = 262_144
"""Cells of all transitions of rows solved together, to bound memory."""

_SAMPLED = 6
"""Transitions for which the beginning of a decode is followed; what is left then shrinks in
proportion."""

_LAG = 0.3
"""How long before a request others came that it finds waiting, in mean steps; as simulated."""

_BURST_STEPS = 4
"""Rounds in which the prompts met in a burst, and the time that they take, are found."""

MOST_BUSY = 0.95
"""Share of time that prompts are taken to fill at most, where more of them would divide by 0."""

_NODES = np.array([0.5 - np.sqrt(1 / 12), 0.5 + np.sqrt(1 / 12)])
"""Moments of a step at which an arrival is looked at: Gauss-Legendre, exact for mean and variance
of what is left of it."""


@dataclass(frozen=True)
class Kind:
    """Requests whose mean prompt is `prompt` times that of all, and their answers: of each length
    the share of all requests, and the steps that it takes."""

    prompt: float
    answers: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Prompts:
    """What waits: `arrivals` of prompts [1/s] with squared variation `arrivals_cv2` of the times
    between, each of `chunks` steps, or `room` of them in one step (in groups of `group`; what is
    begun of the last one is left for the next), which is `full` [s] long then, arrays of shape
    (rows,). `load` is the share of time that they take in full steps, `idle` the probability that
    no sequence decodes, so that without prompts no step is under way, `length_cv2` the squared
    variation of their lengths, `lengths` what these are a mixture of, if they are one. `kinds` are
    those of requests that are told apart."""

    arrivals: Array
    arrivals_cv2: Array
    chunks: Array
    room: Array
    group: Index
    full: Array
    load: Array
    idle: Array
    length_cv2: float
    lengths: Length | None = None
    kinds: tuple[Kind, ...] = (Kind(1.0, ()),)

    @property
    def pace(self) -> Array:
        """Time from one prompt to the next where so many wait that steps are full [s], (rows,)."""
        return np.asarray(self.full * self.chunks / (self.room * self.group))

    @cached_property
    def renewing(self) -> bool:
        """Whether some arrivals are not Poisson's: another arrival then tells of more or fewer."""
        return bool((self.arrivals_cv2 != 1).any())

    def take(self, rows: Index | slice) -> Prompts:
        """Some of the rows."""
        return replace(self, **{name: getattr(self, name)[rows] for name in _ARRAYS})


_ARRAYS = [f.name for f in fields(Prompts) if f.name not in ("length_cv2", "lengths", "kinds")]


@dataclass(frozen=True)
class PromptChain:
    """The chain of each row, solved. `step` (rows, states) is the step [s] that computes so many
    groups, `share` (rows, states) how often it is taken, and `seen` how often requests that decode
    see it; `gap` its mean [s], `gap_variance` the variance of a step and `drift` that of many
    steps' sum, per step [s^2]. `wait` and `wait_variance` are those of the time from an arrival to
    its first token [s], [s^2]."""

    prompts: Prompts
    step: Array
    share: Array
    seen: Array
    gap: Array
    gap_variance: Array
    drift: Array
    wait: Array
    wait_variance: Array
    _steps: Array
    _samples: Array

    def decode(self, steps: float, kind: int = 0) -> Array:
        """Mean time of so many steps after a prompt of a kind was computed [s], (rows,).

        They begin behind the prompts that came while it was: steps * mean + h(start) - h(end), with
        h the potentials of the chain. h(end) fades as the chain forgets.
        """
        transitions, samples = steps / self._steps, self._samples[kind]
        place = np.minimum(transitions, _SAMPLED)
        low = np.minimum(place.astype(np.int64), _SAMPLED - 1)
        row, part = np.arange(len(low)), place - low
        end = samples[low, row] * (1 - part) + samples[low + 1, row] * part
        end = end * _fading(samples) ** np.maximum(transitions - _SAMPLED, 0.0)
        return np.asarray(steps * self.gap + samples[0] - end)

    def own(self, length: float = 1.0) -> Array:
        """Time that a prompt of so many mean lengths takes alone beside those that decode [s]."""
        chunks, plain = self.prompts.chunks, self.step[:, 0]
        one = plain + (self.step[:, 1] - plain) / self.prompts.group
        return np.asarray(plain + (chunks * one - plain) * length)

    def stretch(self) -> Array:
        """How much longer steps get for each second that their decode part does, (rows,): by the
        prompts, too, that come in that time."""
        room, states = self.prompts.room, np.arange(self.step.shape[1])
        full = (self.prompts.full - self.step[:, 0]) / room
        more = np.where(states + 1 <= room[:, None], _steps_up(self.step), full[:, None])
        each = np.vecdot(self.share, more) * self.prompts.chunks / self.prompts.group
        busy = np.minimum(np.maximum(self.prompts.arrivals * each, 0.0), MOST_BUSY)
        return np.asarray(1 / (1 - busy))

    def queue(self, cv2: Array) -> Array:
        """Mean wait behind the prompts of a burst [s], (rows,), where arrivals of squared variation
        `cv2` come in bursts, else 0: of those met while they are computed, or, under load, that of
        GI/G/1 by Kraemer and Langenbach-Belz (1976)."""
        if (cv2 <= 1).all():
            return np.zeros_like(cv2)
        prompts, pace = self.prompts, self.prompts.pace
        before = np.zeros_like(pace)
        for _ in range(_BURST_STEPS):
            before = met(prompts.arrivals * (1 + before) * pace, cv2)
        load, lengths = np.minimum(prompts.load, 0.999), prompts.length_cv2
        less = np.exp(-(1 - load) * (cv2 - 1) / np.maximum(cv2 + 4 * lengths, 1.0))
        loaded = pace * load / (1 - load) * (cv2 + lengths) / 2 * less
        return np.where(cv2 > 1, np.maximum(before * pace, loaded), 0.0)

    def gap_quantiles(self, levels: Array) -> Array:
        """Steps that a share of those seen does not exceed, (rows, levels) [s]; where lengths vary,
        each step with prompts stands for three, of shorter, mean and longer ones."""
        values, shares = self.step, self.seen
        if self.prompts.lengths:
            found = totals(self.prompts.lengths, FINE)
            values = np.concatenate(_longer_steps(values, self.prompts, found), axis=1)
            shares = np.concatenate([shares * chance for chance in found.chances], axis=1)
        elif self.prompts.length_cv2:
            plain, states = values[:, :1], np.arange(values.shape[1])
            together = np.minimum(states, self.prompts.room[:, None]) * self.prompts.group[:, None]
            sigma = np.sqrt(np.log1p(self.prompts.length_cv2 / np.maximum(together, 1)))
            most = np.maximum(self.prompts.full[:, None], values)
            factors = (np.exp(node * sigma - sigma**2 / 2) for node in (-np.sqrt(3), 0, np.sqrt(3)))
            spread = [np.minimum(plain + (values - plain) * each, most) for each in factors]
            values = np.concatenate([np.where(states > 0, each, plain) for each in spread], axis=1)
            shares = np.concatenate([shares / 6, shares * 2 / 3, shares / 6], axis=1)
        order = np.arange(len(values))[:, None], np.argsort(values, axis=1)
        return States(shares[order]).quantiles(values[order], levels * (1 - 1e-9))


def states_needed(
    load: Array, at_once: Array, burst: Array, variability: Array
) -> tuple[Index, Index]:
    """How many states hold what waits, and groups of how many prompts they count, (rows,): what
    comes in a step, the `burst` that more than usual come with one, and a queue whose tail falls as
    that of GI/G/1 does, at a `load` of full steps with prompts."""
    at_once = at_once + 5 * np.sqrt(at_once)
    queue = 8 * variability * load / np.maximum(1 - load, 0.05)
    needed = at_once + 18 * np.maximum(burst, 0.0) + queue + 6
    group = np.maximum(np.ceil(at_once / (_STATES[-1] - 16)), 1.0).astype(np.int64)
    place = np.searchsorted(_STATES[:-1], np.ceil(needed / group))
    return np.array(_STATES)[place], group


def solve(step: Array, prompts: Prompts, states: Index) -> PromptChain:
    """The stationary chain of each row, of so many `states` (rows,). `step` (rows, states) are the
    steps with 0, 1, ... groups of prompts, no more than the room [s]; the last state stands for all
    above it."""
    shares, found = np.zeros((2, *step.shape)), np.empty((6, len(step)))
    begun = np.empty((len(prompts.kinds), 1 + _SAMPLED, len(step)))
    sizes = np.where(prompts.group > 1, -states, states)
    for kind in set(sizes.tolist()):
        alike, size = np.flatnonzero(sizes == kind), abs(kind)
        for first in range(0, len(alike), most := _BLOCK_CELLS // size**2):
            rows = alike[first : first + most]
            solved = _solved(step[rows, :size], prompts.take(rows))
            shares[:, rows, :size], found[:, rows], begun[:, :, rows] = solved
    gap, gap_variance, drift, wait, wait_variance, steps = found
    share, seen = shares
    return PromptChain(
        prompts, step, share, seen, gap, gap_variance, drift, wait, wait_variance, steps, begun
    )


def _solved(step: Array, prompts: Prompts) -> tuple[Array, Array, Array]:
    """The shares of each step, (2, rows, states), and the other fields of a `PromptChain`: those of
    all requests (fields, rows), and of each kind (kinds, fields, rows)."""
    states = np.arange(step.shape[1])
    served = np.minimum(states, prompts.room[:, None])
    steps = np.where(states > 0, prompts.chunks[:, None], 1.0)
    seconds = step * steps
    lengths, chances = _lengths(seconds, step, served, prompts)
    if prompts.lengths:
        seconds = np.matvec(lengths.swapaxes(1, 2), chances)
    moves = _moves(prompts, seconds, lengths, chances, served)
    system = np.linalg.inv(np.eye(len(states)) - moves.moves + 1.0)
    visits = np.maximum(system.sum(axis=1), 0.0)
    visits /= visits.sum(axis=1, keepdims=True)
    pace = np.vecdot(visits, steps)
    gap = np.vecdot(visits, seconds) / pace
    excess = seconds - gap[:, None] * steps
    potential = np.matvec(system, excess)
    potential -= np.vecdot(visits, potential)[:, None]
    computed = visits * served
    computed[:, 1] += 1e-300  # where prompts come so rarely that none is seen
    computed /= computed.sum(axis=1, keepdims=True)
    share = visits * steps / pace[:, None]
    square, sums = step**2, excess * (2 * potential - excess)
    if moves.each is not None:
        off = chances[:, None] * (lengths - seconds[:, None])
        uneven = (off * (lengths - seconds[:, None])).sum(axis=1)
        square += uneven / steps
        sums += uneven + 2 * (off * _means(moves.each, potential)).sum(axis=1)
    variance, drift = np.vecdot(share, square) - gap**2, np.vecdot(visits, sums) / pace
    wait, wait_variance = _wait(prompts, step, seconds, moves, visits, gap)
    columns = gap, np.maximum(variance, 0.0), np.maximum(drift, 0.0), wait, wait_variance, pace
    seen, begun = np.zeros_like(share), list[Array]()
    for kind, first in zip(
        prompts.kinds, _begun(prompts, seconds, computed, served, moves), strict=True
    ):
        each = [first]
        for _ in range(_SAMPLED):
            each.append(np.vecmat(each[-1], moves.moves))
        sampled = np.array(each)
        samples = np.vecdot(sampled, potential)
        seen += steps * _visited(kind, sampled, visits, _fading(samples), pace)
        begun.append(samples)
    whole = seen.sum(axis=1, keepdims=True)
    seen = np.where(whole > 0, seen / np.maximum(whole, 1e-300), share)
    return np.array([share, seen]), np.array(columns), np.array(begun)


def _fading(samples: Array) -> Array:
    """What of a potential is left with each transition beyond those sampled, (rows,)."""
    last, before = samples[-1], samples[-2]
    fades = np.divide(last, before, out=np.zeros_like(last), where=before != 0)
    return np.asarray(np.minimum(np.maximum(fades, 0.0), 0.999))


def _visited(kind: Kind, sampled: Array, visits: Array, fades: Array, pace: Array) -> Array:
    """How often requests of a kind are in each state at a transition while they decode, over all
    requests, (rows, states): as `sampled` at first, then ever more as at any time (`visits`)."""
    shares, steps = np.array(kind.answers).reshape(-1, 2).T
    transitions = steps[:, None] / pace
    each = np.minimum(np.maximum(transitions - np.arange(_SAMPLED)[:, None, None], 0.0), 1.0)
    later = np.maximum(transitions - _SAMPLED, 0.0)
    off = shares @ ((1 - fades**later) / (1 - fades))
    found = np.vecdot((shares @ each).T[:, None], sampled[:-1].transpose(1, 2, 0))
    found += (shares @ later - off)[:, None] * visits + off[:, None] * sampled[-1]
    return np.asarray(np.maximum(found, 0.0))


def _begun(
    prompts: Prompts, seconds: Array, computed: Array, served: Array, moves: _Moves
) -> Iterator[Array]:
    """The states in which requests of each kind begin to decode, (rows, states): behind what came
    while their prompt was `computed` with others (rows, states), the longer the longer it is."""
    for kind in prompts.kinds:
        behind = moves.behind
        if kind.prompt != 1:
            amounts = np.maximum(served + (kind.prompt - 1) / prompts.group[:, None], 0.0)
            times = _as_long(seconds, prompts, amounts)[:, None]
            behind = reached(prompts, times, served, seen=True)[:, 0]
        yield np.vecmat(computed, behind)


@dataclass(frozen=True)
class _Moves:
    """Where the transitions of some rows lead from each state: `moves` (rows, states, states) in
    general, `behind` those that another request's arrival is in. Times of transitions [s] are the
    `lengths` (rows, variants, states), of which `chances` (variants,) tells how likely they are,
    and `each` has the moves, None where there is one; `seen` are these moves as an arrival sees
    them, `ahead` (rows, variants, nodes, states, states) those up to a moment of each, None where
    all who wait have room."""

    lengths: Array
    chances: Array
    moves: Array
    each: Array | None
    behind: Array
    seen: Array
    ahead: Array | None


def _moves(
    prompts: Prompts, seconds: Array, lengths: Array, chances: Array, served: Array
) -> _Moves:
    rows, variants, states = lengths.shape
    nodes = variants * len(_NODES) if (prompts.room < states).any() else 0
    within = (lengths[:, :, None] * _NODES[:, None]).reshape(rows, -1, states)[:, :nodes]
    if not prompts.renewing:
        each = reached(prompts, np.concatenate([within, lengths], axis=1), served)
        of_each = each[:, nodes:]
        moves = behind = _expected(of_each, chances)
    else:
        of_each = reached(prompts, lengths, served)
        moves = _expected(of_each, chances)
        mean = seconds[:, None] if variants > 1 else lengths[:, :0]
        times = np.concatenate([within, lengths, mean], axis=1)
        each = reached(prompts, times, served, seen=True)
        behind = each[:, -1]
    ahead = each[:, :nodes].reshape(rows, variants, -1, states, states) if nodes else None
    seen, several = each[:, nodes : nodes + variants], of_each if variants > 1 else None
    return _Moves(lengths, chances, moves, several, behind, seen, ahead)


def _expected(moves: Array, chances: Array) -> Array:
    """Moves in times of which each has its chance, (rows, states, states)."""
    return np.asarray(sum(moves[:, i] * chance for i, chance in enumerate(chances.tolist())))


def _wait(
    prompts: Prompts, step: Array, seconds: Array, moves: _Moves, visits: Array, gap: Array
) -> tuple[Array, Array]:
    """Mean and variance of the time from an arrival to its first token [s], (rows,).

    It is what is left of the step, and the steps that follow until one's own: that computes what
    was left over and all that came in the step, or, where this is more than its room, others' come
    before.
    """
    states, room, lengths = np.arange(step.shape[1]), prompts.room[:, None], moves.lengths
    own = seconds + _steps_up(seconds) / prompts.group[:, None]
    seen = visits / np.vecdot(visits, seconds)[:, None]
    alone = prompts.idle * seen[:, 0] * seconds[:, 0]
    seen[:, 0] *= 1 - prompts.idle
    weight = lengths * seen[:, None] * moves.chances[:, None]
    if prompts.renewing:
        weight = _as_seen(weight, prompts, gap)
    weight = weight[:, :, None] / len(_NODES)
    rest = lengths[:, :, None] * (1 - _NODES[:, None])
    later, squared = (_means(moves.seen, each)[:, :, None] for each in (own, own**2))
    if moves.ahead is not None:
        one = 1 / prompts.group[:, None]
        passes = np.ceil((states + one) / room - 1e-9) - 1
        place = states - passes * room  # of one that was begun before, below 0
        before = passes * (prompts.full * prompts.chunks)[:, None]
        begun = seconds[:, :1] + (own[:, :1] - seconds[:, :1]) * np.minimum(1 + place / one, 1.0)
        last = np.where(place < 0, begun, _at(own, np.maximum(place, 0.0)))
        before = np.where(passes > 0, before + last, 0.0)
        first = _means(moves.ahead, passes == 0)
        later = _means(moves.ahead, before) + first * later
        squared = _means(moves.ahead, before**2) + first * squared
    mean = alone * own[:, 0] + (weight * (rest + later)).sum(axis=(1, 2, 3))
    square = (weight * (rest**2 + 2 * rest * later + squared)).sum(axis=(1, 2, 3))
    variance = alone * own[:, 0] ** 2 + square - mean**2
    if prompts.length_cv2:
        added = own[:, 0] - step[:, 0] * prompts.chunks
        variance = variance + added**2 * prompts.length_cv2 * prompts.arrivals * mean
    return mean, np.maximum(variance, 0.0)


def reached(prompts: Prompts, seconds: Array, served: Array, seen: bool = False) -> Array:
    """Distribution of the groups that wait after times of shape (rows, variants, states) in which
    `served` of the states (rows, states) are computed, a part of one with this as its chance, in a
    new last axis; what exceeds the states is in the last.
    `seen`: in a time that begins or ends with another arrival, which in bursts is followed by more,
    in regular arrivals by fewer.

    Mean and variance of what comes are those of a renewal process.
    """
    states, whole = np.arange(served.shape[1]), np.floor(served + 1e-9)
    left, part = states - whole.astype(np.int64), np.maximum(served - whole, 0.0)
    mean, spread = prompts.arrivals[:, None, None] * seconds, None
    if prompts.renewing:
        cv2 = prompts.arrivals_cv2[:, None, None]
        # A busy queue sees how arrivals vary over as many steps as it takes to empty.
        longer = mean / np.maximum(1 - prompts.load, 0.05)[:, None, None]
        around, later = met(np.stack([mean, longer]), cv2)
        spread = dispersion(later - longer, cv2)
        mean = np.maximum(around, 1e-12) if seen else mean
    came = (states - left[..., None])[:, None]
    moved = chances(mean / prompts.group[:, None, None], spread, prompts.group, came)
    if len(rows := np.flatnonzero(part.any(axis=1))):
        first = int(np.argmax(part.any(axis=0)))
        some, chance = moved[rows, :, first:], part[rows, None, first:]
        for state in states[:-1].tolist():  # one less is left: what reached the next state
            some[..., state] += chance * (some[..., state + 1] - some[..., state])
        some[..., -1] *= 1 - chance
        moved[rows, :, first:] = some
    moved[..., -1] += 1 - moved.sum(axis=-1)
    return moved


def _as_seen(weight: Array, prompts: Prompts, gap: Array) -> Array:
    """The states as arrivals find them: in bursts more often with other prompts, which came a short
    time before, than at any time, in regular arrivals less often."""
    lag = _LAG * prompts.arrivals * gap
    before, after = met(np.stack([0.5 * lag, 1.5 * lag]), prompts.arrivals_cv2)
    tilted = weight.copy()
    tilted[..., 1:] *= ((after - before) / lag)[:, None, None]
    whole = np.maximum(tilted.sum(axis=-1, keepdims=True), 1e-300)
    return np.asarray(tilted / whole * weight.sum(axis=-1, keepdims=True))


def _lengths(seconds: Array, step: Array, served: Index, prompts: Prompts) -> tuple[Array, Array]:
    """Times of the transitions [s], (rows, variants, states), and how likely each is, (variants,):
    one, or where lengths vary two, a deviation of them to each side, of a mixture some more."""
    if not prompts.length_cv2:
        return seconds[:, None], np.ones(1)
    if prompts.lengths:
        found = totals(prompts.lengths, COARSE)
        each = _longer_steps(seconds, prompts, found, all_of_them=True)
        return np.stack(each, axis=1), found.chances
    plain = step[:, :1] * np.where(served > 0, prompts.chunks[:, None], 1.0)
    together = np.maximum(served * prompts.group[:, None], 1)
    off = np.minimum(np.sqrt(prompts.length_cv2 / together), 0.98) * (seconds - plain)
    return np.stack([seconds - off, seconds + off], axis=1), np.full(2, 0.5)


def _longer_steps(
    step: Array, prompts: Prompts, found: Totals, all_of_them: bool = False
) -> list[Array]:
    """Steps of shape (rows, states) with as many prompts that are shorter or longer in all, one for
    each node: steps with as many more or fewer mean prompts. What has no room is left for later,
    or, `all_of_them`, computed in further steps."""
    served = np.minimum(np.arange(step.shape[1]), prompts.room[:, None])
    together = np.rint(served * prompts.group[:, None]).astype(np.int64)
    amounts = served * found.of(together)
    if not all_of_them:
        amounts = np.minimum(amounts, prompts.room[:, None])
    return [_as_long(step, prompts, each) for each in amounts]


def _as_long(seconds: Array, prompts: Prompts, amounts: Array) -> Array:
    """Times of transitions that compute these amounts, in mean prompts (or groups of them): between
    those of whole numbers; beyond a step's room in proportion."""
    room = np.minimum(prompts.room, seconds.shape[1] - 1)[:, None]
    within = np.minimum(amounts, room)
    part = within - np.floor(within)
    last = room - np.floor(room)  # the last step up is to a part of a group
    part = np.where((within > np.floor(room)) & (last > 0), part / np.maximum(last, 1e-12), part)
    return np.asarray(_at(seconds, np.floor(within) + part) * np.maximum(amounts / room, 1.0))


def _at(values: Array, place: Array) -> Array:
    """Values (rows, states) between states, none beyond the last."""
    low = np.minimum(place.astype(np.int64), values.shape[1] - 2)
    part, row = np.minimum(place - low, 1.0), np.arange(len(values))[:, None]
    return np.asarray(values[row, low] * (1 - part) + values[row, low + 1] * part)


def _means(chance: Array, values: Array) -> Array:
    """Means of values (rows, states) over distributions (rows, ..., states, states), (rows, ...,
    states)."""
    inner = (1,) * (chance.ndim - 3)
    return np.asarray(np.matvec(chance, values.reshape(len(values), *inner, -1)))


def _steps_up(values: Array) -> Array:
    """How much more the next of values (rows, states) is; 0 for the last."""
    up = np.zeros_like(values)
    np.subtract(values[:, 1:], values[:, :-1], out=up[:, :-1])
    return up
