"""Roofline time of one engine step, with where it goes and the floor that physics sets.

A step advances `decode` sequences by one token and computes `prefill` prompt tokens beside them
(chunked prefill): weights are read once. Rows are pipeline stages of layouts, columns are batch
sizes; everything broadcasts to (rows, columns).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from advisor.core import collectives
from advisor.core.coefficients import coefficient
from advisor.core.layouts import ACTIVATION_BYTES, Layout, StageLoad, stage_loads
from advisor.core.model import ModelProfile
from advisor.core.precision import compute_arithmetic, kernel_kind
from advisor.core.roofline import (
    ON_ARRAYS,
    ON_FLOATS,
    CacheCost,
    ExpertCost,
    LinearCost,
    LinkCost,
    Operations,
    StageCost,
    Value,
)
from advisor.core.workload import NO_SPECULATION, Speculation

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


StepFunction = Callable[[float, float, float, float, float, float], float]
"""Seconds of one step of one layout; arguments as those of `StepModel.times`."""


@dataclass(frozen=True)
class _Rates:
    """What a device reaches on one kind of work: FLOP/s and bytes/s, and the plain peak."""

    flop_s: float
    bytes_s: float
    peak: float


class StepModel:
    """Step times of many layouts of one model under one engine.

    `layouts` give the rows of every answer. Context lengths are means per sequence. With
    `speculation` a step also drafts and verifies tokens.
    """

    def __init__(
        self,
        model: ModelProfile,
        layouts: Sequence[Layout],
        engine: str,
        speculation: Speculation = NO_SPECULATION,
    ) -> None:
        self.model, self.layouts, self.engine = model, tuple(layouts), engine
        self.speculation = speculation
        loads = [stage_loads(model, layout.split) for layout in layouts]
        counts = [len(stages) for stages in loads]
        self._starts = np.cumsum([0, *counts])[:-1]
        self._counts = np.array(counts)
        self._single = all(count == 1 for count in counts)
        rows = [
            (layout, stage)
            for layout, stages in zip(layouts, loads, strict=True)
            for stage in stages
        ]
        names = [f.name for f in fields(StageLoad) if f.name not in ("caches", "experts_quantized")]
        self._load = {n: _column(getattr(stage, n) for _, stage in rows) for n in names}
        splits = [layout.split for layout, _ in rows]
        self._stages = _column(split.pipeline_parallel for split in splits)
        self._groups = _column(split.attention_data_parallel for split in splits)
        self._expert_ranks = _column(split.expert_parallel for split in splits)
        self._rows = rows
        rates = [_device_rates(layout, stage, engine) for layout, stage in rows]
        self._peak = _column(max(r.peak for r in each.values()) for each in rates)
        self._data_sheet_bytes_s = _column(layout.hardware.memory_bytes_s for layout, _ in rows)
        self._cost = self._stage_cost(rows, rates)

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
        prompts already in the cache (read once), `prompts` how many prompts these are (the LM head
        runs on one token of each, also of one that is not finished, as in vLLM). All are per
        replica and broadcast to (layouts, columns).
        """
        batches, busy, mixed, unmixed = self._microbatches(
            decode, context, prefill, pairs, cached, prompts
        )
        stage = StepTimes(*self._cost.seconds(*mixed))
        if self._single:
            return stage
        plain = StepTimes(*self._cost.seconds(*unmixed))
        first, one_pass = self._starts, self._sum_stages(stage.total)
        busy, batches = (self._broadcast(x)[first] for x in (busy, batches))
        slowest, slowest_plain = (
            np.maximum.reduceat(x.total, first, axis=0) for x in (stage, plain)
        )
        total = pipelined(one_pass, slowest, slowest_plain, busy, batches, np.maximum)
        return StepTimes(
            *(self._sum_stages(getattr(stage, cause)) * total / one_pass for cause in CAUSES)
        )

    def work(
        self,
        decode: Array,
        context: Array,
        prefill: Array,
        pairs: Array,
        cached: Array,
        prompts: Array,
    ) -> tuple[Array, Array]:
        """FLOP and bytes, as stored, of that step on one accelerator, the mean of a pipeline's
        stages; arguments as those of `times`."""
        batches, busy, mixed, unmixed = self._microbatches(
            decode, context, prefill, pairs, cached, prompts
        )
        with_prompts, without = (self._counted.seconds(*x) for x in (mixed, unmixed))
        flop, moved = (
            self._sum_stages(busy * a + (batches - busy) * b) / self._counts[:, None]
            for a, b in list(zip(with_prompts, without, strict=True))[:2]
        )
        return flop, moved

    @cached_property
    def _counted(self) -> StageCost[Array]:
        """The stages at one FLOP and one byte a second, nothing hidden behind anything: their
        seconds of compute are FLOP, those of memory bytes."""
        unit = _Rates(1.0, 1.0, 1.0)
        rates = dict.fromkeys(("quantized", "plain", "experts", "attention"), unit)
        cost = self._stage_cost(self._rows, [rates] * len(self._rows))
        return replace(cost, overlap=np.ones_like(cost.overlap))

    def _microbatches(
        self, *step: Array
    ) -> tuple[Array, Array, tuple[Array, ...], tuple[Array, ...]]:
        """Microbatches in flight, how many of them have prompts, and what `StageCost.seconds` takes
        of one that has, and of one that has not; `step` are the arguments of `times`."""
        decode, context, prefill, pairs, cached, prompts = (self._spread(x) for x in step)
        batches, busy = microbatches(decode, prompts, self._stages, ON_ARRAYS)
        each, none = decode / batches, np.zeros_like(prefill)
        shares = (x / busy for x in (prefill, pairs, cached, prompts))
        return batches, busy, (each, context, *shares), (each, context, none, none, none, none)

    def step_function(self, layout: int = 0) -> StepFunction:
        """The total of `times` for one of the layouts, of floats: tens of times faster a call."""
        first = int(self._starts[layout])
        stages = [self._cost.row(first + i) for i in range(int(self._counts[layout]))]
        if len(stages) == 1:
            only = stages[0]
            return lambda *columns: sum(only.seconds(*columns))

        def step(
            decode: float,
            context: float,
            prefill: float,
            pairs: float,
            cached: float,
            prompts: float,
        ) -> float:
            batches, busy = microbatches(decode, prompts, len(stages), ON_FLOATS)
            each, shares = decode / batches, [x / busy for x in (prefill, pairs, cached, prompts)]
            mixed = [sum(one.seconds(each, context, *shares)) for one in stages]
            plain = mixed
            if prefill or prompts:
                plain = [sum(one.seconds(each, context, 0, 0, 0, 0)) for one in stages]
            return pipelined(sum(mixed), max(mixed), max(plain), busy, batches, max)

        return step

    def floor(self, decode: Array, context: Array) -> Array:
        """The least time between two tokens that physics allows [s], (layouts, columns): that of a
        decode step, over the tokens that it gains a sequence.

        max(FLOP / peak, bytes / bandwidth) over a whole pass, from the data sheet: matmul weights
        as stored (the LM head too, the embedding table not), k experts a layer at any batch, and
        the KV of min(window, context), recurrent state read and written.
        """
        decode, context = self._spread(decode), self._spread(context)
        decode = decode / microbatches(decode, np.ones((1, 1)), self._stages, ON_ARRAYS)[0]
        computed = decode * self.speculation.verified
        load, groups = self._load, self._groups
        weights = load["quantized_bytes"] + load["plain_bytes"] + load["head_bytes"]
        flop = load["quantized_flop"] + load["plain_flop"] + load["head_flop"]
        size = weights + 0 * decode
        work = flop * computed / groups
        moe = self.model.architecture.moe
        if moe:
            size = size + load["expert_bytes"] * moe.experts_per_token / self._expert_ranks
            work = work + load["experts_flop"] * computed
        size = size + 2 * load["state_bytes"] * decode / groups
        for kind in zip(*(stage.caches for _, stage in self._rows), strict=True):
            seen = np.minimum(context, kind[0].read)
            size = size + _column(k.read_bytes for k in kind) * seen * decode / groups
            work = work + _column(k.decode_flop for k in kind) * seen * computed / groups
        size, work = self._sum_stages(size), self._sum_stages(work)
        peak, bandwidth = self._peak[self._starts], self._data_sheet_bytes_s[self._starts]
        step = np.maximum(work / peak, size / bandwidth)
        return np.asarray(step / self.speculation.tokens_per_step)

    def _stage_cost(
        self, rows: Sequence[tuple[Layout, StageLoad]], rates: Sequence[Mapping[str, _Rates]]
    ) -> StageCost[Array]:
        """What every stage's parts cost, in columns."""
        load, groups, moe = self._load, self._groups, self.model.architecture.moe

        def cost(part: str, rate: str, weights: str, shared_by: Array) -> LinearCost[Array]:
            flop_s = _column(each[rate].flop_s for each in rates)
            bytes_s = _column(each[rate].bytes_s for each in rates)
            return LinearCost(
                load[f"{part}_flop"] / shared_by / flop_s, load[f"{weights}_bytes"] / bytes_s
            )

        experts = None
        if moe:
            experts = ExpertCost(
                cost("experts", "experts", "expert", np.ones((1, 1))),
                moe.num_experts,
                moe.experts_per_token,
                self._expert_ranks,
                expected_maximum(self._expert_ranks),
            )
        bytes_s = _column(each["plain"].bytes_s for each in rates)
        return StageCost(
            quantized=cost("quantized", "quantized", "quantized", groups),
            plain=cost("plain", "plain", "plain", groups),
            head=cost("head", "plain", "head", groups),
            experts=experts,
            caches=tuple(self._cache_costs(rows, rates)),
            state=load["state_bytes"] / groups / bytes_s,
            overlap=_column(
                coefficient("overlap_residue", la.hardware, self.engine) for la, _ in rows
            ),
            fixed=_column(_fixed_seconds(la, st, self.engine, moe is not None) for la, st in rows),
            sequence=_column(_sequence_seconds(la, self.engine, moe is not None) for la, _ in rows),
            link=self._link_cost([layout for layout, _ in rows]),
            ops=ON_ARRAYS,
            verified=self.speculation.verified,
            drafted=self.speculation.draft_tokens * self.speculation.draft_cost,
        )

    def _cache_costs(
        self, rows: Sequence[tuple[Layout, StageLoad]], rates: Sequence[Mapping[str, _Rates]]
    ) -> Iterator[CacheCost[Array]]:
        """Every cache of the model. A head's query and output, which context parallelism exchanges,
        are as many elements as half the FLOP per cached token."""
        groups = self._groups
        ranks = _column(layout.split.decode_context_parallel for layout, _ in rows)
        flop_s = groups * _column(each["attention"].flop_s for each in rates)
        bytes_s = groups * _column(each["attention"].bytes_s for each in rates)
        for kind in zip(*(stage.caches for _, stage in rows), strict=True):
            flop = _column(k.decode_flop for k in kind)
            layers = _column(k.layers for k in kind)
            yield CacheCost(
                decoded=flop / flop_s,
                pair=_column(k.prefill_flop for k in kind) / flop_s,
                moved=_column(k.read_bytes for k in kind) / bytes_s,
                window=kind[0].read,
                exchanges=2 * layers * (ranks > 1),
                exchanged=flop / groups * ranks / (4 * np.maximum(layers, 1)) * ACTIVATION_BYTES,
            )

    def _link_cost(self, layouts: Sequence[Layout]) -> LinkCost[Array]:
        load, groups, moe = self._load, self._groups, self.model.architecture.moe
        width = self.model.architecture.hidden_size * ACTIVATION_BYTES
        dispatched = load["moe_layers"] * (groups > 1)
        ranks = _column(layout.split.tensor_parallel for layout in layouts)
        inner = [collectives.link_of(la, la.split.attention_ranks, self.engine) for la in layouts]
        outer = [collectives.link_of(la, la.split.tensor_parallel, self.engine) for la in layouts]
        skew, latency, hop_bytes_s = collectives.columns([_hop(la, self.engine) for la in layouts])
        return LinkCost(
            reduces=load["all_reduces"] - dispatched + 1 / self._stages,
            hidden=width / groups,
            gathers=np.where(load["head_flop"] > 0, 1.0, 0.0),
            logits=load["head_flop"] / groups / width * ACTIVATION_BYTES,
            dispatches=2 * dispatched,
            dispatched=(moe.experts_per_token if moe else 0) * width / ranks,
            attention_ranks=_column(layout.split.attention_ranks for layout in layouts),
            ranks=ranks,
            context_ranks=_column(layout.split.decode_context_parallel for layout in layouts),
            inner=collectives.columns(inner),
            outer=collectives.columns(outer),
            hop_latency=skew + latency,
            hop_token=width / hop_bytes_s,
        )

    def _spread(self, value: Array) -> Array:
        """Repeat layouts' rows for each of their stages."""
        if self._single or value.shape[0] == 1:
            return value
        return np.repeat(value, self._counts, axis=0)

    def _broadcast(self, value: Array) -> Array:
        return np.broadcast_to(value, (len(self._rows), value.shape[1]))

    def _sum_stages(self, value: Array) -> Array:
        return value if self._single else np.asarray(np.add.reduceat(value, self._starts, axis=0))


