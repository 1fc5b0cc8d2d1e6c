"""Roofline time of one engine step, with where it goes and the floor that physics sets.

A step advances `decode` sequences by one token and computes `prefill` prompt tokens beside them
(chunked prefill): weights are read once. Rows are pipeline stages of layouts, columns are batch
sizes; everything broadcasts to (rows, columns).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from advisor.core import collectives
from advisor.core.coefficients import coefficient
from advisor.core.layouts import ACTIVATION_BYTES, Layout, StageLoad, stage_loads
from advisor.core.model import ModelProfile
from advisor.core.precision import compute_arithmetic

Array = NDArray[np.float64]

CAUSES = ("compute", "memory_bandwidth", "interconnect", "overhead")
"""What a step's time is spent on; the shares of a bottleneck are keyed by these."""

_EXPECTED_MAXIMUM = np.array([0.0, 0.564, 1.029, 1.424, 1.766, 2.070, 2.343, 2.594])
"""Expected largest of 1, 2, 4, ... 128 standard normal values."""


@dataclass(frozen=True)
class StepTimes:
    """Seconds of a step by cause, each of shape (layouts, columns)."""

    compute: Array
    memory_bandwidth: Array
    interconnect: Array
    overhead: Array

    @property
    def total(self) -> Array:
        """The step [s]."""
        return self.compute + self.memory_bandwidth + self.interconnect + self.overhead

    def shares(self) -> dict[str, Array]:
        """Share of the step by cause; they sum to 1."""
        total = self.total
        return {cause: getattr(self, cause) / total for cause in CAUSES}


@dataclass(frozen=True)
class _Rates:
    """What a device reaches on one kind of work: FLOP/s and bytes/s, and the plain peak."""

    flop_s: float
    bytes_s: float
    peak: float


