"""Layouts that do not fit, or cannot carry the load: why, and what would."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from advisor.core.engines import EngineSettings, engine_settings
from advisor.core.enumeration import (
    Rejection,
    default_tensor_parallel,
    divides,
    weight_precisions,
)
from advisor.core.evaluation import Evaluator, hourly_cost
from advisor.core.hardware import HardwareProfile
from advisor.core.layouts import Layout, Split, stage_loads
from advisor.core.memory import MemoryFit, longest_request, memory_fit
from advisor.core.precision import WEIGHT_BYTES, compute_arithmetic
from advisor.core.units import GIB, plain, rounded_plain
from advisor.core.workload import PlanRequest

_PRICED = ("cost", "balanced")
"""Objectives that compare costs."""

_SMALLER_FORMATS = ("fp8", "int4_awq")
"""Formats to propose when a model does not fit in those asked for, by falling size."""


def evaluator(request: PlanRequest, layouts: Sequence[Layout]) -> tuple[Evaluator, list[Rejection]]:
    """Layouts that hold at least one request of the longest length, ready to be evaluated, and a
    rejection for each other.

    Under `objective: cost` and `balanced`, hardware without a price is rejected too.
    """
    settings = [_settings(request, layout) for layout in layouts]
    fit = _fit(request, layouts, settings)
    kept: list[int] = []
    rejected: list[Rejection] = []
    proposals: dict[HardwareProfile, str] = {}
    for i, layout in enumerate(layouts):
        if _expands_latents(request, layout, settings[i]):
            rejected.append(_expanded(layout, settings[i]))
        elif _seqs_exceed_tokens(settings[i]):
            rejected.append(_more_seqs_than_tokens(layout, settings[i]))
        elif not fit.fits[i]:
            proposal = proposals.get(layout.hardware) or what_fits(request, layout.hardware)
            proposals[layout.hardware] = proposal
            rejected.append(_unfit(request, layout, settings[i], fit, i, proposal))
        elif fit.state_blocks[i] < settings[i].max_num_seqs:
            rejected.append(_few_state_blocks(request, layout, settings[i], fit.state_blocks[i]))
        elif request.objective in _PRICED and layout.hardware.price is None:
            rejected.append(_unpriced(layout, request.objective))
        else:
            kept.append(i)
    chosen = [layouts[i] for i in kept]
    return Evaluator(request, chosen, [settings[i] for i in kept], fit.take(kept)), rejected


def _fit(
    request: PlanRequest, layouts: Sequence[Layout], settings: list[EngineSettings]
) -> MemoryFit:
    """The fit of each layout. Where recurrent state leaves room for fewer sequences than the
    engine's default, the default is lowered in `settings`: with it the engine would not start."""
    fit = memory_fit(request.model, layouts, settings, request.workload)
    lowered = False
    for i, each in enumerate(settings):
        blocks = fit.state_blocks[i]
        if 1 <= blocks < each.max_num_seqs and not each.max_num_seqs_asked:
            settings[i] = replace(each, max_num_seqs=int(blocks), max_num_seqs_lowered=True)
            lowered = True
    return memory_fit(request.model, layouts, settings, request.workload) if lowered else fit


def what_fits(request: PlanRequest, device: HardwareProfile) -> str:
    """For each format asked for, and for smaller ones, the fewest accelerators that hold it."""
    formats = [*weight_precisions(request), *_smaller(weight_precisions(request), device)]
    fitting = [each for each in (_smallest_fit(request, device, f) for f in formats) if each]
    if fitting:
        return f"It fits {', '.join(fitting)}."
    return (
        "Nothing up to 16 pipeline stages of these accelerators fits: choose one with more memory, "
        "a smaller model or shorter requests."
    )


def _smallest_fit(request: PlanRequest, device: HardwareProfile, weights: str) -> str | None:
    for split in _wider(request, device, weights):
        layout = Layout(device, split)
        settings = [_settings(request, layout)]
        if memory_fit(request.model, [layout], settings, request.workload).fits[0]:
            stages = f" x PP{split.pipeline_parallel}" if split.pipeline_parallel > 1 else ""
            return f"as {weights} with TP{split.tensor_parallel}{stages}"
    return None


def overloaded(request: PlanRequest, evaluator: Evaluator) -> list[Rejection]:
    """Layouts that cannot carry the load within the limits at any number of replicas."""
    if request.limits.replicas:
        return _only_spares(request, evaluator)
    if request.workload.mode == "saturated":
        return []
    rejected = []
    low, high = evaluator.smallest_counts(), evaluator.largest_counts()
    spare = request.limits.spare_replicas
    for i in np.flatnonzero(low > high):
        layout, replicas = evaluator.layouts[i], int(low[i]) + spare
        needed = replicas * layout.split.accelerators
        if needed <= request.limits.max_accelerators:
            rejected.append(_too_dear(request, layout, needed))
            continue
        detail = (
            f"A replica saturates at {rounded_plain(evaluator.saturation[i])} requests/s, so this "
            f"load takes {replicas} replicas ({needed} accelerators); max_accelerators leaves "
            f"{request.limits.max_accelerators // layout.split.accelerators}."
        )
        remedy = f"Allow {needed} accelerators and their cost, or lower the load."
        rejected.append(Rejection(layout.hardware.name, layout.split, "overloaded", detail, remedy))
    return rejected


def _too_dear(request: PlanRequest, layout: Layout, needed: int) -> Rejection:
    limit, cost = request.limits.max_cost_per_hour, hourly_cost(layout, needed)
    detail = (
        f"The fewest accelerators that carry this load, {needed}, cost {cost} an hour; "
        f"{limit} is the limit."
    )
    remedy = f"Raise max_cost_per_hour to {cost}."
    return Rejection(layout.hardware.name, layout.split, "over_max_cost", detail, remedy)


def _only_spares(request: PlanRequest, evaluator: Evaluator) -> list[Rejection]:
    """Layouts of which every replica asked for would be a spare."""
    spare, most = request.limits.spare_replicas, max(request.limits.replicas or ())
    if most > spare:
        return []
    detail = f"Of {most} replicas, spare_replicas {spare} leaves none to serve."
    remedy = f"Ask for {spare + 1} replicas or more, or fewer spares."
    return [
        Rejection(layout.hardware.name, layout.split, "only_spares", detail, remedy)
        for layout in evaluator.layouts
    ]


def _settings(request: PlanRequest, layout: Layout) -> EngineSettings:
    return engine_settings(request.serving, layout.hardware, layout.split, request.workload.longest)


def _unpriced(layout: Layout, objective: str) -> Rejection:
    device = layout.hardware.name
    detail = f"{device} has no price, and objective {objective} compares costs."
    remedy = "Give its price, or choose another objective."
    return Rejection(device, layout.split, "no_price", detail, remedy)


def _unfit(
    request: PlanRequest, layout: Layout, settings: EngineSettings, fit: MemoryFit, i: int,
    proposal: str,
) -> Rejection:  # fmt: skip
    weights, left = fit.weights[i] / GIB, fit.kv_cache[i] / GIB
    low, high = fit.kv_cache_low[i] / GIB, fit.kv_cache_high[i] / GIB
    need, total = fit.need[i] / GIB, layout.hardware.memory_gib
    if left < 0:
        detail = (
            f"Capacity-bound: weights take {weights:.1f} GiB of {total:.1f} GiB on each "
            f"accelerator, {-left:.1f} GiB more than the engine's budget leaves"
        )
    else:
        detail = (
            f"Capacity-bound: {left:.2f} GiB ({max(low, 0):.2f} to {high:.2f}) are left for the KV "
            f"cache, one request of {plain(settings.max_model_len)} tokens needs {need:.2f} GiB"
        )
        longest = longest_request(request.model, layout, settings)
        if longest:
            proposal = f"{proposal} Here a request of up to {longest} tokens fits."
    sequences = _fewer_sequences(request, layout, settings)
    if sequences:
        proposal = f"With max_num_seqs {sequences} it fits here. {proposal}"
    if fit.spare_high[i] >= 0:
        detail += "; the error of the estimate reaches that"
    return Rejection(layout.hardware.name, layout.split, "does_not_fit", f"{detail}.", proposal)


def _fewer_sequences(request: PlanRequest, layout: Layout, settings: EngineSettings) -> int:
    """Halved as often as it takes, a `max_num_seqs` with which the layout fits and the engine
    starts: fewer sequences leave more of the sampler's memory. 0 where none does."""

    def fits(sequences: int) -> bool:
        fewer = replace(settings, max_num_seqs=sequences)
        fit = memory_fit(request.model, [layout], [fewer], request.workload)
        return bool(fit.fits[0] and fit.state_blocks[0] >= sequences)

    sequences = settings.max_num_seqs
    if not fits(1):
        return 0
    while not fits(sequences):
        sequences //= 2
    return sequences


def _seqs_exceed_tokens(settings: EngineSettings) -> bool:
    within = settings.seqs_within_tokens
    return within and settings.max_num_seqs > settings.max_num_batched_tokens


def _more_seqs_than_tokens(layout: Layout, settings: EngineSettings) -> Rejection:
    sequences, tokens = settings.max_num_seqs, settings.max_num_batched_tokens
    detail = (
        f"max_num_seqs {sequences} exceeds max_num_batched_tokens {tokens}: {settings.engine} "
        f"{settings.version} would not start."
    )
    remedy = f"Set max_num_seqs to {tokens} or less, or max_num_batched_tokens to {sequences}."
    return Rejection(layout.hardware.name, layout.split, "more_seqs_than_tokens", detail, remedy)


def _few_state_blocks(
    request: PlanRequest, layout: Layout, settings: EngineSettings, blocks: float
) -> Rejection:
    detail = (
        f"max_num_seqs {settings.max_num_seqs} exceeds the {blocks:.0f} blocks of recurrent state "
        f"that the memory holds: {settings.engine} would not start."
    )
    most = max(int(blocks), _fewer_sequences(request, layout, settings))
    remedy = f"Set max_num_seqs to {most} or less."
    return Rejection(layout.hardware.name, layout.split, "too_few_state_blocks", detail, remedy)


def _expands_latents(request: PlanRequest, layout: Layout, settings: EngineSettings) -> bool:
    caches = stage_loads(request.model, layout.split)[0].caches
    return not settings.latent_row_bytes and any(cache.latent for cache in caches)


def _expanded(layout: Layout, settings: EngineSettings) -> Rejection:
    detail = f"{settings.engine} {settings.version} keeps latent attention (MLA) expanded."
    remedy = "Name an engine_version that caches the latent itself."
    return Rejection(layout.hardware.name, layout.split, "latent_cache_expanded", detail, remedy)


def _smaller(asked: Sequence[str], device: HardwareProfile) -> list[str]:
    least = min(WEIGHT_BYTES[each] for each in asked)
    return [
        each for each in _SMALLER_FORMATS
        if WEIGHT_BYTES[each] < 0.9 * least and compute_arithmetic(each, device.dense_tflops)
    ]  # fmt: skip


def _wider(request: PlanRequest, device: HardwareProfile, weights: str) -> list[Split]:
    """Splits to try, by rising number of accelerators."""
    shape = request.model.architecture
    kv_cache = request.kv_cache[0] if request.kv_cache else shape.kv_cache_precision
    degrees = [
        n for n in default_tensor_parallel(device) if divides(request, Split(n, weights=weights))
    ]
    stages = [1, 2, 4, 8, 16] if device.network_gb_s_per_direction else [1]
    splits = [
        Split(tp, pp, weights=weights, kv_cache=kv_cache)
        for tp, pp in product(degrees, stages)
        if pp <= len(shape.layers) and (pp == 1 or tp == degrees[-1])
    ]
    return sorted(splits, key=lambda split: split.accelerators)
