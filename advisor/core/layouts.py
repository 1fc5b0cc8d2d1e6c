"""Layouts: one model split one way over one kind of accelerator, and what that puts on a rank."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from advisor.core.architecture import VOCABULARY_PADDING, Architecture, Layer
from advisor.core.hardware import HardwareProfile
from advisor.core.mlps import MoeMlp
from advisor.core.model import ModelProfile
from advisor.core.precision import KV_BYTES, WEIGHT_BYTES
from advisor.core.quantization import QUANTIZABLE
from advisor.core.weights import Matrix

ACTIVATION_BYTES = 2
"""Activations travel in 16 bits, also with FP8 weights."""


@dataclass(frozen=True)
class Split:
    """How one replica uses its TP x PP accelerators, and in which formats.

    Experts are dealt out over `expert_parallel` of the TP ranks and split in width over the rest;
    attention runs in `attention_data_parallel` groups of TP / D ranks, each with its own sequences.
    `decode_context_parallel` ranks that would hold the same KV heads share out the tokens of a
    sequence instead. `pipeline_layers` are the layers of each stage, where they are not dealt out
    evenly.
    """

    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    expert_parallel: int = 1
    attention_data_parallel: int = 1
    decode_context_parallel: int = 1
    pipeline_layers: tuple[int, ...] = ()
    weights: str = "bf16"
    kv_cache: str = "bf16"

    @property
    def accelerators(self) -> int:
        """Accelerators of one replica."""
        return self.tensor_parallel * self.pipeline_parallel

    @property
    def attention_ranks(self) -> int:
        """Ranks over which heads, dense MLPs and the LM head are split."""
        return self.tensor_parallel // self.attention_data_parallel


@dataclass(frozen=True)
class Layout:
    """A split on a kind of accelerator."""

    hardware: HardwareProfile
    split: Split


@dataclass(frozen=True)
class CacheLoad:
    """One cache of all `layers` of a kind in a stage, on one rank.

    `kv_bytes` per cached token of a sequence, whose tokens context parallelism shares out; a
    sequence keeps its last `kept` tokens and a decoded token reads at most `read` (UNBOUNDED for
    full attention), `read_bytes` of each, which includes what is borrowed from another layer; FLOP
    per decoded token and cached token, and per query-key pair of prefill.
    """

    layers: int
    kept: float
    read: float
    latent: bool
    kv_bytes: float
    read_bytes: float
    decode_flop: float
    prefill_flop: float


@dataclass(frozen=True)
class StageLoad:
    """What one pipeline stage puts on each of its ranks.

    Weight groups: `quantized` and `plain` linear layers, the LM `head`, and `expert` (one expert
    over all its layers). `*_bytes` are read in a step, `*_flop` are per token. `weight_bytes` is
    everything stored, `stored_expert_bytes` the experts in it, `state_bytes` the recurrent state of
    one sequence in `state_layers` layers.
    """

    weight_bytes: float
    quantized_bytes: float
    quantized_flop: float
    plain_bytes: float
    plain_flop: float
    head_bytes: float
    head_flop: float
    expert_bytes: float
    experts_flop: float
    experts_quantized: bool
    stored_expert_bytes: float
    caches: tuple[CacheLoad, ...]
    state_bytes: float
    state_layers: int
    layers: int
    moe_layers: int
    all_reduces: int
    widest_activation: float

    @property
    def latent_layers(self) -> int:
        """Layers with latent attention."""
        return sum(cache.layers for cache in self.caches if cache.latent)


@lru_cache(maxsize=4096)
def stage_loads(model: ModelProfile, split: Split) -> tuple[StageLoad, ...]:
    """The load of every pipeline stage, first to last."""
    shape = model.architecture
    stages = split.pipeline_layers or split_layers(len(shape.layers), split.pipeline_parallel)
    bounds = np.cumsum([0, *stages])
    last = split.pipeline_parallel - 1
    return tuple(
        _stage(shape, split, shape.layers[bounds[i] : bounds[i + 1]], i == 0, i == last)
        for i in range(split.pipeline_parallel)
    )


def split_layers(layers: int, stages: int) -> list[int]:
    """Layers of each pipeline stage; what does not divide goes to the stages before the last,
    which holds the LM head (vLLM's rule)."""
    base, rest = divmod(layers, stages)
    counts = [base] * stages
    for i in range(rest):
        counts[stages - 2 - i] += 1
    return counts


def quantized_parts(shape: Architecture, weights: str) -> tuple[str, ...]:
    """Parts stored as `weights`: the checkpoint's own choice when it is its own format."""
    if weights == shape.weights_precision and shape.quantized_parts:
        return shape.quantized_parts
    return QUANTIZABLE


def _stage(
    shape: Architecture, split: Split, layers: tuple[Layer, ...], first: bool, last: bool
) -> StageLoad:
    quantized = quantized_parts(shape, split.weights)
    storage, plain = WEIGHT_BYTES[split.weights], WEIGHT_BYTES[_plain(shape, split.weights)]
    groups = {key: np.zeros(2) for key in ("quantized", "plain", "expert")}
    stored = stored_experts = 0.0
    ends = (*(shape.entrance if first else ()), *(shape.exit if last else ()))
    held = [(each.matrices(shape.hidden_size), count) for each, count in Counter(layers).items()]
    for matrices, count in [*held, (ends, 1)]:
        for matrix in matrices:
            is_quantized = matrix.part in quantized
            size = storage if is_quantized else plain
            ways, copies = _ways(matrix, split)
            one = matrix.matmul_parameters / ways
            stored += count * size * copies * one
            stored += count * plain * copies * matrix.vector / ways
            if matrix.part == "experts":
                stored_experts += count * size * copies * one
                groups["expert"] += count * np.array([size * one, 2 * matrix.used * one])
            else:
                group = "quantized" if is_quantized else "plain"
                groups[group] += count * np.array([size * one, 2 * one])
    head = _vocabulary(shape, split, plain)
    if first:
        stored += head[0]
    if last and not (shape.tied_embeddings and first):
        stored += head[0]
    if last:
        stored += plain * shape.lm_head.vector / split.attention_ranks
    experts_flop = groups["expert"][1] / split.expert_parallel
    states = [size for size in _state_bytes(layers, split.attention_ranks) if size]
    moe_layers = sum(isinstance(layer.mlp, MoeMlp) for layer in layers)
    return StageLoad(
        weight_bytes=stored,
        quantized_bytes=groups["quantized"][0],
        quantized_flop=groups["quantized"][1],
        plain_bytes=groups["plain"][0],
        plain_flop=groups["plain"][1],
        head_bytes=head[0] if last else 0.0,
        head_flop=head[1] if last else 0.0,
        expert_bytes=groups["expert"][0],
        experts_flop=experts_flop,
        experts_quantized="experts" in quantized,
        stored_expert_bytes=stored_experts,
        caches=_caches(shape, layers, split),
        state_bytes=sum(states),
        state_layers=len(states),
        layers=len(layers),
        moe_layers=moe_layers,
        all_reduces=sum(layer.all_reduces for layer in layers),
        widest_activation=_widest(layers, split),
    )


def _plain(shape: Architecture, weights: str) -> str:
    """Format of the parts that are not quantized."""
    if weights in ("fp32", "bf16", "fp16"):
        return weights
    return "bf16" if shape.plain_precision == "fp32" else shape.plain_precision


def _ways(matrix: Matrix, split: Split) -> tuple[int, float]:
    """Over how many ranks one copy is divided, and how many copies a rank holds."""
    if matrix.part == "experts":
        width = split.tensor_parallel // split.expert_parallel
        return width, matrix.copies / split.expert_parallel
    return matrix.ways(split.attention_ranks), matrix.copies


def _vocabulary(shape: Architecture, split: Split, size: float) -> tuple[float, float]:
    """Bytes and FLOP per token of this rank's share of the LM head, vocabulary padded."""
    padded = shape.vocab_size
    if split.attention_ranks > 1:
        padded = -(-padded // VOCABULARY_PADDING) * VOCABULARY_PADDING
    parameters = shape.hidden_size * padded / split.attention_ranks
    return size * parameters, 2 * parameters


def _caches(shape: Architecture, layers: tuple[Layer, ...], split: Split) -> tuple[CacheLoad, ...]:
    """Every cache of the model, in the same order for each stage (empty where it has no layer)."""
    ranks, size = split.attention_ranks, KV_BYTES[split.kv_cache]
    shared = split.decode_context_parallel
    held = Counter(layer.mixer for layer in layers)
    return tuple(
        CacheLoad(
            layers=held[mixer] if cache.elements or cache.fixed_bytes else 0,
            kept=cache.kept,
            read=cache.read,
            latent=cache.latent,
            kv_bytes=held[mixer] * (cache.elements * size + cache.fixed_bytes) / shared,
            read_bytes=held[mixer]
            * ((cache.elements + cache.borrowed) * size + cache.fixed_bytes)
            / shared,
            decode_flop=held[mixer] * cache.decode_flop / ranks,
            prefill_flop=held[mixer] * cache.prefill_flop / ranks,
        )
        for mixer in dict.fromkeys(layer.mixer for layer in shape.layer_counts)
        if mixer is not None
        for cache in mixer.caches(ranks)
    )


def _state_bytes(layers: tuple[Layer, ...], ranks: int) -> list[float]:
    return [layer.mixer.state_bytes(ranks) for layer in layers if layer.mixer is not None]


def _widest(layers: tuple[Layer, ...], split: Split) -> float:
    """Widest MLP activation of a rank [elements a token]: gate, up and their product."""
    widths = (layer.mlp.intermediate_size for layer in layers if layer.mlp is not None)
    return 3.0 * max(widths, default=0) / split.attention_ranks
