"""Which layouts to evaluate, and why the others cannot be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import lcm
from typing import Any

from advisor.core.engines import (
    context_parallel,
    default_version,
    refuses_marlin_tiles,
    samples_there,
)
from advisor.core.errors import FieldError, InvalidInput, between
from advisor.core.hardware import HardwareProfile
from advisor.core.layouts import Layout, Split, quantized_parts
from advisor.core.mixers import UNBOUNDED, Cache
from advisor.core.model import MAX_TENSOR_PARALLEL, ModelProfile
from advisor.core.parallelism import Fault, context_parallel_faults, tensor_parallel_faults
from advisor.core.precision import compute_arithmetic, preferred_arithmetic
from advisor.core.workload import PlanRequest

MAX_LAYOUTS = 2_000
"""More than these in one request are refused: narrow the devices, degrees or precisions."""


@dataclass(frozen=True)
class Rejection:
    """A layout that cannot serve: a code to switch on, a sentence, and what would work."""

    hardware: str
    split: Split
    code: str
    detail: str
    remedy: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The rejection in its API form."""
        return {
            "hardware": self.hardware,
            "tensor_parallel": self.split.tensor_parallel,
            "pipeline_parallel": self.split.pipeline_parallel,
            "expert_parallel": self.split.expert_parallel,
            "attention_data_parallel": self.split.attention_data_parallel,
            "decode_context_parallel": self.split.decode_context_parallel,
            "precision": {"weights": self.split.weights, "kv_cache": self.split.kv_cache},
            "code": self.code,
            "detail": self.detail,
            "remedy": self.remedy,
        }


def weight_precisions(request: PlanRequest) -> tuple[str, ...]:
    """Precisions to try: those asked for, else the checkpoint's own."""
    return request.weights or (request.model.architecture.weights_precision,)


def kv_precisions(request: PlanRequest) -> tuple[str, ...]:
    """KV cache precisions to try: those asked for, else the checkpoint's own."""
    return request.kv_cache or (request.model.architecture.kv_cache_precision,)


def enumerate_layouts(request: PlanRequest) -> tuple[list[Layout], list[Rejection]]:
    """Every layout asked for that the model and the device allow, and a rejection for each other.

    InvalidInput when the request spans more than MAX_LAYOUTS.
    """
    count = sum(1 for device in request.hardware for _ in _splits(request, device))
    if count > MAX_LAYOUTS:
        raise InvalidInput(
            FieldError(
                "/limits", "The request spans too many layouts.",
                given=count, allowed=between(1, MAX_LAYOUTS),
            )
        )  # fmt: skip
    asked = [
        Layout(device, split) for device in request.hardware for split in _splits(request, device)
    ]
    valid: list[Layout] = []
    rejected: list[Rejection] = []
    for layout in asked:
        reason = _rejection(request, layout)
        if reason is None:
            valid.append(layout)
        else:
            rejected.append(reason)
    return valid, rejected


def default_tensor_parallel(device: HardwareProfile) -> tuple[int, ...]:
    """Powers of two within the device's fast link."""
    return tuple(2**i for i in range(device.largest_domain.bit_length()))


def _splits(request: PlanRequest, device: HardwareProfile) -> Iterator[Split]:
    limits, moe = request.limits, request.model.architecture.moe
    degrees = limits.tensor_parallel or default_tensor_parallel(device)
    formats = product(weight_precisions(request), kv_precisions(request))
    for (weights, kv_cache), tp, pp in product(formats, degrees, limits.pipeline_parallel):
        experts = limits.expert_parallel or ((1, tp) if moe else (1,))
        for ep, dp, dcp in product(
            dict.fromkeys(experts),
            limits.attention_data_parallel,
            limits.decode_context_parallel,
        ):
            layers = request.serving.pipeline_layers or ()
            yield Split(tp, pp, ep, dp, dcp, layers, weights, kv_cache)


