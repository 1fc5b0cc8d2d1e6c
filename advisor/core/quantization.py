"""What a checkpoint's `quantization_config` says: the format of its weights, and of which parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from advisor.core.config_reader import ConfigReader

QUANTIZABLE = ("attention", "mlp", "experts", "shared_experts")
"""Parts that quantization covers unless a checkpoint leaves one out; embeddings, norms, router and
LM head stay in 16 bits in every published recipe read."""

_MODULES: Mapping[str, tuple[str, ...]] = {
    "attention": ("self_attn", "self_attn.q_proj"),
    "mlp": ("mlp.gate_proj", "mlp.down_proj"),
    "experts": ("mlp.experts", "mlp.experts.0.gate_proj", "block_sparse_moe.experts.0.w1"),
    "shared_experts": ("mlp.shared_experts", "mlp.shared_experts.gate_proj"),
}
"""What each part is called in module patterns, below `model.layers.N.`."""

_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}


@dataclass(frozen=True)
class Checkpoint:
    """How a checkpoint stores its weights and, where it says so, its KV cache."""

    plain_precision: str
    weights_precision: str
    quantized_parts: tuple[str, ...]
    kv_cache_precision: str


def read_checkpoint(config: ConfigReader) -> Checkpoint:
    """The precisions of a checkpoint. InvalidInput when its method is not known."""
    plain = _plain(config)
    kv_cache = "fp16" if plain == "fp16" else "bf16"
    described = config.get("quantization_config")
    if described is None:
        return Checkpoint(plain, plain, (), kv_cache)
    if not isinstance(described, Mapping):
        raise config.refuse("quantization_config", "quantization_config is an object.")
    plain = "bf16" if plain == "fp32" else plain
    storage = _storage(config, described)
    parts = tuple(p for p in QUANTIZABLE if not _left_out(p, described))
    if storage == "mxfp4":  # the only MXFP4 loader quantizes experts alone
        parts = ("experts",)
    return Checkpoint(plain, storage, parts, _kv_cache(described) or kv_cache)


def _plain(config: ConfigReader) -> str:
    dtype = config.get("torch_dtype") or config.get("dtype") or "bfloat16"
    if dtype not in _DTYPES:
        raise config.refuse("torch_dtype", f"{dtype!r} is not known.", allowed=sorted(_DTYPES))
    return _DTYPES[dtype]


def _storage(config: ConfigReader, described: Mapping[str, Any]) -> str:
    method = str(described.get("quant_method") or described.get("quant_algo") or "").lower()
    bits = described.get("bits") or described.get("w_bit")
    if method in ("fp8", "fbgemm_fp8", "modelopt") and _is_fp8(described):
        return "fp8_block" if described.get("weight_block_size") else "fp8"
    if method == "mxfp4":
        return "mxfp4"
    if method in ("nvfp4", "modelopt_fp4") or str(described.get("quant_algo")).upper() == "NVFP4":
        return "nvfp4"
    if method == "awq" and bits == 4:
        return "int4_awq"
    if method == "gptq" and bits in (4, 8):
        return "int4_gptq" if bits == 4 else "int8"
    if method == "compressed-tensors":
        return _compressed_tensors(config, described)
    raise config.refuse(
        "quantization_config",
        "This quantization is not known.",
        given=method or None,
        allowed=["fp8", "mxfp4", "nvfp4", "awq", "gptq", "modelopt", "compressed-tensors"],
    )


def _is_fp8(described: Mapping[str, Any]) -> bool:
    algorithm = str(described.get("quant_algo") or "FP8").upper()
    return algorithm.startswith("FP8")


def _compressed_tensors(config: ConfigReader, described: Mapping[str, Any]) -> str:
    groups = described.get("config_groups") or {}
    weights = [g.get("weights") or {} for g in groups.values() if isinstance(g, Mapping)]
    kinds = {(w.get("type"), w.get("num_bits")) for w in weights}
    known: dict[tuple[Any, Any], str] = {
        ("float", 8): "fp8",
        ("int", 8): "int8",
        ("int", 4): "int4_gptq",
        ("float", 4): "nvfp4",
    }
    if len(kinds) != 1 or not kinds <= set(known):
        raise config.refuse(
            "quantization_config",
            "These weight groups are not known.",
            given=sorted(map(str, kinds)),
        )
    storage = known[kinds.pop()]
    blocked = any(w.get("strategy") == "block" for w in weights)
    return "fp8_block" if storage == "fp8" and blocked else storage


def _left_out(part: str, described: Mapping[str, Any]) -> bool:
    """Whether the checkpoint leaves a whole part unquantized, in every layer."""
    patterns = described.get("modules_to_not_convert") or described.get("ignore") or ()
    wildcards = [p for p in patterns if isinstance(p, str) and "*" in p]
    return any(_matches(f"model.layers.0.{module}", wildcards) for module in _MODULES[part])


def _matches(module: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(module, p) or fnmatchcase(module, f"{p}.*") for p in patterns)


def _kv_cache(described: Mapping[str, Any]) -> str | None:
    scheme = described.get("kv_cache_scheme") or described.get("kv_cache_quant_algo")
    if isinstance(scheme, Mapping):
        return "fp8" if (scheme.get("type"), scheme.get("num_bits")) == ("float", 8) else None
    return "fp8" if str(scheme).upper() == "FP8" else None
