"""Continuous batching: how long a request is in service beside n - 1 others, and what that serves.

With n in service, a request sees mixed steps that compute its prompt, and during its decode mixed
steps that compute others' prompts beside it; the rest are plain decode steps. Where there are more
prompts than steps between its tokens, it waits for the others before its own.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from advisor.core.lengths import RequestClass
from advisor.core.steps import CAUSES, StepModel, StepTimes
from advisor.core.workload import Workload

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Prompted = Workload | RequestClass
"""Whose prompts are computed: those of all requests or of a class."""

_DENSE_COLUMNS = 32
_GEOMETRIC_COLUMNS = 64
_ELASTICITY_STEP = 4
_PLATEAU = 1e-9


@dataclass(frozen=True)
class ServiceTable:
    """Functions of the number in service, at n = 1 ... N, shape (layouts, N), seconds.

    `service` S(n) from the first prefill step to the last token; `own_prefill` its prompt's part;
    `decode_step` and `mixed_step` the two kinds of step; `tpot` the mean gap between tokens;
    `mixed_share` the share of gaps that are mixed steps; `prompt_time` the time between prompts
    while every step computes some (unless `own_prefill` has that wait already), `prompt_load` what
    one prompt adds to steps, and no less than its share of a step's room for prompts; `room` how
    many prompts a step has room for [1]. `rate` is n / S(n) [requests/s].
    """

    service: Array
    own_prefill: Array
    decode_step: Array
    mixed_step: Array
    tpot: Array
    mixed_share: Array
    prompt_time: Array
    prompt_load: Array
    room: Array

    @property
    def rate(self) -> Array:
        """Departures per second with n in service."""
        return np.arange(1, self.service.shape[1] + 1) / self.service


@dataclass(frozen=True)
class ServiceCurves:
    """The functions of a `ServiceTable` at the n of `grid`, linear between its points, and the
    decode and mixed steps there with their causes; shape (layouts, len(grid))."""

    grid: Index
    curves: ServiceTable
    decode: StepTimes
    mixed: StepTimes
    steps: StepModel
    workload: Workload
    batched_tokens: Array

    def room(self, layout: Index, decode: Array, of: Prompted) -> tuple[Array, Array]:
        """Steps that a mean prompt takes beside so many sequences, and how many prompts fit a step,
        (rows,). What the last step of a prompt leaves is the next one's: not a whole number."""
        prompt = of.prompt_tokens.mean
        tokens = self.batched_tokens[layout, 0] - decode * self.steps.speculation.verified
        tokens = np.maximum(tokens, 1.0)
        return np.maximum(prompt / tokens, 1.0), np.maximum(tokens / prompt, 1.0)

    def own_prompt(self, layout: Index, decode: Array, of: RequestClass) -> Array:
        """Time that a prompt of a class takes alone beside so many sequences, (rows,) [s]."""
        steps = self.step_times(layout, decode, np.ones((len(layout), 1)), of)[:, 0]
        return np.asarray(self.room(layout, decode, of)[0] * steps)

    def step_times(self, layout: Index, decode: Array, prompts: Array, of: Prompted) -> Array:
        """Steps of each row's layout with its `decode` sequences (rows,) and numbers of mean
        prompts, or of a chunk of each where they take several steps, (rows, numbers) [s]."""
        chunks = self.room(layout, decode, of)[0]
        rows, numbers = prompts.shape
        first = np.concatenate([[0], np.cumsum(np.bincount(layout))])[layout]
        order = np.argsort(layout, kind="stable")
        place = np.empty(rows, dtype=np.int64)
        place[order] = np.arange(rows)
        place -= first
        shape = len(self.batched_tokens), int(place.max(initial=0)) + 1, numbers
        padded = [np.ones(shape), np.zeros(shape), np.ones(shape)]
        columns = (decode[:, None], prompts, chunks[:, None])
        for table, values in zip(padded, columns, strict=True):
            table[layout, place] = values
        wide = [table.reshape(shape[0], shape[1] * shape[2]) for table in padded]
        context = np.array([[self.workload.live_context]])
        mixed = mixed_arguments(of, wide[1], wide[2])
        times = self.steps.times(wide[0], context, *mixed).total
        return np.asarray(times.reshape(shape)[layout, place])

    def table(self, columns: int, layouts: Index | slice = slice(None)) -> ServiceTable:
        """The functions at every n up to `columns`, of all layouts or of some."""
        curves = np.stack([getattr(self.curves, name)[layouts] for name in _TABLE_FIELDS])
        if columns <= _DENSE_COLUMNS:
            return ServiceTable(*curves[:, :, :columns])
        low, part = self._between(np.arange(1, columns + 1))
        high = np.minimum(low + 1, curves.shape[2] - 1)
        return ServiceTable(*(curves[:, :, low] * (1 - part) + curves[:, :, high] * part))

    def rate_at(self, layout: Index, n: Index) -> Array:
        """Departures per second of each layout with its n in service, (rows,)."""
        low, part = self._between(n)
        return np.asarray(n / _interpolated(self.curves.service, layout, low, part))

    def causes_at(self, layout: Index, n: Array) -> tuple[StepTimes, StepTimes]:
        """Decode and mixed step of each layout, causes apart, with its n in service, (rows,)."""
        low, part = self._between(n)
        decode, mixed = (
            StepTimes(*(_interpolated(getattr(step, c), layout, low, part) for c in CAUSES))
            for step in (self.decode, self.mixed)
        )
        return decode, mixed

    def prompt_share(self, layout: Index, n: Array, gaps: float) -> Array:
        """Share of the steps' time that prompts take with n in service, (rows,): what one adds to
        steps, over that and its `gaps` decode steps, each shared by the n in it."""
        low, part = self._between(n)
        prompt, step = (
            _interpolated(curve, layout, low, part)
            for curve in (self.curves.prompt_load, self.curves.decode_step)
        )
        return np.asarray(prompt / (prompt + gaps * step / np.maximum(n, 1.0)))

    def columns_needed(
        self, layout: Index, slots: Index, arrivals: Array, peakedness: Array
    ) -> Index:
        """How many columns hold all but a negligible part of the number in service, (rows,).

        The number in service stays near n*, where departures equal `arrivals`, with variance about
        n* z / e, e the elasticity of the departure rate there and z the peakedness of arrivals;
        nine deviations are kept, and never more than the slots.
        """
        rates = self.grid / self.curves.service
        here = np.minimum((rates[layout] < arrivals[:, None]).sum(axis=1), len(self.grid) - 1)
        there = np.minimum(here + _ELASTICITY_STEP, len(self.grid) - 1)
        gain = np.log(rates[layout, there] / rates[layout, here])
        growth = np.log(np.maximum(self.grid[there] / self.grid[here], 1 + 1e-9))
        balance = self.grid[here]
        wide = np.maximum(peakedness, 1.0)
        kept = balance + 9 * np.sqrt(balance * wide / np.maximum(gain / growth, 1e-3)) + 40 * wide
        return np.asarray(np.minimum(kept.astype(np.int64), slots))

    def _between(self, n: Array | Index) -> tuple[Index, Array]:
        """The grid point at or below each n, and how far n lies towards the next."""
        last = len(self.grid) - 1
        below = np.searchsorted(self.grid, n, side="right") - 1
        low = np.maximum(np.minimum(below, last - 1), 0)
        width = np.maximum(self.grid[np.minimum(low + 1, last)] - self.grid[low], 1)
        return low, np.minimum(np.maximum((n - self.grid[low]) / width, 0.0), 1.0)


