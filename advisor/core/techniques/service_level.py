"""Techniques of serving: what each makes of a request, or why it does not apply."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from advisor.core.techniques.subject import Change, Given, Offers, Range, Refusal, Subject
from advisor.core.units import plain
from advisor.core.workload import Limits, PlanRequest

ASSUMED_HITS = (0.25, 0.75)
"""Shares of the input found in a prefix cache that are tried where nothing is known of it."""

NOTHING_FITS = "No layout fits as it is: there is none to divide or to copy."


def continuous_batching(_: Subject, __: Given) -> Offers:
    """Every plan has it."""
    reason = "Already used: `batching` has the same accelerators with static batches and without."
    return [Refusal(reason, {})]


def larger_batch(subject: Subject, _: Given) -> Offers:
    """Twice the engine's limit on sequences, where that is what limits the batch."""
    if subject.layout is None or subject.split is None:
        return [Refusal(NOTHING_FITS, {})]
    settings = subject.evaluator.settings[subject.layout]
    if settings.max_num_seqs_by_slo:
        reason = (
            f"The batch is kept to {settings.max_num_seqs} sequences by the SLO on TPOT: a larger "
            "one would miss it."
        )
        return [Refusal(reason, {})]
    groups = subject.split.attention_data_parallel
    held = int(subject.evaluator.memory.max_concurrency[subject.layout])
    if held < settings.max_num_seqs * groups:
        reason = (
            f"Concurrency is capacity-bound: the KV cache of a replica holds {held} requests, "
            f"fewer than the engine's limit of {settings.max_num_seqs * groups}."
        )
        return [Refusal(reason, {})]
    twice = 2 * settings.max_num_seqs

    def apply(request: PlanRequest) -> PlanRequest:
        return replace(request, serving=replace(request.serving, max_num_seqs=twice))

    return [Change({"max_num_seqs": twice}, apply)]


def replicas(subject: Subject, _: Given) -> Offers:
    """One more replica of the same kind."""
    if subject.split is None:
        return [Refusal(NOTHING_FITS, {})]
    count, tensor_parallel = subject.replicas + 1, subject.split.tensor_parallel
    return [
        _split(
            {"replicas": count}, tensor_parallel=(tensor_parallel,),
            expert_parallel=(subject.split.expert_parallel,), replicas=(count,),
        )
    ]  # fmt: skip


def tensor_parallel(subject: Subject, _: Given) -> Offers:
    """Twice the degree."""
    degree = 2 * subject.split.tensor_parallel if subject.split else 2
    domain, device = subject.device.largest_domain, subject.device
    if degree > domain and device.network_gb_s_per_direction is None:
        reason = (
            f"No link: {device.name} joins {domain}, and its profile names no network, so "
            f"tensor_parallel {degree} has nothing to meet over."
        )
        return [Refusal(reason, {"tensor_parallel": degree})]
    return [_split({"tensor_parallel": degree}, tensor_parallel=(degree,))]


def pipeline_parallel(subject: Subject, _: Given) -> Offers:
    """Twice as many stages."""
    stages = 2 * subject.split.pipeline_parallel if subject.split else 2
    if subject.request.serving.pipeline_layers:
        return [Refusal("The request names the layers of each stage.", {})]
    degrees = {} if subject.split is None else {"tensor_parallel": (subject.split.tensor_parallel,)}
    return [_split({"pipeline_parallel": stages}, pipeline_parallel=(stages,), **degrees)]


def expert_parallel(subject: Subject, _: Given) -> Offers:
    """Whole experts on each rank."""
    model, split = subject.request.model, subject.split
    if model.architecture.moe is None:
        return [Refusal(f"{model.name} has no experts.", {})]
    if split is None:
        return [Refusal(NOTHING_FITS, {})]
    if split.expert_parallel > 1:
        return [Refusal(f"Already used: expert_parallel is {split.expert_parallel}.", {})]
    if split.tensor_parallel == 1:
        return [Refusal("A replica is one accelerator: there is nothing to spread over.", {})]
    degree = split.tensor_parallel
    return [
        _split({"expert_parallel": degree}, tensor_parallel=(degree,), expert_parallel=(degree,))
    ]


def attention_data_parallel(subject: Subject, _: Given) -> Offers:
    """Attention of each sequence on one rank."""
    split = subject.split
    if split is None:
        return [Refusal(NOTHING_FITS, {})]
    if split.attention_data_parallel > 1:
        reason = f"Already used: attention_data_parallel is {split.attention_data_parallel}."
        return [Refusal(reason, {})]
    if split.tensor_parallel == 1:
        return [Refusal("A replica is one accelerator: there is nothing to spread over.", {})]
    degree = split.tensor_parallel
    setting = {"attention_data_parallel": degree}
    return [_split(setting, tensor_parallel=(degree,), attention_data_parallel=(degree,))]


def prefix_caching(subject: Subject, given: Given) -> Offers:
    """Hits as given, else a low and a high share."""
    used, hit = subject.request.workload.prefix_cache_hit, given.prefix_cache_hit
    if hit is not None and hit <= used:
        reason = (
            f"Already used: {plain(used)} of the input is found in the cache, {plain(hit)} is no "
            "more."
        )
        return [Refusal(reason if used else "Given is that no input comes again.", {})]
    if hit is not None:
        return [_hitting(hit)]
    if used:
        return [Refusal(f"Already used: {plain(used)} of the input is found in the cache.", {})]
    low, high = (_hitting(each) for each in ASSUMED_HITS)
    return [Range(low, high)]


def _hitting(hit: float) -> Change:
    def apply(request: PlanRequest) -> PlanRequest:
        workload = request.workload
        classes = tuple(
            replace(one, prefix_cache_hit=max(one.prefix_cache_hit, hit))
            for one in workload.classes
        )
        return replace(request, workload=replace(workload, prefix_cache_hit=hit, classes=classes))

    return Change({"prefix_cache_hit": hit}, apply)


def least_loaded_routing(subject: Subject, _: Given) -> Offers:
    """The router of an open load to several replicas."""
    request = subject.request
    if request.serving.routing == "least_loaded":
        return [Refusal("Already used.", {})]
    if request.workload.mode != "open":
        return [
            Refusal("Only an open load is routed: clients of others wait for their answers.", {})
        ]
    if subject.replicas - request.limits.spare_replicas < 2:
        return [Refusal("One replica serves: there is no other to choose.", {})]

    def apply(changed: PlanRequest) -> PlanRequest:
        return replace(changed, serving=replace(changed.serving, routing="least_loaded"))

    return [Change({"routing": "least_loaded"}, apply)]


def _split(setting: dict[str, Any], **degrees: Any) -> Change:
    """The question with some degrees fixed: another deployment."""

    def apply(request: PlanRequest) -> PlanRequest:
        limits: Limits = replace(request.limits, **degrees)
        return replace(request, limits=limits)

    return Change(setting, apply, in_place=False)
