"""The ask: workload, SLOs, limits and serving settings of a plan request."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from advisor.core.errors import FieldError, InvalidInput
from advisor.core.hardware import HardwareProfile
from advisor.core.lengths import MAX_P95_TO_MEAN as MAX_P95_TO_MEAN
from advisor.core.lengths import Length as Length
from advisor.core.lengths import RequestClass, mean_over
from advisor.core.model import ModelProfile

if TYPE_CHECKING:
    from advisor.core.trace import Trace

METRICS = ("ttft", "tpot", "itl", "e2e")
STATISTICS = ("mean", "p50", "p95", "p99")
SLO_KEYS = tuple(f"{metric}_{statistic}_ms" for metric in METRICS for statistic in STATISTICS)
CLASS_SLO_KEYS = tuple(key for key in SLO_KEYS if not key.startswith("itl"))
"""Of one class: its gaps are steps that all classes share."""

STARTS = ("steady", "burst")
EXPLANATIONS = ("brief", "full")
OBJECTIVES = ("latency", "cost", "throughput", "balanced")
WEIGHT_PRECISIONS = (
    "fp32", "bf16", "fp16", "fp8", "fp8_block", "int8", "int4_awq", "int4_gptq", "int4_g64",
    "int4_g32", "int4_channel", "nf4", "mxfp4", "nvfp4",
)  # fmt: skip
KV_PRECISIONS = ("bf16", "fp16", "fp8", "int8")
BATCHINGS = ("continuous", "static", "none")
ROUTINGS = ("random", "least_loaded")
ENGINES = ("vllm", "sglang", "tensorrt_llm", "generic")
BURSTIEST_MODELLED = 3.0
"""Variation of arrivals up to which latencies under bursts follow simulation and rise with load."""

REQUESTS_A_CLIENT = 10
"""Requests of a burst to each request in flight, as public benchmarks send."""


@dataclass(frozen=True)
class Workload:
    """What arrives: exactly one of an open rate, a closed concurrency, or saturation.

    `prefix_cache_hit` is the share of input tokens found in the prefix cache; `arrival_cv` the
    coefficient of variation of the times between arrivals; `peak_to_mean` sizes for the peak rate.
    What is found there is one prefix that all requests share or, with `own_prefixes`, each
    request's own, as where another replica computed it.

    A closed loop is in its steady state, or a `burst`: all clients send at once, and again when
    they are answered, until `num_requests` are sent; the whole run counts, as in a benchmark.

    Of several `classes` the lengths and the hit above are those of all requests together.
    """

    input_tokens: Length
    output_tokens: Length
    request_rate_per_s: float | None = None
    concurrency: int | None = None
    saturate: bool = False
    arrival_cv: float = 1.0
    peak_to_mean: float = 1.0
    prefix_cache_hit: float = 0.0
    own_prefixes: bool = False
    start: str = "steady"
    num_requests: int | None = None
    trace: Trace | None = None
    classes: tuple[RequestClass, ...] = ()

    @classmethod
    def of_classes(cls, classes: Iterable[RequestClass], **load: Any) -> Workload:
        """Requests of several classes, each as frequent as its share says; shares need not add up
        to 1."""
        classes = tuple(classes)
        inputs = Length.mixed((one.share, one.input_tokens) for one in classes)
        outputs = Length.mixed((one.share, one.output_tokens) for one in classes)
        prefixes = Length.mixed((one.share, Length(one.cached_tokens)) for one in classes)
        hit = prefixes.mean / inputs.mean
        return cls(inputs, outputs, prefix_cache_hit=hit, classes=classes, **load)

    @property
    def burst_requests(self) -> int:
        """Requests of a burst: ten a client, as public benchmarks send, unless given. 0 of a load
        that is no burst."""
        if self.start != "burst" or self.concurrency is None:
            return 0
        return self.num_requests or REQUESTS_A_CLIENT * self.concurrency

    @property
    def mode(self) -> str:
        """`open`, `closed` or `saturated`."""
        if self.saturate:
            return "saturated"
        return "closed" if self.concurrency is not None else "open"

    @cached_property
    def mix(self) -> tuple[RequestClass, ...]:
        """The classes of requests, with shares that add up to 1: one, of all, where none are
        given."""
        if not self.classes:
            hit, own = self.prefix_cache_hit, self.own_prefixes
            lengths = self.input_tokens, self.output_tokens
            return (RequestClass(*lengths, prefix_cache_hit=hit, own_prefixes=own),)
        total = math.fsum(one.share for one in self.classes)
        return tuple(replace(one, share=one.share / total) for one in self.classes)

    @property
    def new_input_tokens(self) -> float:
        """Mean input tokens that are not found in the prefix cache."""
        return self.input_tokens.mean * (1 - self.prefix_cache_hit)

    @cached_property
    def prompt_tokens(self) -> Length:
        """Input tokens that are computed, the prefix hits taken out."""
        if len(self.mix) == 1:
            return self.mix[0].prompt_tokens
        return Length.mixed((one.share, one.prompt_tokens) for one in self.mix)

    @cached_property
    def prompt_pairs(self) -> float:
        """Mean query-key pairs of a prompt."""
        return mean_over(self.mix, lambda one: one.prompt_pairs)

    @cached_property
    def cached_tokens(self) -> float:
        """Mean input tokens of a request that are found in the prefix cache."""
        return mean_over(self.mix, lambda one: one.cached_tokens)

    @cached_property
    def shared_tokens(self) -> float:
        """Mean input tokens of a request that the prefix cache holds once for all."""
        return mean_over(self.mix, lambda one: one.shared_tokens)

    @cached_property
    def gaps(self) -> float:
        """Mean number of gaps between the output tokens of a request."""
        return mean_over(self.mix, lambda one: one.gaps)

    @cached_property
    def correlation(self) -> float:
        """Covariance of prompt and output across classes, over the product of their means."""
        product = mean_over(self.mix, lambda one: one.prompt_tokens.mean * one.output_tokens.mean)
        return product / (self.prompt_tokens.mean * self.output_tokens.mean) - 1

    def work_cv2(self, decode_share: NDArray[np.float64]) -> NDArray[np.float64]:
        """Squared variation of the work of a request, of which decoding is this share on average:
        prompt and decode grow with their lengths, which vary together only across classes."""
        of_decode = decode_share**2 * self.output_tokens.squared_cv
        of_prompt = (1 - decode_share) ** 2 * self.prompt_tokens.squared_cv
        both = 2 * decode_share * (1 - decode_share) * self.correlation
        return np.maximum(of_decode + of_prompt + both, 0.0)

    @cached_property
    def decoding(self) -> tuple[tuple[float, RequestClass], ...]:
        """The share of each class in what decodes: by its output tokens."""
        tokens = self.output_tokens.mean
        return tuple((one.share * one.output_tokens.mean / tokens, one) for one in self.mix)

    @cached_property
    def live_context(self) -> float:
        """Mean context of a request seen in decode: each class as long as it is seen, E[OSL (ISL +
        OSL / 2)] / E[OSL]."""
        return sum(share * one.live_context for share, one in self.decoding)

    @cached_property
    def longest(self) -> float:
        """Tokens of the longest request planned for (p95 lengths where they are given, the longest
        request of a trace)."""
        if self.trace is not None:
            return float(self.trace.longest)
        return max(one.longest for one in self.mix)


@dataclass(frozen=True)
class Limits:
    """Bounds on the search; `None` leaves the choice to the planner."""

    max_accelerators: int = 64
    max_cost_per_hour: Decimal | None = None
    tensor_parallel: tuple[int, ...] | None = None
    pipeline_parallel: tuple[int, ...] = (1,)
    expert_parallel: tuple[int, ...] | None = None
    attention_data_parallel: tuple[int, ...] = (1,)
    decode_context_parallel: tuple[int, ...] = (1,)
    replicas: tuple[int, ...] | None = None
    spare_replicas: int = 0
    max_utilization: float = 0.95
    min_met_probability: float | None = None


@dataclass(frozen=True)
class Speculation:
    """Speculative decoding: a step verifies `draft_tokens` drafted for each sequence, each accepted
    with `acceptance_rate` if those before it were; to draft one takes `draft_cost` plain decode
    steps of the model itself (Leviathan et al. 2023)."""

    draft_tokens: int = 0
    acceptance_rate: float = 0.0
    draft_cost: float = 0.0

    @property
    def verified(self) -> int:
        """Tokens of a sequence that a step computes: those drafted, and the next."""
        return self.draft_tokens + 1

    @property
    def tokens_per_step(self) -> float:
        """Mean tokens that a sequence gains in a step: (1 - a^(g + 1)) / (1 - a)."""
        return sum(self.acceptance_rate**k for k in range(self.verified))

    @property
    def squared_cv(self) -> float:
        """Squared coefficient of variation of those tokens."""
        second = sum((2 * k + 1) * self.acceptance_rate**k for k in range(self.verified))
        return second / self.tokens_per_step**2 - 1

    def steps(self, gaps: float) -> float:
        """Mean steps that so many gaps between tokens take; at least one, if there is a gap."""
        return max(gaps / self.tokens_per_step, min(gaps, 1.0))


NO_SPECULATION = Speculation()


@dataclass(frozen=True)
class Serving:
    """Engine and its settings; `None` takes the default of that engine on that device."""

    engine: str = "vllm"
    engine_version: str | None = None
    sampler: str | None = None
    memory_utilization: float | None = None
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    pipeline_layers: tuple[int, ...] | None = None
    router_efficiency: float = 1.0
    routing: str = "random"
    speculative: Speculation = NO_SPECULATION


@dataclass(frozen=True)
class PlanRequest:
    """One question to the planner. `weights` and `kv_cache` list the precisions to try; an empty
    tuple means the checkpoint's own. `slo` has those of classes too, as `ttft_p95_ms@name`."""

    model: ModelProfile
    hardware: tuple[HardwareProfile, ...]
    workload: Workload
    slo: Mapping[str, float] = field(default_factory=dict)
    objective: str = "cost"
    weights: tuple[str, ...] = ()
    kv_cache: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    serving: Serving = field(default_factory=Serving)
    max_candidates: int = 50
    verify: bool = False
    explain: str = "brief"

    def __post_init__(self) -> None:
        of_classes = {
            f"{key}@{one.name}": limit_ms
            for one in self.workload.classes
            for key, limit_ms in one.slo.items()
        }
        object.__setattr__(self, "slo", dict(self.slo) | of_classes)

    def with_slo(self, slo: Mapping[str, float]) -> PlanRequest:
        """The same question with other SLOs, of all requests and of classes, and no others."""
        classes = tuple(one.with_slo(slo) for one in self.workload.classes)
        return replace(self, slo=slo, workload=replace(self.workload, classes=classes))

    @classmethod
    def from_mapping(
        cls, ask: Mapping[str, Any], model: ModelProfile, hardware: Iterable[HardwareProfile]
    ) -> PlanRequest:
        """A loaded request body, its names resolved to profiles.

        InvalidInput where a device is listed twice.
        """
        devices = tuple(hardware)
        _refuse_repeated(devices)
        return cls(
            model=model,
            hardware=devices,
            workload=ask["workload"],
            slo=ask["slo"],
            objective=ask["objective"],
            weights=tuple(ask["precision"]["weights"]),
            kv_cache=tuple(ask["precision"]["kv_cache"]),
            limits=ask["limits"],
            serving=ask["serving"],
            max_candidates=ask["max_candidates"],
            verify=ask["verify"],
            explain=ask["explain"],
        )


def _refuse_repeated(devices: tuple[HardwareProfile, ...]) -> None:
    first: dict[str, int] = {}
    for i, device in enumerate(devices):
        if first.setdefault(device.name, i) != i:
            detail = f"{device.name} is listed at /hardware/{first[device.name]} already."
            raise InvalidInput(FieldError(f"/hardware/{i}", detail))