def microbatches(
    decode: Value, prompts: Value, stages: Value, ops: Operations[Value]
) -> tuple[Value, Value]:
    """Microbatches in flight: one a stage, but never more than sequences or prompts; and how many
    of them have prompts (a prompt's chunk is not split over microbatches)."""
    batches = ops.minimum(ops.maximum(ops.maximum(decode, prompts), 1.0), stages)
    return batches, ops.minimum(ops.maximum(prompts, 1.0), batches)


def pipelined(
    one_pass: Value,
    slowest: Value,
    slowest_plain: Value,
    busy: Value,
    batches: Value,
    maximum: Callable[[Value, Value], Value],
) -> Value:
    """A pipeline's step [s]: the longer of one microbatch's pass and of a full cycle, which is
    `busy` microbatches with prompts and the others without, at the slowest stage."""
    return maximum(one_pass, busy * slowest + (batches - busy) * slowest_plain)


def expected_maximum(ranks: Array) -> Array:
    """Expected largest of `ranks` standard normal values, by interpolation in log2."""
    levels = np.arange(len(_EXPECTED_MAXIMUM))
    return np.asarray(np.interp(np.log2(ranks), levels, _EXPECTED_MAXIMUM))


def _column(values: Iterable[float]) -> Array:
    return np.array(list(values), dtype=np.float64)[:, None]


