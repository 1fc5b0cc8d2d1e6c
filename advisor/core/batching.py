"""Continuous batching: how long a request is in service beside n - 1 others, and what that serves.

With n in service, a request sees `own` mixed steps that compute its prompt, and during its decode
`mixed` steps that compute others' prompts beside it; the rest are plain decode steps.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from advisor.core.steps import StepModel, StepTimes
from advisor.core.workload import Workload

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_DENSE_COLUMNS = 32
_GEOMETRIC_COLUMNS = 64


@dataclass(frozen=True)
class ServiceCurves:
    """Functions of the number in service, tabulated at n = 1 ... N, shape (layouts, N), seconds.

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

    def first(self, columns: int) -> ServiceCurves:
        """The curves up to n = `columns`."""
        if columns >= self.service.shape[1]:
            return self
        return ServiceCurves(*(getattr(self, f.name)[:, :columns] for f in fields(self)))

    def columns_needed(self, layout: Index, slots: Index, arrivals: Array) -> Index:
        """How many columns hold all but a negligible part of the number in service, (rows,).

        The number in service stays near n*, where departures equal `arrivals`, with variance about
        n* / e, e the elasticity of the departure rate there; nine deviations are kept, and never
        more than the slots.
        """
        rate = self.rate
        columns = rate.shape[1]
        balance = np.empty(len(layout), dtype=np.int64)
        for i in np.unique(layout):
            mine = layout == i
            balance[mine] = np.searchsorted(rate[i], arrivals[mine]) + 1
        here, there = np.minimum(balance, columns), np.minimum(balance * 3 // 2 + 8, columns)
        gain = np.log(rate[layout, there - 1] / rate[layout, here - 1])
        with np.errstate(divide="ignore", invalid="ignore"):
            elasticity = np.maximum(np.nan_to_num(gain / np.log(there / here)), 1e-3)
        kept = balance + 9 * np.sqrt(balance / elasticity) + 40
        return np.minimum(kept.astype(np.int64), slots)


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
    """Tabulate the curves for n = 1 ... `largest`.

    `batched_tokens` is the token budget of a step, shape (layouts, 1). The step model is evaluated
    at every n up to 32 and on a geometric grid above; between its points curves are linear.
    """
    grid = _grid(largest)
    n = grid[None, :].astype(np.float64)
    mix = _mix(n, workload, batched_tokens)
    decode, mixed = _step_pair(steps, workload, n, mix)
    gaps = max(workload.output_tokens.mean - 1, 0.0)
    plain = np.maximum(gaps - mix.mixed_steps, 0.0)
    own = mix.chunks * mixed.total
    decoding = plain * decode.total + mix.mixed_steps * mixed.total * (gaps > 0)
    curves = (
        own + decoding,
        own,
        decode.total,
        mixed.total,
        decoding / max(gaps, 1.0),
        np.minimum(mix.mixed_steps / max(gaps, 1.0), 1.0),
        mix.chunks / mix.packed * np.maximum(mixed.total - decode.total, 0.0),
    )
    return ServiceCurves(*(_fill(curve, grid, largest) for curve in curves))


def operating_point(
    steps: StepModel, workload: Workload, batched_tokens: Array, in_service: Array
) -> tuple[StepTimes, StepTimes]:
    """The decode step and the step that computes a prompt, with their causes, at one number in
    service for each layout, shape (layouts, 1)."""
    n = np.maximum(in_service, 1.0)
    return _step_pair(steps, workload, n, _mix(n, workload, batched_tokens))


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


def _grid(largest: int) -> NDArray[np.int64]:
    dense = np.arange(1, min(largest, _DENSE_COLUMNS) + 1)
    if largest <= _DENSE_COLUMNS:
        return dense
    rest = np.geomspace(_DENSE_COLUMNS, largest, _GEOMETRIC_COLUMNS).round().astype(np.int64)
    return np.unique(np.concatenate([dense, rest]))


def _fill(curve: Array, grid: NDArray[np.int64], largest: int) -> Array:
    """Linear interpolation from the grid to every n."""
    if len(grid) == largest:
        return curve
    n = np.arange(1, largest + 1)
    right = np.clip(np.searchsorted(grid, n), 1, len(grid) - 1)
    weight = (n - grid[right - 1]) / (grid[right] - grid[right - 1])
    return curve[:, right - 1] * (1 - weight) + curve[:, right] * weight
