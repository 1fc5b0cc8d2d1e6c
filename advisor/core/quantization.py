"""What a checkpoint says of its quantization: the format of its weights, and of which parts.

It stands in `quantization_config` of config.json or, of NVIDIA's Model Optimizer, in a second file,
hf_quant_config.json. Both name modules, layer by layer or by patterns; here a part of the model is
quantized or is not, by the majority of its layers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from advisor.core.architecture import Architecture
from advisor.core.config_reader import ConfigReader
from advisor.core.errors import FieldError, InvalidInput
from advisor.core.module_list import ModuleList

_MODULES: Mapping[str, tuple[str, str]] = {
    "attention": ("self_attn.q_proj", "self_attn.o_proj"),
    "linear_attention": ("linear_attn.in_proj_qkv", "linear_attn.out_proj"),
    "state_space": ("mixer.in_proj", "mixer.out_proj"),
    "indexer": ("self_attn.indexer.wq_b", "self_attn.indexer.wk"),
    "mlp": ("mlp.up_proj", "mlp.down_proj"),
    "experts": ("mlp.experts.0.up_proj", "mlp.experts.0.down_proj"),
    "shared_experts": ("mlp.shared_experts.up_proj", "mlp.shared_experts.down_proj"),
}
"""Two modules of each part, below `model.layers.N.`: a part is left out when both are."""

QUANTIZABLE = tuple(_MODULES)
"""Parts that quantization covers unless a checkpoint leaves one out; embeddings, norms, router and
LM head stay in 16 bits in every published recipe read."""

_LEFT_OUT = (
    "modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules", "exclude",
    "llm_int8_skip_modules",
)  # fmt: skip
"""Keys under which tools list the modules that stay as they are."""

_ALGORITHMS = {
    "FP8": "fp8", "FP8_PER_CHANNEL_PER_TOKEN": "fp8", "FP8_PB_WO": "fp8_block",
    "NVFP4": "nvfp4", "NVFP4_AWQ": "nvfp4", "W4A16_NVFP4": "nvfp4",
    "W4A16_AWQ": "int4_awq", "W4A8_AWQ": "int4_awq",
    "W8A8_SQ_PER_CHANNEL": "int8", "INT8_SQ": "int8", "W8A16": "int8",
}  # fmt: skip
"""Formats by the `quant_algo` of Model Optimizer."""

_GROUPS = {128: "", 64: "int4_g64", 32: "int4_g32", -1: "int4_channel"}
"""INT4 formats by how many weights share a scale (-1: all of an output)."""

_STRATEGIES = ("tensor", "channel", "group", "tensor_group", "block")
"""What shares a scale, in compressed-tensors."""

_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
_METHODS = (
    "auto-round", "awq", "bitsandbytes", "compressed-tensors", "fbgemm_fp8", "fp8", "gptq",
    "modelopt", "mxfp4", "nvfp4", "quark",
)  # fmt: skip


@dataclass(frozen=True)
class Checkpoint:
    """How a checkpoint stores its weights and, where it says so, its KV cache.

    `notes` say what of it is counted otherwise than it is stored.
    """

    plain_precision: str
    weights_precision: str
    quantized_parts: tuple[str, ...]
    kv_cache_precision: str
    notes: tuple[str, ...] = field(default=(), compare=False)


def read_checkpoint(
    config: ConfigReader, shape: Architecture, beside: ConfigReader | None = None
) -> Checkpoint:
    """The precisions of a checkpoint of that shape; `beside` is its hf_quant_config.json.

    InvalidInput when its method is not known, or where the two files contradict each other.
    """
    described = config.get("quantization_config")
    if described is not None and not isinstance(described, Mapping):
        raise config.refuse("quantization_config", "quantization_config is an object.")
    inside = _described(config, "quantization_config", described, shape) if described else None
    if described is not None and inside is None:
        raise _unknown(config, "quantization_config")
    if beside is None:
        return inside or _unquantized(config)
    quantization = beside.get("quantization")
    if not isinstance(quantization, Mapping):
        raise beside.refuse("quantization", "hf_quant_config has an object `quantization`.")
    second = _described(config, "quantization", quantization, shape, beside)
    if inside is not None and inside != second:
        raise beside.refuse("quantization", "quantization_config of hf_config says otherwise.")
    return second


def _unquantized(config: ConfigReader) -> Checkpoint:
    dtype = config.dtype() or "bfloat16"
    if dtype not in _DTYPES:
        raise config.refuse("torch_dtype", f"{dtype!r} is not known.", allowed=sorted(_DTYPES))
    plain = _DTYPES[dtype]
    return Checkpoint(plain, plain, (), "fp16" if plain == "fp16" else "bf16")


def _described(
    config: ConfigReader, key: str, given: Mapping[str, Any], shape: Architecture,
    outer: ConfigReader | None = None,
) -> Checkpoint:  # fmt: skip
    """The checkpoint that the object under `key` of `outer` (else of the config) describes."""
    outer = outer or config
    reader = ConfigReader(given, f"{outer.pointer}/{key}")
    plain, kv_cache = _unquantized(config), _kv_cache(reader)
    if kv_cache and reader.text("quant_method") in ("", "modelopt") and not given.get("quant_algo"):
        return replace(plain, kv_cache_precision=kv_cache)  # the KV cache alone
    if given.get("quant_algo") == "MIXED_PRECISION":
        formats = _mixed(reader)
    elif given.get("quant_method") == "compressed-tensors":
        formats = _compressed(outer, key, reader)
    else:
        formats = _uniform(reader, _storage(outer, key, reader))
    base = "bf16" if plain.plain_precision == "fp32" else plain.plain_precision
    by_part = {
        part: _part_format(reader, part, layers, formats)
        for part, layers in _layers_by_part(shape).items()
    }
    kept = {part: each for part, (each, _) in by_part.items() if each is not None}
    if not kept:
        notes = tuple(_notes(by_part, base, base))
        return Checkpoint(base, base, (), kv_cache or plain.kv_cache_precision, notes)
    sizes: Counter[str] = Counter()
    for part, each in kept.items():
        sizes[each] += shape.parameters_by_part[part]
    weights = sizes.most_common(1)[0][0]
    return Checkpoint(
        plain_precision=base,
        weights_precision=weights,
        quantized_parts=tuple(part for part, each in kept.items() if each == weights),
        kv_cache_precision=kv_cache or plain.kv_cache_precision,
        notes=tuple(_notes(by_part, weights, base)),
    )


def _layers_by_part(shape: Architecture) -> dict[str, list[int]]:
    """The layers that have weights of each part."""
    parts = {
        layer: {m.part for m in layer.matrices(shape.hidden_size) if m.matmul_parameters}
        for layer in shape.layer_counts
    }
    found = {
        part: [i for i, layer in enumerate(shape.layers) if part in parts[layer]]
        for part in _MODULES
    }
    return {part: layers for part, layers in found.items() if layers}


_FormatOf = Callable[[int, str], str | None]
"""The format of a module (as `_MODULES` has it) of a layer; None where it stays as it is."""


def _part_format(
    reader: ConfigReader, part: str, layers: list[int], format_of: _FormatOf
) -> tuple[str | None, str]:
    """The format of most layers of a part (as it is, for half of them), and a note on the others.

    InvalidInput where a part has more than one.
    """
    votes: Counter[str | None] = Counter()
    for layer in layers:
        found = {format_of(layer, module) for module in _MODULES[part]} - {None}
        if len(found) > 1:
            raise _several(reader, part, found)
        votes[next(iter(found), None)] += 1
    formats = set(votes) - {None}
    if len(formats) > 1:
        raise _several(reader, part, formats)
    quantized = len(layers) - votes[None]
    chosen = next(iter(formats), None) if 2 * quantized > len(layers) else None
    if quantized in (0, len(layers)):
        return chosen, ""
    counted = "quantized" if chosen else "unquantized"
    return (
        chosen,
        f"{part} is quantized in {quantized} of {len(layers)} layers: all count as {counted}.",
    )


def _several(reader: ConfigReader, part: str, found: Iterable[str | None]) -> Exception:
    names = " and ".join(sorted(map(str, found)))
    return reader.refuse("quantized_layers", f"{part} is stored as {names}; one is expected.")


def _notes(
    by_part: Mapping[str, tuple[str | None, str]], weights: str, plain: str
) -> Iterator[str]:
    for part, (stored, note) in by_part.items():
        if note:
            yield note
        if stored not in (None, weights):
            yield f"{part} is stored as {stored} beside {weights}, and counted as {plain}."


def _storage(outer: ConfigReader, key: str, reader: ConfigReader) -> str:
    given = reader.config
    algorithm = reader.text("quant_algo").upper()
    method = (reader.text("quant_method") or algorithm).lower().removeprefix("intel/")
    found: str | None = None
    if method in ("awq", "gptq", "auto-round"):
        found = _integer(reader, method)
    elif method == "mxfp4":
        found = "mxfp4"
    elif method in ("nvfp4", "modelopt_fp4"):
        found = _nvfp4(reader, "group_size", given.get("group_size"))
    elif method in ("fp8", "fbgemm_fp8"):
        found = "fp8" if given.get("weight_block_size") is None else "fp8_block"
        _check_block(reader, "weight_block_size", given.get("weight_block_size"))
    elif method == "bitsandbytes":
        found = _bitsandbytes(reader)
    elif method == "quark":
        found = _quark(reader)
    elif method == "modelopt" or method == algorithm.lower():
        found = _algorithm(reader, given)
    if found is None:
        raise _unknown(outer, key, method)
    return found


def _unknown(outer: ConfigReader, key: str, method: str = "") -> Exception:
    return outer.refuse(
        key, "This quantization is not known.", given=method or None, allowed=list(_METHODS)
    )


def _integer(reader: ConfigReader, method: str) -> str | None:
    """AWQ, GPTQ and what is packed like them."""
    given = reader.config
    bits = given.get("w_bit") if given.get("bits") is None else given["bits"]
    if bits == 8 and method != "awq":
        return "int8"
    if bits != 4:
        return None
    key = "q_group_size" if given.get("q_group_size") is not None else "group_size"
    return _grouped(reader, key, given.get(key), "int4_awq" if method == "awq" else "int4_gptq")


def _grouped(reader: ConfigReader, key: str, group: Any, usual: str) -> str:
    """The INT4 format of a group size; `usual` has 128, which is also what none means."""
    if group is None:
        return usual
    if type(group) is not int or group not in _GROUPS:
        raise reader.refuse(key, f"{key} is not known.", given=group, allowed=sorted(_GROUPS))
    return _GROUPS[group] or usual


def _nvfp4(reader: ConfigReader, key: str, group: Any) -> str:
    if group is not None and not (type(group) is int and group == 16):
        raise reader.refuse(key, "NVFP4 has groups of 16.", given=group, allowed=[16])
    return "nvfp4"


def _check_block(reader: ConfigReader, key: str, block: Any) -> None:
    if block is not None and block != [128, 128]:
        detail = "Blocks of 128 x 128 weights are known."
        raise reader.refuse(key, detail, given=block, allowed=[[128, 128]])


def _algorithm(reader: ConfigReader, given: Mapping[str, Any]) -> str | None:
    """Model Optimizer's."""
    found = _ALGORITHMS.get(ConfigReader(given, reader.pointer).text("quant_algo").upper())
    group = given.get("group_size")
    if found == "nvfp4":
        return _nvfp4(reader, "group_size", group)
    return _grouped(reader, "group_size", group, found) if found == "int4_awq" else found


