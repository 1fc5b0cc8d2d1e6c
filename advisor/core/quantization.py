"""What a checkpoint's `quantization_config` says: the format of its weights, and of which parts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product
from typing import Any

from advisor.core.config_reader import ConfigReader

_MODULES: Mapping[str, tuple[str, ...]] = {
    "attention": ("self_attn.q_proj", "self_attn.o_proj"),
    "linear_attention": ("linear_attn.in_proj_qkv", "linear_attn.out_proj"),
    "state_space": ("mixer.in_proj", "mixer.out_proj"),
    "indexer": ("self_attn.indexer.wq_b", "self_attn.indexer.wk"),
    "mlp": ("mlp.gate_proj", "mlp.down_proj"),
    "experts": ("mlp.experts.0.gate_proj", "mlp.experts.0.down_proj"),
    "shared_experts": ("mlp.shared_experts.gate_proj", "mlp.shared_experts.down_proj"),
}
"""Two modules of each part, below `model.layers.N.`: a part is left out when both are."""

_OTHER_NAMES = {
    "language_model.": "",  # text parts of multimodal models
    "backbone.": "model.",
    ".feed_forward": ".mlp",
    ".block_sparse_moe": ".mlp",
    "shared_expert.": "shared_experts.",
}
"""What families call the modules of `_MODULES` otherwise."""

QUANTIZABLE = tuple(_MODULES)
"""Parts that quantization covers unless a checkpoint leaves one out; embeddings, norms, router and
LM head stay in 16 bits in every published recipe read."""

_INT4 = ("int4_awq", "int4_gptq")
_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
_METHODS = ("fp8", "fbgemm_fp8", "mxfp4", "nvfp4", "awq", "gptq", "modelopt", "compressed-tensors")


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
    patterns = tuple(_left_out(described, config.size("num_hidden_layers")))
    parts = tuple(part for part, modules in _MODULES.items() if not _all_match(modules, patterns))
    if storage == "mxfp4":  # the only MXFP4 loader quantizes experts alone
        parts = ("experts",)
    return Checkpoint(plain, storage, parts, _kv_cache(described) or kv_cache)


def _plain(config: ConfigReader) -> str:
    dtype = str(config.get("torch_dtype") or config.get("dtype") or "bfloat16")
    dtype = dtype.removeprefix("torch.")
    if dtype not in _DTYPES:
        raise config.refuse("torch_dtype", f"{dtype!r} is not known.", allowed=sorted(_DTYPES))
    return _DTYPES[dtype]


def _storage(config: ConfigReader, described: Mapping[str, Any]) -> str:
    algorithm = str(described.get("quant_algo") or "").upper()
    method = str(described.get("quant_method") or algorithm).lower()
    bits = str(described.get("bits") or described.get("w_bit"))
    by_bits = {("awq", "4"): "int4_awq", ("gptq", "4"): "int4_gptq", ("gptq", "8"): "int8"}
    found: str | None = by_bits.get((method, bits))
    if found in _INT4 and described.get("group_size") == 32:
        found = "int4_g32"
    if method == "mxfp4":
        found = "mxfp4"
    elif "NVFP4" in algorithm or method in ("nvfp4", "modelopt_fp4"):
        found = "nvfp4"
    elif method in ("fp8", "fbgemm_fp8") or (method == "modelopt" and algorithm.startswith("FP8")):
        found = "fp8_block" if described.get("weight_block_size") else "fp8"
    elif method == "compressed-tensors":
        found = _compressed_tensors(described)
    if found is None:
        raise config.refuse(
            "quantization_config", "This quantization is not known.",
            given=method or None, allowed=list(_METHODS),
        )  # fmt: skip
    return found


def _compressed_tensors(described: Mapping[str, Any]) -> str | None:
    """The format that all weight groups share, if it is a known one."""
    groups = described.get("config_groups")
    members = groups.values() if isinstance(groups, Mapping) else ()
    weights = [
        w for g in members if isinstance(g, Mapping) and isinstance(w := g.get("weights"), Mapping)
    ]
    kinds = {f"{w.get('type')}{w.get('num_bits')}" for w in weights}
    known = {"float8": "fp8", "int8": "int8", "int4": "int4_gptq", "float4": "nvfp4"}
    found = known.get(kinds.pop()) if len(kinds) == 1 else None
    if found in _INT4 and any(w.get("group_size") == 32 for w in weights):
        return "int4_g32"
    blocked = any(w.get("strategy") == "block" for w in weights)
    return "fp8_block" if found == "fp8" and blocked else found


def _left_out(described: Mapping[str, Any], layers: int) -> Iterator[str]:
    """Patterns (`*` for anything) of modules that stay unquantized in every layer."""
    listed = described.get("modules_to_not_convert") or described.get("ignore")
    single: dict[str, set[str]] = {}
    for name in listed if isinstance(listed, list) else ():
        if not isinstance(name, str):
            continue
        usual = _usual(name)
        if usual.startswith("re:"):
            yield from _globs(usual[3:])
        elif "*" in usual:
            yield usual
        else:
            head, _, rest = usual.partition(".layers.")
            number, _, tail = rest.partition(".")
            single.setdefault(f"{head}.layers.*.{tail}", set()).add(number)
    yield from (pattern for pattern, seen in single.items() if len(seen) >= layers)


def _usual(name: str) -> str:
    """The module as `_MODULES` calls it."""
    for other, usual in _OTHER_NAMES.items():
        name = name.replace(other, usual)
    return name


def _globs(expression: str) -> list[str]:
    """The plain patterns of a regular expression made of `.*`, escaped dots and `(a|b)` groups.

    Such expressions come from callers, so none is ever compiled.
    """
    pieces = re.split(r"\(([^()]*)\)", expression)
    choices = [p.split("|") if i % 2 else [p] for i, p in enumerate(pieces)]
    joined = ("".join(each) for each in product(*choices[:9]))
    return [g.replace(r"\.", ".").replace(".*", "*").strip("^$") for g in joined]


def _all_match(modules: tuple[str, ...], patterns: tuple[str, ...]) -> bool:
    return all(
        any(fnmatchcase(f"model.layers.0.{m}", p) or fnmatchcase(f"model.layers.0.{m}", f"{p}.*")
            for p in patterns)
        for m in modules
    )  # fmt: skip


def _kv_cache(described: Mapping[str, Any]) -> str | None:
    scheme = described.get("kv_cache_scheme") or described.get("kv_cache_quant_algo")
    if isinstance(scheme, Mapping):
        return "fp8" if (scheme.get("type"), scheme.get("num_bits")) == ("float", 8) else None
    return "fp8" if str(scheme).upper() == "FP8" else None
