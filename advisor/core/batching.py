"""Continuous batching: how long a request is in service beside n - 1 others, and what that serves.

With n in service, a request sees `own` mixed steps that compute its prompt, and during its decode
`mixed` steps that compute others' prompts beside it; the rest are plain decode steps.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from advisor.core.steps import CAUSES, StepModel, StepTimes
from advisor.core.workload import Workload

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_DENSE_COLUMNS = 32
_GEOMETRIC_COLUMNS = 64
_ELASTICITY_STEP = 4


@dataclass(frozen=True)
class ServiceTable:
    """Functions of the number in service, at n = 1 ... N, shape (layouts, N), seconds.

    `service` S(n) from the first prefill step to the last token; `own_prefill` its prompt's part;
    `decode_step` and `mixed_step` the two kinds of step; `tpot` the mean gap between tokens;
    `mixed_share` the share of gaps that are mixed steps; `prompt_delay` what one prompt adds to
    the steps of those beside it. `rate` is n / S(n) [requests/s].
    """

    service: Array
    own_prefill: Array
    decode_step: Array
    mixed_step: Array
    tpot: Array
    mixed_share: Array
    prompt_delay: Array

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

    def table(self, columns: int) -> ServiceTable:
        """The functions at every n up to `columns`."""
        if columns <= _DENSE_COLUMNS:
            return ServiceTable(*(getattr(self.curves, f)[:, :columns] for f in _TABLE_FIELDS))
        low, part = self._between(np.arange(1, columns + 1))
        return ServiceTable(
            *(_interpolated(getattr(self.curves, f), slice(None), low, part) for f in _TABLE_FIELDS)
        )

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

    def columns_needed(self, layout: Index, slots: Index, arrivals: Array) -> Index:
        """How many columns hold all but a negligible part of the number in service, (rows,).

        The number in service stays near n*, where departures equal `arrivals`, with variance about
        n* / e, e the elasticity of the departure rate there; nine deviations are kept, and never
        more than the slots.
        """
        rates = self.grid / self.curves.service
        here = np.minimum((rates[layout] < arrivals[:, None]).sum(axis=1), len(self.grid) - 1)
        there = np.minimum(here + _ELASTICITY_STEP, len(self.grid) - 1)
        gain = np.log(rates[layout, there] / rates[layout, here])
        growth = np.log(np.maximum(self.grid[there] / self.grid[here], 1 + 1e-9))
        balance = self.grid[here]
        kept = balance + 9 * np.sqrt(balance / np.maximum(gain / growth, 1e-3)) + 40
        return np.asarray(np.minimum(kept.astype(np.int64), slots))

    def _between(self, n: Array | Index) -> tuple[Index, Array]:
        """The grid point at or below each n, and how far n lies towards the next."""
        low = np.clip(
            np.searchsorted(self.grid, n, side="right") - 1, 0, max(len(self.grid) - 2, 0)
        )
        high = np.minimum(low + 1, len(self.grid) - 1)
        width = np.maximum(self.grid[high] - self.grid[low], 1)
        return low, np.clip((n - self.grid[low]) / width, 0.0, 1.0)


_TABLE_FIELDS = tuple(f.name for f in fields(ServiceTable))


@dataclass(frozen=True)
class _Mix:
    """How prompts are cut and packed into mixed steps, each of shape (layouts, columns).

    A prompt takes `chunks` steps; where prompts are short and many, `packed` of them share one.
    """

    chunks: Array
    packed: Array
    mixed_steps: Array


def service_curves(
    steps: StepModel, workload: Workload, batched_tokens: Array, largest: int
) -> ServiceCurves:
    """The curves for n = 1 ... `largest`: at every n up to 32, on a geometric grid above.

    `batched_tokens` is the token budget of a step, shape (layouts, 1).
    """
    grid = _grid(largest)
    n = grid[None, :].astype(np.float64)
    mix = _mix(n, workload, batched_tokens)
    decode, mixed = _step_pair(steps, workload, n, mix)
    gaps = max(workload.output_tokens.mean - 1, 0.0)
    plain = np.maximum(gaps - mix.mixed_steps, 0.0)
    own = mix.chunks * mixed.total
    decoding = plain * decode.total + mix.mixed_steps * mixed.total * (gaps > 0)
    curves = ServiceTable(
        service=own + decoding,
        own_prefill=own,
        decode_step=decode.total,
        mixed_step=mixed.total,
        tpot=decoding / max(gaps, 1.0),
        mixed_share=np.minimum(mix.mixed_steps / max(gaps, 1.0), 1.0),
        prompt_delay=mix.chunks / mix.packed * np.maximum(mixed.total - decode.total, 0.0),
    )
    return ServiceCurves(grid, curves, decode, mixed)


def _mix(n: Array, workload: Workload, batched_tokens: Array) -> _Mix:
    """Prompts per mixed step: one, until n / OSL prompts a step are needed to keep n in service;
    at most what fits beside the decoding tokens."""
    prompt = max(workload.new_input_tokens, 1.0)
    room = np.maximum(batched_tokens - n, 1.0)
    chunks = np.ceil(prompt / room)
    packed = np.clip(n / workload.output_tokens.mean, 1.0, np.maximum(room / prompt, 1.0))
    return _Mix(chunks, packed, np.maximum(n - packed, 0.0) * chunks / packed)


def _step_pair(
    steps: StepModel, workload: Workload, n: Array, mix: _Mix
) -> tuple[StepTimes, StepTimes]:
    prompt, shared = max(workload.new_input_tokens, 1.0), workload.shared_tokens
    context = np.array([[workload.live_context]])
    zero = np.zeros_like(n)
    pairs = prompt * (shared + (prompt + 1) / 2)
    before = shared + prompt * (mix.chunks - 1) / (2 * mix.chunks)
    each = mix.packed / mix.chunks
    decode = steps.times(n, context, zero, zero, zero, zero)
    mixed = steps.times(n, context, prompt * each, pairs * each, before * mix.packed, each)
    return decode, mixed


def _grid(largest: int) -> Index:
    dense = np.arange(1, min(largest, _DENSE_COLUMNS) + 1)
    if largest <= _DENSE_COLUMNS:
        return dense
    rest = np.geomspace(_DENSE_COLUMNS, largest, _GEOMETRIC_COLUMNS).round().astype(np.int64)
    return np.asarray(np.unique(np.concatenate([dense, rest])))


def _interpolated(curve: Array, layout: Index | slice, low: Index, part: Array) -> Array:
    high = np.minimum(low + 1, curve.shape[1] - 1)
    return np.asarray(curve[layout, low] * (1 - part) + curve[layout, high] * part)