class StepModel:
    """Step times of many layouts of one model under one engine.

    `layouts` give the rows of every answer. Context lengths are means per sequence.
    """

    def __init__(self, model: ModelProfile, layouts: Sequence[Layout], engine: str) -> None:
        self.model, self.layouts, self.engine = model, tuple(layouts), engine
        loads = [stage_loads(model, layout.split) for layout in layouts]
        self._starts = np.cumsum([0, *(len(stages) for stages in loads)])[:-1]
        self._single = all(len(stages) == 1 for stages in loads)
        rows = [
            (layout, stage)
            for layout, stages in zip(layouts, loads, strict=True)
            for stage in stages
        ]
        self._loads = [stage for _, stage in rows]
        self._columns(rows)

    def _columns(self, rows: Sequence[tuple[Layout, StageLoad]]) -> None:
        engine, moe = self.engine, self.model.architecture.moe
        coefficients = [_device_rates(layout, stage, engine) for layout, stage in rows]
        names = [f.name for f in fields(StageLoad) if f.name not in ("caches", "experts_quantized")]
        self.load = {n: _column(getattr(stage, n) for _, stage in rows) for n in names}
        self.rate = {
            key: (
                _column(each[key].flop_s for each in coefficients),
                _column(each[key].bytes_s for each in coefficients),
            )
            for key in ("quantized", "plain", "experts", "attention")
        }
        self.peak = _column(max(r.peak for r in each.values()) for each in coefficients)
        self.data_sheet_bytes_s = _column(layout.hardware.memory_bytes_s for layout, _ in rows)
        self.stages = _column(layout.split.pipeline_parallel for layout, _ in rows)
        self.attention_groups = _column(layout.split.attention_data_parallel for layout, _ in rows)
        self.expert_ranks = _column(layout.split.expert_parallel for layout, _ in rows)
        self.attention_ranks = _column(layout.split.attention_ranks for layout, _ in rows)
        self.ranks = _column(layout.split.tensor_parallel for layout, _ in rows)
        self.context_ranks = _column(layout.split.decode_context_parallel for layout, _ in rows)
        inner = [collectives.link_of(la, la.split.attention_ranks, engine) for la, _ in rows]
        outer = [collectives.link_of(la, la.split.tensor_parallel, engine) for la, _ in rows]
        self.inner_link, self.outer_link = collectives.columns(inner), collectives.columns(outer)
        self.hop = collectives.columns([_hop(layout, engine) for layout, _ in rows])
        self.overlap = _column(
            coefficient("overlap_residue", la.hardware, engine) for la, _ in rows
        )
        self.fixed = _column(_fixed_seconds(la, st, engine, moe is not None) for la, st in rows)

    def times(
        self,
        decode: Array,
        context: Array,
        prefill: Array,
        pairs: Array,
        cached: Array,
        prompts: Array,
    ) -> StepTimes:
        """A step of `decode` sequences at mean `context` tokens, and `prefill` prompt tokens.

        `pairs` are the query-key pairs of those prompt tokens, `cached` the tokens of their own
        prompts already in the cache (read once), `prompts` how many prompts finish in this step
        (the LM head runs on one token of each). All are per replica and broadcast to
        (layouts, columns).
        """
        decode, context, prefill, pairs, cached, prompts = (
            self._spread(x) for x in (decode, context, prefill, pairs, cached, prompts)
        )
        batches = self._microbatches(decode)
        busy = np.clip(prompts, 1.0, batches)  # a prompt's chunk is not split over microbatches
        each = decode / batches
        stage = self._stage(each, context, *(x / busy for x in (prefill, pairs, cached, prompts)))
        if self._single:
            return stage
        none = np.zeros_like(prefill)
        plain = self._stage(each, context, none, none, none, none)
        return self._pipelined(stage, plain, busy, batches - busy)

    def _stage(
        self,
        decode: Array,
        context: Array,
        prefill: Array,
        pairs: Array,
        cached: Array,
        prompts: Array,
    ) -> StepTimes:
        """One microbatch on each stage, (rows, columns)."""
        tokens = decode + prefill
        parts = [
            self._linear("quantized", "quantized", tokens / self.attention_groups),
            self._linear("plain", "plain", tokens / self.attention_groups),
            self._linear("head", "plain", (decode + prompts) / self.attention_groups),
            self._attention(decode, context, pairs, cached, prefill),
            self._states(decode, prompts),
        ]
        if self.model.architecture.moe:
            parts.append(self._experts(tokens))
        compute, memory = self._overlapped(parts)
        link = self._interconnect(tokens, decode + prompts) + self._context_exchange(decode)
        return StepTimes(compute, memory, link, self.fixed + 0 * link)

    def _microbatches(self, decode: Array) -> Array:
        """Microbatches in flight: one a stage, but never more than sequences."""
        return np.asarray(np.clip(decode, 1.0, self.stages))

    def floor(self, decode: Array, context: Array) -> Array:
        """The least time of a decode step that physics allows [s], (layouts, columns).

        max(FLOP / peak, bytes / bandwidth) over a whole pass, from the data sheet: matmul weights
        as stored (the LM head too, the embedding table not), k experts a layer at any batch, and
        the KV of min(window, context), recurrent state read and written.
        """
        decode, context = self._spread(decode), self._spread(context)
        decode = decode / self._microbatches(decode)
        load, groups = self.load, self.attention_groups
        weights = load["quantized_bytes"] + load["plain_bytes"] + load["head_bytes"]
        flop = load["quantized_flop"] + load["plain_flop"] + load["head_flop"]
        size = weights + 0 * decode
        work = flop * decode / groups
        moe = self.model.architecture.moe
        if moe:
            size = size + load["expert_bytes"] * moe.experts_per_token / self.expert_ranks
            work = work + load["experts_flop"] * decode
        size = size + 2 * load["state_bytes"] * decode / groups
        for kv_bytes, decode_flop, _, read in self._cache_columns:
            seen = np.minimum(context, read)
            size = size + kv_bytes * seen * decode / groups
            work = work + decode_flop * seen * decode / groups
        size, work = self._sum_stages(size), self._sum_stages(work)
        peak, bandwidth = self.peak[self._starts], self.data_sheet_bytes_s[self._starts]
        return np.asarray(np.maximum(work / peak, size / bandwidth))

    def _spread(self, value: Array) -> Array:
        """Repeat layouts' rows for each of their stages."""
        if self._single or value.shape[0] == 1:
            return value
        counts = np.diff([*self._starts, len(self._loads)])
        return np.repeat(value, counts, axis=0)

    def _linear(self, group: str, rate: str, tokens: Array) -> tuple[Array, Array]:
        flop_s, bytes_s = self.rate[rate]
        compute = self.load[f"{group}_flop"] * tokens / flop_s
        return compute, self.load[f"{group}_bytes"] / bytes_s + 0 * compute

    @cached_property
    def _cache_columns(self) -> list[tuple[Array, Array, Array, float]]:
        """Bytes read, decode and prefill FLOP, and the window read, of each cache of the model."""
        kinds = zip(*(stage.caches for stage in self._loads), strict=True)
        return [
            (
                _column(k.read_bytes for k in kind),
                _column(k.decode_flop for k in kind),
                _column(k.prefill_flop for k in kind),
                kind[0].read,
            )
            for kind in kinds
        ]

    def _attention(
        self, decode: Array, context: Array, pairs: Array, cached: Array, prefill: Array
    ) -> tuple[Array, Array]:
        flop_s, bytes_s = self.rate["attention"]
        compute = memory = np.zeros_like(decode)
        for kv_bytes, decode_flop, prefill_flop, window in self._cache_columns:
            seen = np.minimum(context, window)
            pairs_seen = np.minimum(pairs, prefill * window)
            compute = compute + decode_flop * decode * seen + prefill_flop * pairs_seen
            read = decode * seen + np.minimum(cached, window * np.maximum(prefill > 0, 1))
            memory = memory + kv_bytes * (read + decode + prefill)
        return compute / self.attention_groups / flop_s, memory / self.attention_groups / bytes_s

    def _states(self, decode: Array, prompts: Array) -> tuple[Array, Array]:
        """Recurrent state is read and written for every decoded token, written once a prompt."""
        moved = self.load["state_bytes"] * (2 * decode + prompts) / self.attention_groups
        return 0 * moved, moved / self.rate["plain"][1]

    def _experts(self, tokens: Array) -> tuple[Array, Array]:
        moe = self.model.architecture.moe
        assert moe is not None
        flop_s, bytes_s = self.rate["experts"]
        read = experts_read(moe.num_experts, moe.experts_per_token, tokens)
        share = slowest_rank_experts(moe.num_experts, read, self.expert_ranks)
        skew = share * self.expert_ranks / np.maximum(read, 1e-300)
        compute = self.load["experts_flop"] * tokens * skew / flop_s
        return compute, self.load["expert_bytes"] * share / bytes_s

    def _overlapped(self, parts: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
        """Each part takes the larger of its two times, and a share of the smaller."""
        compute = memory = np.zeros(1)
        for by_compute, by_memory in parts:
            slower = by_compute > by_memory
            compute = compute + by_compute * np.where(slower, 1.0, self.overlap)
            memory = memory + by_memory * np.where(slower, self.overlap, 1.0)
        return compute, memory

    def _interconnect(self, tokens: Array, logits: Array) -> Array:
        """The layers' all-reduces in each attention group; the embedding's and the logits' once.

        With attention-DP, tokens are dispatched to their experts and combined by all-to-all.
        """
        width = self.model.architecture.hidden_size * ACTIVATION_BYTES
        moe_layers = self.load["moe_layers"]
        apart = self.attention_groups > 1
        reduces = self.load["all_reduces"] - np.where(apart, moe_layers, 0) + 1 / self.stages
        size = tokens * width / self.attention_groups
        time = reduces * collectives.all_reduce_seconds(
            size, self.attention_ranks, *self.inner_link
        )
        gathered = (
            logits / self.attention_groups * self.load["head_flop"] / width * ACTIVATION_BYTES
        )
        time = time + collectives.all_to_all_seconds(
            gathered, self.attention_ranks, *self.inner_link
        ) * (self.load["head_flop"] > 0)
        moe = self.model.architecture.moe
        if moe and apart.any():
            sent = tokens / self.ranks * moe.experts_per_token * width
            one_way = collectives.all_to_all_seconds(sent, self.ranks, *self.outer_link)
            time = time + np.where(apart, 2 * moe_layers * one_way, 0.0)
        latency, bandwidth = self.hop
        return time + np.where(self.stages > 1, latency + tokens * width / bandwidth, 0.0)

    def _context_exchange(self, decode: Array) -> Array:
        """Decode context parallelism: in each layer the queries of its ranks' heads are gathered,
        and the parts of their outputs exchanged.

        A head's query and output are as many elements as half the FLOP per cached token.
        """
        time, ranks = np.zeros_like(decode), self.context_ranks
        if not (ranks > 1).any():
            return time
        for kind in zip(*(stage.caches for stage in self._loads), strict=True):
            layers = _column(load.layers for load in kind)
            flop = _column(load.decode_flop for load in kind)
            size = decode / self.attention_groups * flop * ranks / (4 * np.maximum(layers, 1))
            each = collectives.all_to_all_seconds(size * ACTIVATION_BYTES, ranks, *self.inner_link)
            time = time + 2 * layers * each
        return time

    def _pipelined(
        self, stage: StepTimes, plain: StepTimes, busy: Array, others: Array
    ) -> StepTimes:
        """Stages to layouts: the longer of one microbatch's pass and of a full cycle.

        A cycle is `busy` microbatches with prompts and `others` without, at the slowest stage.
        """
        one_pass = self._sum_stages(stage.total)
        slowest = np.maximum.reduceat(stage.total, self._starts, axis=0)
        slowest_plain = np.maximum.reduceat(plain.total, self._starts, axis=0)
        first = self._starts
        cycle = self._broadcast(busy)[first] * slowest
        cycle = cycle + self._broadcast(others)[first] * slowest_plain
        scale = np.maximum(one_pass, cycle) / one_pass
        return StepTimes(*(self._sum_stages(getattr(stage, cause)) * scale for cause in CAUSES))

    def _broadcast(self, value: Array) -> Array:
        return np.broadcast_to(value, (len(self._loads), value.shape[1]))

    def _sum_stages(self, value: Array) -> Array:
        return value if self._single else np.asarray(np.add.reduceat(value, self._starts, axis=0))


def experts_read(experts: int, chosen: int, tokens: Array) -> Array:
    """Distinct experts that `tokens` tokens of a step use in a layer: E (1 - (1 - k/E)^T).

    Exact for uniform routing, an upper bound under skew; `chosen` at one token.
    """
    return np.asarray(experts * (1 - np.power(1 - chosen / experts, tokens)))


def slowest_rank_experts(experts: int, read: Array, ranks: Array) -> Array:
    """Experts read on the slowest of `ranks` ranks that hold them: the mean, plus the expected
    largest deviation of as many hypergeometric counts."""
    share = read / experts
    held = experts / ranks
    spread = np.sqrt(held * share * (1 - share) * (experts - held) / max(experts - 1, 1))
    steps = np.log2(ranks)
    largest = np.interp(steps, np.arange(len(_EXPECTED_MAXIMUM)), _EXPECTED_MAXIMUM)
    return np.asarray(np.minimum(read / ranks + largest * spread, np.minimum(read, held)))


def _column(values: Iterable[float]) -> Array:
    return np.array(list(values), dtype=np.float64)[:, None]


def _device_rates(layout: Layout, stage: StageLoad, engine: str) -> dict[str, _Rates]:
    """What the device reaches on each kind of work in this layout's formats."""
    device = layout.hardware
    bandwidth = coefficient("bandwidth_efficiency", device, engine) * device.memory_bytes_s
    latent = any(load.latent for load in stage.caches)
    kernel = coefficient("mla_attention_factor", device, engine) if latent else 1.0
    quantized, plain = (_gemm(layout, each, engine) for each in (layout.split.weights, "bf16"))
    experts = quantized if stage.experts_quantized else plain
    return {
        "quantized": replace(quantized, bytes_s=bandwidth),
        "plain": replace(plain, bytes_s=bandwidth),
        "experts": _Rates(
            experts.flop_s * coefficient("expert_gemm_factor", device, engine),
            bandwidth * coefficient("expert_bandwidth_factor", device, engine),
            experts.peak,
        ),
        "attention": _Rates(plain.flop_s * kernel, bandwidth * kernel, plain.peak),
    }


def _gemm(layout: Layout, storage: str, engine: str) -> _Rates:
    """What matrix products of weights stored so reach; the bandwidth is not this function's."""
    device = layout.hardware
    arithmetic = compute_arithmetic(storage, device.dense_tflops)
    assert arithmetic is not None
    factor = {
        "fp8": "fp8_gemm_factor", "int8": "fp8_gemm_factor", "fp4": "fp4_gemm_factor",
    }.get(arithmetic)  # fmt: skip
    efficiency = coefficient("gemm_efficiency", device, engine)
    if factor:
        efficiency *= coefficient(factor, device, engine)
    peak = device.peak_flop_s(arithmetic)
    return _Rates(efficiency * peak, np.nan, peak)


def _hop(layout: Layout, engine: str) -> collectives.Link:
    """The link from one pipeline stage to the next."""
    if layout.split.pipeline_parallel == 1:
        return collectives.NO_LINK
    return collectives.link_of(layout, layout.split.accelerators, engine)


def _fixed_seconds(layout: Layout, stage: StageLoad, engine: str, moe: bool) -> float:
    """Launch, scheduling and host time of one stage's step [s]; the step's own once a pass."""
    device = layout.hardware
    per_layer = coefficient("layer_overhead_us", device, engine) * stage.layers
    per_layer += coefficient("moe_layer_overhead_us", device, engine) * stage.moe_layers
    step = coefficient("moe_step_overhead_ms" if moe else "step_overhead_ms", device, engine)
    return per_layer * 1e-6 + step * 1e-3 / layout.split.pipeline_parallel
