"""What TensorRT-LLM's own benchmark sets where nobody says otherwise.

`trtllm-bench` chooses the largest batch and the token budget by how many requests of the data set's
mean lengths the KV cache is expected to hold (tensorrt_llm/bench/build/tuning.py): memory less the
weights, times the cache's share, over the bytes of a request, rounded up by a rule of steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from advisor.core.hardware import HardwareProfile
from advisor.core.model import ModelProfile
from advisor.core.units import GIB

CACHE_SHARE = 0.95
"""`kv_cache_free_gpu_mem_fraction` of the performance overviews ("in many cases"), and what the
tuning supposes."""

_WEIGHT_BYTES = {"fp8": 1.0, "nvfp4": 0.5}
_CACHE_PRECISION = {"fp8": "fp8", "nvfp4": "fp8"}
_MOST_SEQUENCES, _MOST_TOKENS = 4096, 32768


@dataclass(frozen=True)
class BenchSettings:
    """The engine's largest batch [sequences] and its token budget."""

    max_num_seqs: int
    max_num_batched_tokens: int


def bench_settings(
    model: ModelProfile,
    device: HardwareProfile,
    weights: str,
    ranks: int,
    lengths: tuple[float, float],
) -> BenchSettings:
    """The settings for a model over tensor parallel `ranks`, at mean input and output `lengths`."""
    inputs, outputs = lengths
    cache = model.kv_bytes_per_token(_CACHE_PRECISION.get(weights, "bf16"))
    stored = model.architecture.total_parameters * _WEIGHT_BYTES.get(weights, 2.0)
    held = (device.memory_gib * GIB * ranks - stored) * CACHE_SHARE / (cache * (inputs + outputs))
    batch = min(held, _MOST_SEQUENCES)
    tokens = min(batch * (1 + inputs / outputs), _MOST_TOKENS)
    return BenchSettings(_whole_batch(batch), _whole_budget(tokens))


def _whole_batch(batch: float) -> int:
    step = 32 if batch < 256 else 128 if batch < 1024 else 256
    return max(64, step * math.ceil(batch / step))


def _whole_budget(tokens: float) -> int:
    step = 256 if tokens < 4096 else 512 if tokens < 8192 else 1024
    return max(2048, step * math.ceil(tokens / step))