def _bitsandbytes(reader: ConfigReader) -> str | None:
    if reader.flag("load_in_4bit") or reader.flag("_load_in_4bit"):
        return "nf4"
    return "int8" if reader.flag("load_in_8bit") or reader.flag("_load_in_8bit") else None


def _compressed_format(reader: ConfigReader, weights: Mapping[str, Any]) -> str | None:
    kind, group = f"{weights.get('type')}{weights.get('num_bits')}", weights.get("group_size")
    if weights.get("strategy") not in (None, *_STRATEGIES):
        detail, given = "The strategy of the weights is not known.", weights.get("strategy")
        raise reader.refuse("config_groups", detail, given=given, allowed=list(_STRATEGIES))
    if group is not None and type(group) is not int:
        raise reader.refuse("config_groups", "group_size is a whole number.", given=group)
    if kind == "float8" and weights.get("strategy") == "block":
        _check_block(reader, "config_groups", weights.get("block_structure"))
        return "fp8_block"
    if kind == "int4":
        channel = group is None and weights.get("strategy") == "channel"
        return _grouped(reader, "config_groups", -1 if channel else group, "int4_gptq")
    if kind == "float4":
        return "mxfp4" if group == 32 else _nvfp4(reader, "config_groups", group)
    return {"float8": "fp8", "int8": "int8"}.get(kind)


def _quark(reader: ConfigReader) -> str | None:
    """AMD's: one format for all layers that are not excluded."""
    overall = reader.config.get("global_quant_config")
    weight = overall.get("weight") if isinstance(overall, Mapping) else None
    if not isinstance(weight, Mapping):
        return None
    if any(each.get("weight") != weight for each in _objects(reader, "layer_quant_config")):
        raise reader.refuse("layer_quant_config", "One format for all weights is expected.")
    kind, group = str(weight.get("dtype")), weight.get("group_size")
    if kind == "fp4":
        return {32: "mxfp4", 16: "nvfp4"}.get(group) if type(group) is int else None
    if kind in ("int4", "uint4"):
        channel = weight.get("qscheme") == "per_channel"
        return _grouped(reader, "global_quant_config", -1 if channel else group, "int4_awq")
    if weight.get("qscheme") not in ("per_tensor", "per_channel"):
        return None
    return {"fp8_e4m3": "fp8", "int8": "int8"}.get(kind)


def _objects(reader: ConfigReader, key: str) -> list[Mapping[str, Any]]:
    """The objects in the object under a key, if there is one."""
    given = reader.get(key, {})
    if not isinstance(given, Mapping) or not all(isinstance(e, Mapping) for e in given.values()):
        raise reader.refuse(key, f"{key} is an object of objects.")
    return list(given.values())


_KV_ALGORITHMS = {"FP8": "fp8", "STATIC": "fp8", "INT8": "int8"}


def _kv_cache(reader: ConfigReader) -> str | None:
    """The format of the KV cache, where the checkpoint has one of its own.

    InvalidInput where it is none that is known: it would be counted in 16 bits.
    """
    found: list[str] = []
    for key in ("kv_cache_scheme", "kv_cache_quant_algo"):
        given = reader.get(key)
        if isinstance(given, Mapping) and (given.get("type"), given.get("num_bits")) == (
            "float",
            8,
        ):
            found.append("fp8")
        elif isinstance(given, str) and given.upper() in _KV_ALGORITHMS:
            found.append(_KV_ALGORITHMS[given.upper()])
        elif given is not None:
            detail, known = "This format of the KV cache is not known.", sorted(_KV_ALGORITHMS)
            raise reader.refuse(key, detail, given=given, allowed=known)
    for key in ("kv_cache_quant_config", "layer_quant_config"):
        for each in _objects(reader, key):
            output = each.get("output_tensors")
            if isinstance(output, Mapping) and output.get("dtype") == "fp8_e4m3":
                found.append("fp8")
            elif output is not None:
                raise reader.refuse(key, "Outputs in fp8_e4m3 are known.", given=output)
    return next(iter(found), None)


def _uniform(reader: ConfigReader, storage: str) -> _FormatOf:
    """One format for every module that is not left out."""
    experts_alone = reader.config.get("quant_method") == "mxfp4"  # its loader knows no others
    left_out = _left_out(reader)

    def format_of(layer: int, module: str) -> str | None:
        whole = left_out.has(layer, module) or (experts_alone and ".experts." not in module)
        return None if whole else storage

    return format_of


def _compressed(outer: ConfigReader, key: str, reader: ConfigReader) -> _FormatOf:
    """compressed-tensors: groups of a format each, for the modules that expressions name, or for
    all others of a class."""
    groups: list[tuple[str, ModuleList | None]] = []
    for group in _objects(reader, "config_groups"):
        weights, targets = group.get("weights"), group.get("targets")
        storage = _compressed_format(reader, weights) if isinstance(weights, Mapping) else None
        if storage is None:
            raise _unknown(outer, key, "compressed-tensors")
        named = _texts(reader, "config_groups", targets)
        by_name = named and all(each.startswith("re:") for each in named)
        modules = _modules(reader, named) if by_name else None
        groups.append((storage, modules))
    if not groups:
        raise _unknown(outer, key, "compressed-tensors")
    groups.sort(key=lambda group: group[1] is None)
    left_out = _left_out(reader)

    def format_of(layer: int, module: str) -> str | None:
        if left_out.has(layer, module):
            return None
        return next((s for s, each in groups if each is None or each.has(layer, module)), None)

    return format_of


def _mixed(reader: ConfigReader) -> _FormatOf:
    """MIXED_PRECISION: a format for each module that is listed; the others stay as they are."""
    listed = reader.config.get("quantized_layers")
    names: dict[str, list[str]] = {}
    for name, each in listed.items() if isinstance(listed, Mapping) else ():
        storage = _algorithm(reader, each) if isinstance(each, Mapping) else None
        if storage is None:
            raise reader.refuse("quantized_layers", f"The format of {name!r} is not known.")
        names.setdefault(storage, []).append(name)
    if not names:
        raise reader.refuse("quantized_layers", "MIXED_PRECISION lists the layers quantized.")
    modules = {storage: _modules(reader, each) for storage, each in names.items()}
    return lambda layer, module: next(
        (storage for storage, each in modules.items() if each.has(layer, module)), None
    )


def _left_out(reader: ConfigReader) -> ModuleList:
    """What stays as it is, also by the rules (`-:`) of GPTQModel."""
    names = [name for key in _LEFT_OUT for name in _texts(reader, key, reader.config.get(key))]
    rules = reader.get("dynamic", {})
    if not isinstance(rules, Mapping) or not all(str(rule).startswith("-:") for rule in rules):
        raise reader.refuse("dynamic", "Rules that leave modules out (`-:`) are expected.")
    expressions = [f"re:{rule[2:]}" for rule in rules]
    return _modules(reader, [*names, *expressions])


def _texts(reader: ConfigReader, key: str, given: Any) -> list[str]:
    """An optional list of names."""
    if given is not None and not (isinstance(given, list) and all(map(_is_text, given))):
        raise reader.refuse(key, f"{key} lists names of modules.")
    return given or []


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _modules(reader: ConfigReader, listed: list[str]) -> ModuleList:
    try:
        return ModuleList(listed)
    except ValueError as error:
        raise InvalidInput(FieldError(reader.pointer, f"It has {error}.")) from error
