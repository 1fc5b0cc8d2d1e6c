"""Whether a layout fits, and how many tokens of KV cache it leaves.

KV cache = memory * utilization - weights - activation peak - what lies outside the framework; which
terms an engine counts is in `engines.toml`. All per rank; a pipeline holds what its tightest stage
holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from advisor.core.coefficients import EngineSettings
from advisor.core.layouts import ACTIVATION_BYTES, Layout, StageLoad, stage_loads
from advisor.core.mixers import UNBOUNDED
from advisor.core.model import ModelProfile
from advisor.core.units import GIB
from advisor.core.workload import Workload

Array = NDArray[np.float64]

BLOCK_TOKENS = 16
"""Tokens of a KV block, unless an engine is told otherwise."""

UNCERTAIN_SHARE = 0.1
"""A fit is uncertain when it holds by less than this share of the budget: the p90 error of budgets
computed from profiles alone against 32 start-up logs is 9.7 %."""

_OUTSIDE_RANKS = (1, 2, 4, 8)
_OUTSIDE_GIB = (0.12, 0.55, 0.9, 1.6)
"""Memory outside the framework [GiB] by TP: medians of 33 and 4 start-up logs at TP 1 and 2; at 4
and 8 the logs are too few (0.13 to 7.2 GiB) and the values lie between them."""


@dataclass(frozen=True)
class MemoryFit:
    """Memory of one rank of the tightest stage, arrays of shape (layouts,), in bytes.

    `need` is the KV cache of one request of the longest length planned for, `per_sequence` that of
    a request at its mean live context. `capacity_tokens` and `max_concurrency` are per replica, at
    that context.
    """

    weights: Array
    activation: Array
    budget: Array
    kv_cache: Array
    need: Array
    per_sequence: Array
    capacity_tokens: Array
    max_concurrency: Array

    def take(self, rows: Sequence[int]) -> MemoryFit:
        """The fit of some of the layouts."""
        index = np.array(rows, dtype=np.int64)
        return MemoryFit(*(getattr(self, f.name)[index] for f in fields(self)))

    @property
    def fits(self) -> NDArray[np.bool_]:
        """Whether at least one request can be held."""
        return self.kv_cache >= self.need

    @property
    def uncertain(self) -> NDArray[np.bool_]:
        """Whether it fits by less than the error of the budget."""
        return self.fits & (self.kv_cache - self.need < UNCERTAIN_SHARE * self.budget)


def memory_fit(
    model: ModelProfile,
    layouts: Sequence[Layout],
    settings: Sequence[EngineSettings],
    workload: Workload,
) -> MemoryFit:
    """The fit of each layout under its engine's settings."""
    rows = [_tightest(model, la, se, workload) for la, se in zip(layouts, settings, strict=True)]
    return MemoryFit(*np.array(rows, dtype=np.float64).reshape(-1, len(fields(MemoryFit))).T)


def _tightest(
    model: ModelProfile, layout: Layout, settings: EngineSettings, workload: Workload
) -> tuple[float, ...]:
    stages = stage_loads(model, layout.split)
    rows = [_stage(model, layout, settings, workload, stage) for stage in stages]
    return min(rows, key=lambda row: row[-1])


def _stage(
    model: ModelProfile,
    layout: Layout,
    settings: EngineSettings,
    workload: Workload,
    stage: StageLoad,
) -> tuple[float, ...]:
    total = layout.hardware.memory_bytes
    activation = activation_bytes(model, settings, stage)
    outside = _outside_bytes(layout, settings)
    if settings.budget == "of_total":
        budget = total * settings.memory_utilization
        kv_cache = budget - stage.weight_bytes - activation - outside
    else:
        budget = total - activation - outside
        kv_cache = settings.memory_utilization * (budget - stage.weight_bytes)
    context = workload.live_context
    alone = held_bytes(stage, context) + stage.state_bytes
    shared = shared_bytes(stage, context, workload.shared_tokens)
    groups = layout.split.attention_data_parallel
    own, room = alone - shared, max(kv_cache - shared, 0.0)
    concurrency = groups * room / own if own else UNBOUNDED  # a stage may hold no cache at all
    return (
        stage.weight_bytes,
        activation,
        budget,
        kv_cache,
        admitted_bytes(stage, workload.longest, settings.max_num_batched_tokens),
        alone,
        max(kv_cache, 0.0) * groups / alone * context if alone else UNBOUNDED,
        concurrency,
    )


def activation_bytes(model: ModelProfile, settings: EngineSettings, stage: StageLoad) -> float:
    """Peak of activations in the profiling run [bytes]: the sampler's logits, or the widest MLP.

    The sampler takes a fixed number of bytes for each sequence and vocabulary entry (see
    `engines.toml`), the MLP tokens * (gate, up and product + 4 hidden) in 16 bits.
    """
    if settings.activation_in_reserve:
        return 0.0
    shape = model.architecture
    sampler = settings.sampler_bytes * settings.max_num_seqs * shape.vocab_size
    widest = stage.widest_activation + 4 * shape.hidden_size
    return max(sampler, settings.max_num_batched_tokens * widest * ACTIVATION_BYTES)


def held_bytes(stage: StageLoad, tokens: float) -> float:
    """KV cache that a sequence keeps on a rank [bytes]: at most a window and a block."""
    return sum(
        cache.kv_bytes * (tokens if tokens <= cache.kept else cache.kept + BLOCK_TOKENS)
        for cache in stage.caches
    )


def shared_bytes(stage: StageLoad, tokens: float, shared: float) -> float:
    """What of a sequence's KV cache is the prefix of `shared` tokens, kept once for all [bytes]:
    as far as its windows still reach back to it."""
    return sum(
        cache.kv_bytes * max(0.0, min(shared, cache.kept - (tokens - shared)))
        for cache in stage.caches
    )


def admitted_bytes(stage: StageLoad, tokens: float, batched_tokens: int) -> float:
    """KV cache that an engine reserves to admit a request [bytes].

    Whole blocks; a sliding layer reserves min(window - 1 + batched tokens, length) and one block
    more (vLLM 0.11: 4,874,895,360 bytes for gpt-oss-120b at 131,072 tokens and 1,024 batched).
    """
    size = stage.state_bytes
    for cache in stage.caches:
        blocks = np.ceil(tokens / BLOCK_TOKENS)
        if cache.kept < UNBOUNDED:
            kept = min(cache.kept - 1 + batched_tokens, tokens)
            blocks = np.ceil(kept / BLOCK_TOKENS) + 1
        size += cache.kv_bytes * BLOCK_TOKENS * blocks
    return float(size)


def _outside_bytes(layout: Layout, settings: EngineSettings) -> float:
    """Memory outside the framework, and CUDA graphs where the engine counts them [bytes]."""
    ranks = min(layout.split.tensor_parallel, _OUTSIDE_RANKS[-1])
    return GIB * (float(np.interp(ranks, _OUTSIDE_RANKS, _OUTSIDE_GIB)) + settings.graph_gib)
