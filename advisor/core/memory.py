"""Whether a layout fits, and how many tokens of KV cache it leaves.

KV cache = memory * utilization - weights - activation peak - what lies outside the framework; which
terms an engine counts is in `engines.toml`. Every term has a range, and so has what is left. All
per rank; every stage of a pipeline has to hold a request, and what the tightest holds counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from advisor.core.engines import EngineSettings
from advisor.core.layouts import ACTIVATION_BYTES, Layout, StageLoad, stage_loads
from advisor.core.mixers import UNBOUNDED
from advisor.core.model import ModelProfile
from advisor.core.paging import Paging, paging
from advisor.core.units import GIB, Estimate
from advisor.core.workload import Workload

Array = NDArray[np.float64]

_OUTSIDE_RANKS = (1, 2, 4, 8)
_OUTSIDE_GIB = ((0.0, 0.1, 0.1, 0.8), (0.12, 0.55, 0.9, 1.6), (0.9, 1.4, 1.9, 3.0))
"""Memory outside the framework [GiB] by TP, least, expected and most: start-up logs show a median
of 0.12 at TP 1 (33 logs) and 0.55 at TP 2 (4); at 4 and 8 they are too few (0.13 to 7.2 GiB) and
the values lie between them."""

_WEIGHTS_OFF = {"plain": (0.005, 0.014), "quantized": (0.01, 0.05)}
"""By which share weights come out smaller or larger than counted. Start-up logs: plain and 8-bit
weights within 1.4 %, others up to 8 % over (padding by kernels, parts left unquantized)."""


@dataclass(frozen=True)
class MemoryFit:
    """Memory of one rank of the stage that fails, else of the tightest; arrays of shape (layouts,),
    in bytes.

    `kv_cache` is expected between `kv_cache_low` and `kv_cache_high`. `need` is the KV cache of one
    request of the longest length admitted, `per_sequence` that of a request at its mean live
    context. The others are the least of all stages: `spare`, with its range, is what the KV cache
    has beyond `need`; `capacity_tokens` and `max_concurrency` are per replica, at the mean live
    context; requests leave part of their last blocks unused, so that fewer fit than their tokens
    would. `reported_tokens` is what the engine prints (nan: not known), `state_blocks` how many
    sequences it starts with (inf: any number).
    """

    weights: Array
    activation: Array
    kv_cache: Array
    kv_cache_low: Array
    kv_cache_high: Array
    need: Array
    per_sequence: Array
    spare: Array
    spare_low: Array
    spare_high: Array
    reported_tokens: Array
    state_blocks: Array
    capacity_tokens: Array
    max_concurrency: Array

    def take(self, rows: Sequence[int]) -> MemoryFit:
        """The fit of some of the layouts."""
        index = np.array(rows, dtype=np.int64)
        return MemoryFit(*(getattr(self, f.name)[index] for f in fields(self)))

    @property
    def fits(self) -> NDArray[np.bool_]:
        """Whether every stage can hold a request."""
        return self.spare >= 0

    @property
    def uncertain(self) -> NDArray[np.bool_]:
        """Whether it fits by less than the error of the estimate."""
        return self.fits & (self.spare_low < 0)


_LEAST = [field.name for field in fields(MemoryFit)].index("spare")
"""The first of the fields that are the least of all stages."""


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
    """The row of the stage that a request exceeds by most, or that holds fewest requests."""
    stages = dict.fromkeys(stage_loads(model, layout.split))  # most are alike
    rows = [_stage(model, layout, settings, workload, stage) for stage in stages]
    if len(rows) == 1:
        return rows[0]
    shown = min(rows, key=lambda row: (min(row[_LEAST], 0.0), row[-1]))
    least = zip(*(row[_LEAST:] for row in rows), strict=True)
    return *shown[:_LEAST], *(min(column, key=_known_first) for column in least)


def _known_first(value: float) -> tuple[bool, float]:
    return math.isnan(value), value


def _stage(
    model: ModelProfile,
    layout: Layout,
    settings: EngineSettings,
    workload: Workload,
    stage: StageLoad,
) -> tuple[float, ...]:
    of_stage = stage_room(model, layout, settings, stage)
    kv_cache, pages = of_stage.kv_cache, of_stage.pages
    longest, batched = settings.max_model_len, settings.max_num_batched_tokens
    classes = [
        (part, *_running(pages, one.live_context, one.shared_tokens))
        for part, one in workload.decoding
    ]
    alone, filled, shared = (sum(one[0] * one[i] for one in classes) for i in (1, 2, 3))
    prefixes = sum(one[3] for one in classes)  # each class has its own
    need = _admitted(pages, longest, batched)
    groups, left = layout.split.attention_data_parallel, max(kv_cache.value, 0.0)
    own, room = alone - shared, max(kv_cache.value - prefixes, 0.0)
    concurrency = groups * room / own if own else UNBOUNDED  # a stage may hold no cache at all
    reported = pages.reported_tokens(kv_cache.value, settings)
    limited = settings.state_blocks_limit_seqs and pages.state_groups
    return (
        of_stage.weights,
        of_stage.activation.value,
        kv_cache.value,
        kv_cache.low,
        kv_cache.high,
        need,
        alone,
        kv_cache.value - need,
        kv_cache.low - need,
        kv_cache.high - need,
        math.nan if reported is None else reported,
        left // pages.block_bytes if limited else math.inf,
        left * groups / filled * workload.live_context if filled else UNBOUNDED,
        concurrency,
    )


@lru_cache(maxsize=1024)
def _running(pages: Paging, context: float, prefix: float) -> tuple[float, float, float]:
    """What a running sequence takes, what of it is filled, and its shared prefix [bytes]."""
    held, filled = pages.held_bytes(context), pages.filled_bytes(context)
    return held, filled, pages.shared_bytes(context, prefix)


@lru_cache(maxsize=1024)
def _admitted(pages: Paging, tokens: float, batched_tokens: int) -> float:
    return pages.admitted_bytes(tokens, batched_tokens)


@dataclass(frozen=True)
class StageRoom:
    """Memory of one rank of a stage [bytes]: its weights, the activation peak, what is left for the
    KV cache, and the pages that is dealt out in."""

    weights: float
    activation: Estimate
    kv_cache: Estimate
    pages: Paging


def stage_room(
    model: ModelProfile, layout: Layout, settings: EngineSettings, stage: StageLoad
) -> StageRoom:
    """What a stage leaves for the KV cache."""
    weights = stored_bytes(model, layout, settings, stage)
    activation = activation_bytes(model, settings, stage)
    kv_cache = kv_cache_bytes(layout, settings, weights, activation)
    pages = paging(stage, settings, layout.split.decode_context_parallel)
    return StageRoom(weights, activation, kv_cache, pages)


def longest_request(model: ModelProfile, layout: Layout, settings: EngineSettings) -> int:
    """The longest request [tokens] whose KV cache the tightest stage can admit."""
    most = UNBOUNDED
    for stage in stage_loads(model, layout.split):
        room = stage_room(model, layout, settings, stage)
        low, high = 0, int(settings.max_model_len)
        while low < high:
            middle = (low + high + 1) // 2
            taken = room.pages.admitted_bytes(middle, settings.max_num_batched_tokens)
            if taken <= room.kv_cache.value:
                low = middle
            else:
                high = middle - 1
        most = min(most, low)
    return int(most)


def stored_bytes(
    model: ModelProfile, layout: Layout, settings: EngineSettings, stage: StageLoad
) -> float:
    """Weights as the engine keeps them [bytes]: MXFP4 experts are padded for their kernels."""
    moe = model.architecture.moe
    if layout.split.weights != "mxfp4" or moe is None:
        return stage.weight_bytes
    by_hidden, by_width = settings.mxfp4_multiples
    hidden = moe.latent_size or model.architecture.hidden_size
    width = moe.intermediate_size * layout.split.expert_parallel // layout.split.tensor_parallel
    padded = _rounded_up(hidden, by_hidden) * _rounded_up(width, by_width) / (hidden * width)
    return stage.weight_bytes + (padded - 1) * stage.stored_expert_bytes


def activation_bytes(model: ModelProfile, settings: EngineSettings, stage: StageLoad) -> Estimate:
    """Peak of activations in the profiling run [bytes]: the sampler's logits, or the widest MLP.

    The sampler takes a number of bytes for each sequence and vocabulary entry, on the last stage;
    the MLP tokens * (gate, up and product + 4 hidden) in 16 bits.
    """
    if not settings.activation_counted:
        return Estimate(0.0, 0.0, 0.0)
    shape = model.architecture
    logits = settings.max_num_seqs * shape.vocab_size * (stage.head_bytes > 0)
    widest = stage.widest_activation + 4 * shape.hidden_size
    layer = settings.max_num_batched_tokens * widest * ACTIVATION_BYTES
    return Estimate(*(max(size * logits, layer) for size in settings.sampler_bytes))


def kv_cache_bytes(
    layout: Layout, settings: EngineSettings, weights: float, activation: Estimate
) -> Estimate:
    """What is left for the KV cache [bytes], negative where weights and overheads exceed the
    budget. The errors of its terms are independent: their squares add up."""
    outside = _outside(min(layout.split.tensor_parallel, _OUTSIDE_RANKS[-1]))
    graphs = Estimate(*(GIB * each for each in settings.graph_gib))
    total, share = layout.hardware.memory_bytes, settings.memory_utilization
    overheads = activation.value + outside.value + graphs.value
    if settings.budget == "of_total":
        left, scale = total * share - overheads - weights, 1.0
    else:
        left, scale = share * (total - overheads - weights), share
    plain = layout.split.weights in ("fp32", "bf16", "fp16")
    smaller, larger = _WEIGHTS_OFF["plain" if plain else "quantized"]
    terms = (activation, outside, graphs)
    less = math.hypot(larger * weights, *(each.high - each.value for each in terms))
    more = math.hypot(smaller * weights, *(each.value - each.low for each in terms))
    return Estimate(left - scale * less, left, left + scale * more)


@lru_cache(maxsize=_OUTSIDE_RANKS[-1])
def _outside(ranks: int) -> Estimate:
    """Memory outside the framework [bytes] at a number of ranks."""
    return Estimate(*(GIB * float(np.interp(ranks, _OUTSIDE_RANKS, each)) for each in _OUTSIDE_GIB))


def _rounded_up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple
