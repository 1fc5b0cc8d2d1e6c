"""Layouts that do not fit, or cannot carry the load: why, and what would."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from advisor.core.coefficients import EngineSettings, engine_settings
from advisor.core.enumeration import Rejection, default_tensor_parallel, weight_precisions
from advisor.core.evaluation import Evaluator, hourly_cost
from advisor.core.hardware import HardwareProfile
from advisor.core.layouts import Layout, Split
from advisor.core.memory import MemoryFit, memory_fit
from advisor.core.precision import WEIGHT_BYTES, compute_arithmetic
from advisor.core.units import GIB
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
    fit = memory_fit(request.model, layouts, settings, request.workload)
    kept: list[int] = []
    rejected: list[Rejection] = []
    proposals: dict[HardwareProfile, str] = {}
    for i, layout in enumerate(layouts):
        if not fit.fits[i]:
            proposal = proposals.get(layout.hardware) or what_fits(request, layout.hardware)
            proposals[layout.hardware] = proposal
            rejected.append(_unfit(layout, fit, i, proposal))
        elif request.objective in _PRICED and layout.hardware.price is None:
            rejected.append(_unpriced(layout, request.objective))
        else:
            kept.append(i)
    chosen = [layouts[i] for i in kept]
    return Evaluator(request, chosen, [settings[i] for i in kept], fit.take(kept)), rejected


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
            f"A replica saturates at {evaluator.saturation[i]:.3g} requests/s, so this load takes "
            f"{replicas} replicas ({needed} accelerators); max_accelerators leaves "
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
    serving = request.serving
    return engine_settings(
        serving.engine,
        layout.hardware,
        layout.split.accelerators,
        serving.memory_utilization,
        serving.max_num_seqs,
        serving.max_num_batched_tokens,
    )


def _unpriced(layout: Layout, objective: str) -> Rejection:
    device = layout.hardware.name
    detail = f"{device} has no price, and objective {objective} compares costs."
    remedy = "Give its price, or choose another objective."
    return Rejection(device, layout.split, "no_price", detail, remedy)


def _unfit(layout: Layout, fit: MemoryFit, i: int, proposal: str) -> Rejection:
    weights, left = fit.weights[i] / GIB, fit.kv_cache[i] / GIB
    need, total = fit.need[i] / GIB, layout.hardware.memory_gib
    if left < 0:
        detail = (
            f"Capacity-bound: weights take {weights:.1f} GiB of {total:.1f} GiB on each "
            f"accelerator, {-left:.1f} GiB more than the engine's budget leaves."
        )
    else:
        detail = (
            f"Capacity-bound: {left:.2f} GiB are left for the KV cache, one request of the longest "
            f"length needs {need:.2f} GiB."
        )
    return Rejection(layout.hardware.name, layout.split, "does_not_fit", detail, proposal)


def _smaller(asked: Sequence[str], device: HardwareProfile) -> list[str]:
    least = min(WEIGHT_BYTES[each] for each in asked)
    return [
        each for each in _SMALLER_FORMATS
        if WEIGHT_BYTES[each] < 0.9 * least and compute_arithmetic(each, device.dense_tflops)
    ]  # fmt: skip


def _wider(request: PlanRequest, device: HardwareProfile, weights: str) -> list[Split]:
    """Splits to try, by rising number of accelerators."""
    shape, valid = request.model.architecture, set(request.model.valid_tensor_parallel)
    kv_cache = request.kv_cache[0] if request.kv_cache else shape.kv_cache_precision
    degrees = [n for n in default_tensor_parallel(device) if n in valid]
    stages = [1, 2, 4, 8, 16] if device.network_gb_s_per_direction else [1]
    splits = [
        Split(tp, pp, weights=weights, kv_cache=kv_cache)
        for tp, pp in product(degrees, stages)
        if pp <= len(shape.layers) and (pp == 1 or tp == degrees[-1])
    ]
    return sorted(splits, key=lambda split: split.accelerators)