_TABLE_FIELDS = tuple(f.name for f in fields(ServiceTable))


@dataclass(frozen=True)
class _Mix:
    """How prompts are cut and packed into mixed steps, each of shape (layouts, columns).

    A prompt takes `chunks` steps; where prompts are short and many, `packed` of them share one,
    and there is `room` for so many.
    """

    chunks: Array
    packed: Array
    room: Array
    mixed_steps: Array


def service_curves(
    steps: StepModel, workload: Workload, batched_tokens: Array, largest: int
) -> ServiceCurves:
    """The curves for n = 1 ... `largest`: at every n up to 32, on a geometric grid above.

    `batched_tokens` is the token budget of a step, shape (layouts, 1).
    """
    grid = _grid(largest)
    n = grid[None, :].astype(np.float64)
    gaps, decodes = workload.gaps, steps.speculation.steps(workload.gaps)
    mix = _mix(n, workload, batched_tokens, steps.speculation.verified, decodes)
    decode, mixed = _step_pair(steps, workload, n, mix)
    share = np.minimum(mix.mixed_steps / decodes, 1.0) if gaps else np.zeros_like(mix.mixed_steps)
    waited = np.maximum(mix.mixed_steps - decodes, 0.0)  # steps of others' prompts before its own
    tpot = (1 - share) * decode.total + share * mixed.total if gaps else np.zeros_like(share)
    tpot = tpot * (decodes / gaps) if gaps else tpot
    alone = mix.chunks * mixed.total
    own = alone + waited * mixed.total
    adds = mix.chunks / mix.packed * (mixed.total - decode.total)
    curves = ServiceTable(
        service=own + gaps * tpot,
        own_prefill=own,
        decode_step=decode.total,
        mixed_step=mixed.total,
        tpot=tpot,
        mixed_share=share,
        prompt_time=alone / mix.packed * (1 - waited / np.maximum(mix.mixed_steps, 1e-12)),
        prompt_load=np.maximum(alone / mix.room, adds),
        room=mix.room,
    )
    starved = (mix.mixed_steps >= decodes) & (mix.packed >= mix.room * (1 - 1e-9))
    found = ServiceCurves(grid, curves, decode, mixed, steps, workload, batched_tokens)
    return _self_limited(found, gaps, starved)