def _device_rates(layout: Layout, stage: StageLoad, engine: str) -> dict[str, _Rates]:
    """What the device reaches on each kind of work in this layout's formats."""
    device = layout.hardware
    bandwidth = coefficient("bandwidth_efficiency", device, engine) * device.memory_bytes_s
    kernel = coefficient("mla_attention_factor", device, engine) if stage.latent_layers else 1.0
    cache = coefficient("cache_bandwidth_efficiency", device, engine) * device.memory_bytes_s
    stored = layout.split.weights
    quantized, plain = (_gemm(layout, each, engine) for each in (stored, "bf16"))
    experts = quantized if stage.experts_quantized else plain
    grouped = kernel_kind(stored if stage.experts_quantized else "bf16")
    return {
        "quantized": replace(quantized, bytes_s=bandwidth),
        "plain": replace(plain, bytes_s=bandwidth),
        "experts": _Rates(
            experts.flop_s * coefficient("expert_gemm_factor", device, engine, grouped),
            bandwidth * coefficient("expert_bandwidth_factor", device, engine, grouped),
            experts.peak,
        ),
        "attention": _Rates(plain.flop_s * kernel, cache * kernel, plain.peak),
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
    per_layer += coefficient("latent_layer_overhead_us", device, engine) * stage.latent_layers
    step = coefficient("moe_step_overhead_ms" if moe else "step_overhead_ms", device, engine)
    return per_layer * 1e-6 + step * 1e-3 / layout.split.pipeline_parallel


def _sequence_seconds(layout: Layout, engine: str, moe: bool) -> float:
    """Host and sampling time that a sequence adds to a step [s], its share of each stage's; each
    attention group has its own host process."""
    name = "moe_sequence_overhead_us" if moe else "sequence_overhead_us"
    cost = coefficient(name, layout.hardware, engine) * 1e-6
    return cost / layout.split.attention_data_parallel / layout.split.pipeline_parallel
