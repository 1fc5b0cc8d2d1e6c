"""Techniques that change the model or how it decodes: what each makes of a request, or why it does
not apply."""

from __future__ import annotations

from dataclasses import replace

from advisor.core.architecture import Architecture, Layer
from advisor.core.attention import GroupedQueryAttention
from advisor.core.precision import KV_BYTES, WEIGHT_BYTES, preferred_arithmetic
from advisor.core.techniques.subject import Change, Given, Offers, Range, Refusal, Subject
from advisor.core.units import plain, rounded_plain
from advisor.core.workload import PlanRequest, Speculation

FORMATS = ("fp8", "int8", "int4_awq", "mxfp4", "nvfp4")
"""Formats of weights that are tried."""

_SMALLER = 0.9
"""A format is smaller that stores a weight in so much of the bytes."""

_UNPACKED_TOO = {"mxfp4": "int4_awq", "nvfp4": "int4_awq", "fp8": "int8"}
"""The listed format of as few bytes that stands for one whose arithmetic a device lacks."""

QUERIES_PER_KV_HEAD = 8
"""Query heads that share a KV head where GQA is tried, as Llama 2 70B and Llama 3 70B have it."""

ASSUMED_DRAFTS = 3
ASSUMED_DRAFT_COST = 0.05
ASSUMED_ACCEPTANCE = (0.5, 0.9)
"""What is tried where nothing is known of drafts: acceptance as published for drafters from a small
model (0.53, Leviathan et al. 2023) to a trained head (0.9, DeepSeek-V3)."""


def weight_quantization(subject: Subject, _: Given) -> Offers:
    """Every smaller format that the device computes in, or unpacks for lack of another."""
    return [_format(subject, each) for each in FORMATS]


def _format(subject: Subject, weights: str) -> Change | Refusal:
    setting, own, arithmetic = {"weights": weights}, subject.weights, subject.device.dense_tflops
    if own == weights:
        return Refusal(f"Already used: the weights are {own}.", setting)
    if WEIGHT_BYTES[weights] > _SMALLER * WEIGHT_BYTES[own]:
        return Refusal(
            f"The weights are {own} already, {rounded_plain(WEIGHT_BYTES[own])} bytes each; "
            f"{weights} has {rounded_plain(WEIGHT_BYTES[weights])}.",
            setting,
        )
    wanted, instead = preferred_arithmetic(weights), _UNPACKED_TOO.get(weights)
    if (
        wanted not in arithmetic
        and instead
        and (instead == "int4_awq" or preferred_arithmetic(instead) in arithmetic)
    ):
        return Refusal(
            f"{subject.device.name} has no {wanted} arithmetic: weights would have to be unpacked, "
            f"and {instead} takes as few bytes.",
            setting,
        )
    return Change(setting, lambda request: replace(request, weights=(weights,)))


def distillation(subject: Subject, given: Given) -> Offers:
    """The smaller model that was named, in the same formats as far as they were asked for."""
    smaller, model = given.distilled_model, subject.request.model
    if smaller is None:
        return [Refusal("Name a smaller model in distilled_model: none is assumed.", {})]
    setting = {"model": smaller.name}
    now, then = (each.architecture.total_parameters for each in (model, smaller))
    if then >= now:
        return [
            Refusal(
                f"{smaller.name} has {then / 1e9:.4g} billion parameters, {model.name} "
                f"{now / 1e9:.4g}: it is no smaller model.",
                setting,
            )
        ]
    own = model.architecture

    def apply(request: PlanRequest) -> PlanRequest:
        """Formats that were the checkpoint's own are the other checkpoint's own."""
        weights = () if request.weights == (own.weights_precision,) else request.weights
        kv_cache = () if request.kv_cache == (own.kv_cache_precision,) else request.kv_cache
        return replace(request, model=smaller, weights=weights, kv_cache=kv_cache)

    return [Change(setting, apply)]