def _self_limited(curves: ServiceCurves, gaps: float, starved: NDArray[np.bool_]) -> ServiceCurves:
    """Where prompts fill the budget of every step (`starved`), steps stay as they were where that
    begins, and so does what is served.

    More sequences would leave a step no room for prompts, so those that arrive wait for theirs and
    no more decode than before: the wait is in the prompt's part. It begins at the first starved n
    of the grid, or at the n before it if that serves more. What is starved at n is so above it.
    """
    if not starved.any():
        return curves
    rate = curves.grid / curves.curves.service
    row, first = np.arange(len(rate)), starved.argmax(axis=1)
    before = np.maximum(first - 1, 0)
    more = rate[row, before] > rate[row, first] * (1 + _PLATEAU)  # a tie is none by rounding
    begins = np.where(more, before, first)[:, None]
    at = np.where(starved, begins, np.arange(rate.shape[1]))

    def kept(curve: Array) -> Array:
        return np.take_along_axis(np.broadcast_to(curve, at.shape), at, axis=1)

    table = {name: kept(getattr(curves.curves, name)) for name in _TABLE_FIELDS}
    table["service"] *= curves.grid / curves.grid[at]
    table["own_prefill"] = table["service"] - gaps * table["tpot"]
    decode, mixed = (
        StepTimes(*(kept(getattr(step, cause)) for cause in CAUSES))
        for step in (curves.decode, curves.mixed)
    )
    return replace(curves, curves=ServiceTable(**table), decode=decode, mixed=mixed)


def _mix(
    n: Array, workload: Workload, batched_tokens: Array, verified: int, decodes: float
) -> _Mix:
    """Prompts per mixed step: of n sequences, in service for a step and `decodes` more, as many
    arrive in a step on average, a Poisson number; a step that has any has a / (1 - e^-a) of them,
    and no more than fit beside the decoding tokens, `verified` of each sequence."""
    prompt = workload.prompt_tokens.mean
    tokens = np.maximum(batched_tokens - n * verified, 1.0)
    room = np.maximum(tokens / prompt, 1.0)
    chunks = np.zeros_like(tokens)
    for one in workload.prompt_tokens.components:
        chunks = chunks + one.share * np.ceil(one.mean / tokens)
    arriving = n / (decodes + min(workload.output_tokens.mean, 1.0))
    packed = np.minimum(arriving / -np.expm1(-arriving), np.minimum(room, n))
    return _Mix(chunks, packed, room, np.maximum(n - packed, 0.0) * chunks / packed)


def step_arguments(
    steps: StepModel, workload: Workload, n: Array, batched_tokens: Array
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """What `StepModel.times` takes of a decode step with n in service, and of one with prompts."""
    decodes = steps.speculation.steps(workload.gaps)
    return _arguments(
        workload, n, _mix(n, workload, batched_tokens, steps.speculation.verified, decodes)
    )


def _arguments(
    workload: Workload, n: Array, mix: _Mix
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    context, zero = np.array([[workload.live_context]]), np.zeros_like(n)
    mixed = mixed_arguments(workload, mix.packed, mix.chunks)
    return (n, context, zero, zero, zero, zero), (n, context, *mixed)


def _step_pair(
    steps: StepModel, workload: Workload, n: Array, mix: _Mix
) -> tuple[StepTimes, StepTimes]:
    decode, mixed = _arguments(workload, n, mix)
    return steps.times(*decode), steps.times(*mixed)


def mixed_arguments(
    of: Prompted, prompts: Array, chunks: Array
) -> tuple[Array, Array, Array, Array]:
    """What `StepModel.times` takes of a step that computes one of `chunks` of each of `prompts`:
    prefill tokens, their pairs, tokens in the cache before them, and prompts completed."""
    prompt, pairs, cached = of.prompt_tokens.mean, of.prompt_pairs, of.cached_tokens
    before = cached + prompt * (chunks - 1) / (2 * chunks)
    each = prompts / chunks
    return prompt * each, pairs * each, before * prompts, each


def _grid(largest: int) -> Index:
    dense = np.arange(1, min(largest, _DENSE_COLUMNS) + 1)
    if largest <= _DENSE_COLUMNS:
        return dense
    rest = np.geomspace(_DENSE_COLUMNS, largest, _GEOMETRIC_COLUMNS).round().astype(np.int64)
    return np.asarray(np.unique(np.concatenate([dense, rest])))


def _interpolated(curve: Array, layout: Index, low: Index, part: Array) -> Array:
    high = np.minimum(low + 1, curve.shape[1] - 1)
    return np.asarray(curve[layout, low] * (1 - part) + curve[layout, high] * part)
