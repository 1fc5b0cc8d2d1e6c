"""Layouts that do not fit, or cannot carry the load: why, and what would."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from advisor.core.coefficients import EngineSettings, engine_settings
from advisor.core.enumeration import Rejection, weight_precisions
from advisor.core.evaluation import Evaluator
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
    """The smallest change that lets the model fit on this device, in one sentence."""
    formats = [*weight_precisions(request), *_smaller(weight_precisions(request), device)]
    for split in _wider(request, device, formats):
        layout = Layout(device, split)
        settings = [_settings(request, layout)]
        if memory_fit(request.model, [layout], settings, request.workload).fits[0]:
            return _proposal(layout)
    return (
        "Nothing up to 16 pipeline stages of these accelerators fits: choose one with more memory, "
        "a smaller model or shorter requests."
    )


def overloaded(request: PlanRequest, evaluator: Evaluator) -> list[Rejection]:
    """Layouts that cannot carry the load within the limits at any number of replicas."""
    if request.limits.replicas or request.workload.mode == "saturated":
        return []
    rejected = []
    low, high = evaluator.smallest_counts(), evaluator.largest_counts()
    spare = request.limits.spare_replicas
    for i in np.flatnonzero(low > high):
        layout = evaluator.layouts[i]
        replicas = int(low[i]) + spare
        needed = replicas * layout.split.accelerators
        saturation = evaluator.saturation[i]
        detail = (
            f"A replica saturates at {saturation:.3g} requests/s, so this load takes {replicas} "
            f"replicas ({needed} accelerators); the limits leave {max(int(high[i]) + spare, 0)}."
        )
        rejected.append(
            Rejection(
                layout.hardware.name, layout.split, "overloaded", detail,
                f"Allow {needed} accelerators and their cost, or lower the load.",
            )
        )  # fmt: skip
    return rejected


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
        if WEIGHT_BYTES[each] < least and compute_arithmetic(each, device.dense_tflops)
    ]  # fmt: skip


def _wider(request: PlanRequest, device: HardwareProfile, formats: Sequence[str]) -> list[Split]:
    """Splits to try, by accelerators, then by how little the format is changed."""
    valid = set(request.model.valid_tensor_parallel)
    shape = request.model.architecture
    kv_cache = request.kv_cache[0] if request.kv_cache else shape.kv_cache_precision
    degrees = [2**i for i in range(device.largest_domain.bit_length())]
    stages = [1, 2, 4, 8, 16] if device.network_gb_s_per_direction else [1]
    splits = [
        (rank, Split(tp, pp, weights=weights, kv_cache=kv_cache))
        for (rank, weights), tp, pp in product(enumerate(formats), degrees, stages)
        if pp <= len(shape.layers) and (pp == 1 or tp == device.largest_domain) and tp in valid
    ]
    splits.sort(key=lambda each: (each[1].accelerators, each[0]))
    return [split for _, split in splits]


def _proposal(layout: Layout) -> str:
    split = layout.split
    stages = (
        f" with pipeline_parallel {split.pipeline_parallel}" if split.pipeline_parallel > 1 else ""
    )
    return (
        f"It fits with tensor_parallel {split.tensor_parallel}{stages} and {split.weights} weights "
        f"({split.accelerators} x {layout.hardware.name})."
    )