def kv_cache_quantization(subject: Subject, _: Given) -> Offers:
    """A KV cache in fp8: a format of storage, which needs no arithmetic of its own."""
    model, own = subject.request.model, subject.kv_cache
    if not model.kv_bytes_per_token(own):
        return [Refusal(f"{model.name} has no attention, so no KV cache.", {})]
    if KV_BYTES[own] <= KV_BYTES["fp8"]:
        return [Refusal(f"Already used: the KV cache is {own}.", {})]
    return [Change({"kv_cache": "fp8"}, lambda request: replace(request, kv_cache=("fp8",)))]


def kv_cache_management(subject: Subject, _: Given) -> Offers:
    """Every engine planned here pages."""
    if subject.layout is None:
        return [Refusal("Already used: the engines planned here page their KV cache.", {})]
    memory, layout = subject.evaluator.memory, subject.layout
    longest = subject.evaluator.settings[layout].max_model_len
    reserved = int(memory.capacity_tokens[layout] / longest)
    return [
        Refusal(
            f"Already used: the KV cache of a replica holds {int(memory.max_concurrency[layout])} "
            f"requests at their mean length; {reserved}, if each reserved the {plain(longest)} "
            "tokens of the longest.",
            {},
        )
    ]


def attention_kernels(subject: Subject, _: Given) -> Offers:
    """Every engine planned here has them."""
    engine = subject.request.serving.engine
    return [
        Refusal(
            f"Already used: the step times are fitted on {engine} with fused attention kernels. "
            "What another of its kernels would gain is not known.",
            {},
        )
    ]


def shared_kv_heads(subject: Subject, _: Given) -> Offers:
    """Fewer KV heads, where each query head has one of its own."""
    model = subject.request.model
    mixers = [layer.mixer for layer in model.architecture.layers]
    kinds = {mixer.kind for mixer in mixers if mixer is not None}
    if {"mla", "compressed"} & kinds:
        return [Refusal(f"Already used: {model.name} caches compressed vectors.", {})]
    full = [mixer for mixer in mixers if isinstance(mixer, GroupedQueryAttention)]
    if not full:
        return [Refusal(f"{model.name} has no attention layers whose heads could share.", {})]
    first = full[0]
    if any(each.num_kv_heads < each.num_heads for each in full):
        return [
            Refusal(
                f"Already used: {model.name} has {first.num_kv_heads} KV heads for "
                f"{first.num_heads} query heads.",
                {},
            )
        ]
    heads, rest = divmod(first.num_heads, QUERIES_PER_KV_HEAD)
    if rest or any(each.num_heads != first.num_heads for each in full):
        reason = f"Its heads do not divide into groups of {QUERIES_PER_KV_HEAD}."
        return [Refusal(reason, {})]
    converted = replace(model, architecture=_sharing(model.architecture, heads))
    return [Change({"num_kv_heads": heads}, lambda request: replace(request, model=converted))]


def _sharing(shape: Architecture, heads: int) -> Architecture:
    def shared(layer: Layer) -> Layer:
        if not isinstance(layer.mixer, GroupedQueryAttention):
            return layer
        return replace(layer, mixer=replace(layer.mixer, num_kv_heads=heads))

    known = {layer: shared(layer) for layer in shape.layer_counts}
    return replace(shape, layers=tuple(known[layer] for layer in shape.layers))


def speculative_decoding(subject: Subject, given: Given) -> Offers:
    """Drafts as given, else a poor and a good acceptance rate."""
    used = subject.request.serving.speculative
    if used.draft_tokens:
        return [Refusal(f"Already used: {used.draft_tokens} tokens are drafted for a step.", {})]
    if given.speculative is not None:
        return [_drafting(given.speculative)]
    poor, good = (
        _drafting(Speculation(ASSUMED_DRAFTS, rate, ASSUMED_DRAFT_COST))
        for rate in ASSUMED_ACCEPTANCE
    )
    return [Range(poor, good)]


def _drafting(drafts: Speculation) -> Change:
    def apply(request: PlanRequest) -> PlanRequest:
        return replace(request, serving=replace(request.serving, speculative=drafts))

    return Change(dict(vars(drafts)), apply)