def _rejection(request: PlanRequest, layout: Layout) -> Rejection | None:
    device, split, model = layout.hardware, layout.split, request.model
    found = (
        _arithmetic(layout)
        or _sampler(request, device)
        or _degrees(model, layout)
        or _shared_context(request, layout)
        or _shapes(model, layout, refuses_marlin_tiles(request.serving))
        or _links(layout)
    )
    if found:
        return Rejection(device.name, split, *found)
    most = request.limits.max_accelerators
    needed = split.accelerators * (1 + request.limits.spare_replicas)
    if needed > most:
        detail = f"One replica with its spares takes {needed} accelerators; the limit is {most}."
        return Rejection(
            device.name,
            split,
            "over_max_accelerators",
            detail,
            f"Raise max_accelerators to {needed}.",
        )
    return None


Reason = tuple[str, str, str | None]


def _arithmetic(layout: Layout) -> Reason | None:
    device, weights = layout.hardware, layout.split.weights
    for storage in (weights, "bf16"):
        if compute_arithmetic(storage, device.dense_tflops) is None:
            known = ", ".join(device.dense_tflops)
            detail = f"{device.name} has no arithmetic for {storage} weights (it has {known})."
            return "no_arithmetic", detail, "Give its 16- or 32-bit rate in dense_tflops."
    return None


def _sampler(request: PlanRequest, device: HardwareProfile) -> Reason | None:
    if samples_there(request.serving, device):
        return None
    detail = f"FlashInfer samples on NVIDIA's devices alone, and {device.name} is another's."
    return "sampler_not_on_device", detail, "Leave sampler out, or name another."


def _degrees(model: ModelProfile, layout: Layout) -> Reason | None:
    split, shape = layout.split, model.architecture
    tp, context = split.tensor_parallel, split.decode_context_parallel
    for name, degree in (
        ("expert_parallel", split.expert_parallel),
        ("attention_data_parallel", split.attention_data_parallel),
    ):
        if tp % degree:
            detail = f"{name} {degree} does not divide tensor_parallel {tp}."
            return f"{name}_not_divisible", detail, _divisor(name, degree, tp)
    if split.attention_ranks % context:
        ranks = split.attention_ranks
        detail = (
            f"decode_context_parallel {context} does not divide the {ranks} ranks of attention."
        )
        name = "decode_context_parallel"
        return f"{name}_not_divisible", detail, _divisor(name, context, ranks)
    if split.expert_parallel > 1 and shape.moe is None:
        return "no_experts", f"{model.name} has no experts to spread.", "Use expert_parallel 1."
    layers = len(shape.layers)
    if split.pipeline_parallel > layers:
        detail = f"{layers} layers cannot fill {split.pipeline_parallel} pipeline stages."
        return "pipeline_too_deep", detail, f"Use at most {layers} stages."
    stages = len(split.pipeline_layers)
    if stages and stages != split.pipeline_parallel:
        detail = f"pipeline_layers names {stages} stages, not {split.pipeline_parallel}."
        return "pipeline_layers_of_other_stages", detail, f"Use pipeline_parallel {stages}."
    return None


def _divisor(name: str, degree: int, ranks: int) -> str:
    if ranks == 1:
        return f"Use {name} 1, or {degree} ranks or a multiple of them."
    return f"Choose a divisor of {ranks}."


def _shared_context(request: PlanRequest, layout: Layout) -> Reason | None:
    """Why the model's tokens, or any in this engine, cannot be shared out over ranks."""
    model, serving = request.model, request.serving
    if layout.split.decode_context_parallel == 1:
        return None
    remedy = "Use decode_context_parallel 1."
    if not _caches(model):
        detail = f"{model.name} has no attention, so no context to share out."
        return "no_attention", detail, remedy
    if any(cache.kept < UNBOUNDED for cache in _caches(model)):
        detail = f"{model.name} has sliding windows, whose context cannot be shared out."
        return "context_in_windows", detail, remedy
    able, code = context_parallel(serving), "decode_context_parallel_unsupported"
    engine = f"{serving.engine} {serving.engine_version or default_version(serving.engine)}"
    if able == "none":
        detail = f"{engine} is not known to share out the context of a sequence over ranks."
        return code, detail, remedy
    if able == "attention" and model.state_bytes_per_sequence:
        detail = f"{engine} cannot share out the context of a model with recurrent layers."
        return code, detail, remedy
    return None


def divides(request: PlanRequest, split: Split) -> bool:
    """Whether the model can be split so by the engine asked for."""
    tiles = refuses_marlin_tiles(request.serving)
    return not _faults(request.model, _ranks_alone(split), tiles)


def _caches(model: ModelProfile) -> list[Cache]:
    mixers = {layer.mixer for layer in model.architecture.layer_counts} - {None}
    return [cache for mixer in mixers if mixer for cache in mixer.caches(1)]


def _shapes(model: ModelProfile, layout: Layout, tiles: bool) -> Reason | None:
    split = _ranks_alone(layout.split)
    faults = _faults(model, split, tiles)
    if not faults:
        return None
    remedy = _nearest_degree(model, split, tiles)
    if faults[0].part.startswith("experts"):
        remedy += _spread_experts(model, split, tiles)
    return faults[0].code, faults[0].detail, remedy


@lru_cache(maxsize=16_384)
def _ranks_alone(split: Split) -> Split:
    """The split without what divides no matrix, so that equal ones are checked once."""
    return replace(split, pipeline_parallel=1, pipeline_layers=(), kv_cache="bf16")


@lru_cache(maxsize=16_384)
def _faults(model: ModelProfile, split: Split, tiles: bool) -> tuple[Fault, ...]:
    shape, ranks = model.architecture, split.attention_ranks
    parts = quantized_parts(shape, split.weights)
    return (
        *tensor_parallel_faults(
            shape, split.tensor_parallel, split.expert_parallel, ranks, split.weights, parts, tiles
        ),
        *context_parallel_faults(shape, ranks, split.decode_context_parallel),
    )


def _nearest_degree(model: ModelProfile, split: Split, tiles: bool) -> str:
    works = _working_degrees(model, replace(split, tensor_parallel=1), tiles)
    if not works:
        most = MAX_TENSOR_PARALLEL
        return f"No tensor_parallel up to {most} divides with these other degrees."
    asked = split.tensor_parallel
    nearest = min(works, key=lambda n: (abs(n - asked), n))
    listed = ", ".join(map(str, works))
    return f"tensor_parallel {nearest} is the nearest that divides (possible: {listed})."


@lru_cache(maxsize=1024)
def _working_degrees(model: ModelProfile, others: Split, tiles: bool) -> tuple[int, ...]:
    """Every tensor_parallel that divides with the other degrees of a split."""
    groups, context = others.attention_data_parallel, others.decode_context_parallel
    step = lcm(others.expert_parallel, groups * context)
    degrees = range(step, MAX_TENSOR_PARALLEL + 1, step)
    return tuple(
        n for n in degrees if not _faults(model, replace(others, tensor_parallel=n), tiles)
    )


def _spread_experts(model: ModelProfile, split: Split, tiles: bool) -> str:
    """What would do besides, where it is the width of an expert that does not divide."""
    asked, tp = split.expert_parallel, split.tensor_parallel
    wider = (n for n in range(asked + 1, tp + 1) if tp % n == 0)
    works = next(
        (n for n in wider if not _faults(model, replace(split, expert_parallel=n), tiles)), None
    )
    return f" At tensor_parallel {tp}, expert_parallel {works} divides." if works else ""


def _links(layout: Layout) -> Reason | None:
    device, split = layout.hardware, layout.split
    needed, domain = split.accelerators, device.largest_domain
    if needed <= domain or device.network_gb_s_per_direction is not None:
        return None
    if domain == 1 and device.interconnect is None:
        detail = (
            f"{device.name} has no interconnect in its profile, so {needed} cannot work together."
        )
    else:
        detail = (
            f"{needed} accelerators leave the link that joins {domain} {device.name}, "
            "and its profile names no network."
        )
    return (
        "no_network",
        detail,
        f"Use at most {domain}, or give network.bandwidth_gb_s_per_direction.",
    )


def precision_warnings(layouts: Sequence[Layout]) -> list[dict[str, str]]:
    """Where weights are computed in another arithmetic than they are named for."""
    warnings: dict[tuple[str, str], dict[str, str]] = {}
    for layout in layouts:
        device, weights = layout.hardware, layout.split.weights
        wanted = preferred_arithmetic(weights)
        used = compute_arithmetic(weights, device.dense_tflops)
        if used != wanted and (device.name, weights) not in warnings:
            warnings[device.name, weights] = {
                "code": "computed_in_other_arithmetic",
                "detail": f"{device.name} has no {wanted}: {weights} weights compute in {used}.",
            }
    return list(warnings.values())
