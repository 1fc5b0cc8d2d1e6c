"""Models and accelerators that the tests of the core share, by their published figures.

Shapes are those of the models' own config.json, accelerators those of their data sheets; both are
written out so that these tests rest on no catalogue.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from functools import cache
from typing import Any

from advisor.core.coefficients import coefficient_names
from advisor.core.engines import engine_settings
from advisor.core.hardware import HardwareProfile
from advisor.core.layouts import Layout, Split, StageLoad
from advisor.core.model import ModelProfile
from advisor.core.paging import Paging, paging
from advisor.core.plans import Plan, plan
from advisor.core.workload import Length, Limits, PlanRequest, Serving, Workload

_LLAMA = {
    "model_type": "llama",
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
_ALTERNATING = ["sliding_attention", "full_attention"]
_DEEPSEEK = {
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "moe_layer_freq": 1,
    "max_position_embeddings": 163840,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}

CONFIGS: Mapping[str, dict[str, Any]] = {
    "llama-3.1-8b": _LLAMA
    | {
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "intermediate_size": 14336,
    },
    "llama-3.1-70b": _LLAMA
    | {
        "hidden_size": 8192,
        "num_hidden_layers": 80,
        "num_attention_heads": 64,
        "intermediate_size": 28672,
    },
    "llama-3.2-3b": _LLAMA
    | {
        "hidden_size": 3072,
        "num_hidden_layers": 28,
        "num_attention_heads": 24,
        "head_dim": 128,
        "intermediate_size": 8192,
        "tie_word_embeddings": True,
    },
    "mistral-7b": {
        "model_type": "mistral",
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 14336,
        "vocab_size": 32000,
        "max_position_embeddings": 32768,
        "sliding_window": 4096,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
    },
    "qwen2.5-72b": {
        "model_type": "qwen2",
        "hidden_size": 8192,
        "num_hidden_layers": 80,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "intermediate_size": 29568,
        "vocab_size": 152064,
        "max_position_embeddings": 131072,
        "max_window_layers": 80,
        "use_sliding_window": False,
        "sliding_window": 131072,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
    },
    "qwen3-32b": {
        "model_type": "qwen3",
        "hidden_size": 5120,
        "num_hidden_layers": 64,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": 25600,
        "vocab_size": 151936,
        "max_position_embeddings": 40960,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
    },
    "qwen3-30b-a3b": {
        "model_type": "qwen3_moe",
        "hidden_size": 2048,
        "num_hidden_layers": 48,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "intermediate_size": 6144,
        "moe_intermediate_size": 768,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "vocab_size": 151936,
        "max_position_embeddings": 40960,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
    },
    "mixtral-8x7b": {
        "model_type": "mixtral",
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 14336,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "vocab_size": 32000,
        "max_position_embeddings": 32768,
        "sliding_window": None,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
    },
    "deepseek-v3": _DEEPSEEK
    | {
        "model_type": "deepseek_v3",
        "hidden_size": 7168,
        "num_hidden_layers": 61,
        "num_attention_heads": 128,
        "num_key_value_heads": 128,
        "intermediate_size": 18432,
        "q_lora_rank": 1536,
        "n_routed_experts": 256,
        "num_experts_per_tok": 8,
        "n_shared_experts": 1,
        "moe_intermediate_size": 2048,
        "first_k_dense_replace": 3,
        "topk_method": "noaux_tc",
        "num_nextn_predict_layers": 1,
        "vocab_size": 129280,
        "quantization_config": {
            "quant_method": "fp8",
            "fmt": "e4m3",
            "weight_block_size": [128, 128],
        },
    },
    "deepseek-v2-lite": _DEEPSEEK
    | {
        "model_type": "deepseek_v2",
        "hidden_size": 2048,
        "num_hidden_layers": 27,
        "num_attention_heads": 16,
        "num_key_value_heads": 16,
        "intermediate_size": 10944,
        "q_lora_rank": None,
        "n_routed_experts": 64,
        "num_experts_per_tok": 6,
        "n_shared_experts": 2,
        "moe_intermediate_size": 1408,
        "first_k_dense_replace": 1,
        "topk_method": "greedy",
        "vocab_size": 102400,
    },
    "gpt-oss-120b": {
        "model_type": "gpt_oss",
        "hidden_size": 2880,
        "num_hidden_layers": 36,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "intermediate_size": 2880,
        "num_local_experts": 128,
        "num_experts_per_tok": 4,
        "attention_bias": True,
        "sliding_window": 128,
        "layer_types": _ALTERNATING * 18,
        "vocab_size": 201088,
        "max_position_embeddings": 131072,
        "tie_word_embeddings": False,
        "quantization_config": {
            "quant_method": "mxfp4",
            "modules_to_not_convert": [
                "model.layers.*.self_attn",
                "model.layers.*.mlp.router",
                "model.embed_tokens",
                "lm_head",
            ],
        },
    },
}

_PRICES = {"h100": "6.88", "h200": "7.91", "mi300x": "5.99"}

DEVICES: Mapping[str, dict[str, Any]] = {
    "h100": {
        "name": "h100",
        "vendor": "nvidia",
        "generation": "hopper",
        "memory_gib": 79.2,
        "memory_bandwidth_gb_s": 3350,
        "dense_tflops": {"bf16": 989.4, "fp16": 989.4, "fp8": 1978.9, "int8": 1978.9},
        "interconnect": {
            "kind": "nvlink",
            "topology": "switched",
            "bandwidth_gb_s_per_direction": 450,
            "domain_size": 8,
        },
        "network": {"bandwidth_gb_s_per_direction": 50},
        "accelerators_per_node": 8,
        "price": {"amount_per_hour": "6.88", "currency": "USD", "as_of": "2026-09-25"},
    },
    "h200": {
        "name": "h200",
        "vendor": "nvidia",
        "generation": "hopper",
        "memory_gib": 139.8,
        "memory_bandwidth_gb_s": 4800,
        "dense_tflops": {"bf16": 989.4, "fp16": 989.4, "fp8": 1978.9, "int8": 1978.9},
        "interconnect": {
            "kind": "nvlink",
            "topology": "switched",
            "bandwidth_gb_s_per_direction": 450,
            "domain_size": 8,
        },
        "network": {"bandwidth_gb_s_per_direction": 50},
        "accelerators_per_node": 8,
        "price": {"amount_per_hour": "7.91", "currency": "USD", "as_of": "2026-09-25"},
    },
    "mi300x": {
        "name": "mi300x",
        "vendor": "amd",
        "generation": "cdna3",
        "memory_gib": 191.7,
        "memory_bandwidth_gb_s": 5300,
        "dense_tflops": {"bf16": 1307.4, "fp16": 1307.4, "fp8": 2614.9},
        "interconnect": {
            "kind": "infinity_fabric",
            "topology": "mesh",
            "bandwidth_gb_s_per_direction": 448,
            "domain_size": 8,
        },
        "network": {"bandwidth_gb_s_per_direction": 50},
        "accelerators_per_node": 8,
        "price": {"amount_per_hour": "5.99", "currency": "USD", "as_of": "2026-09-25"},
    },
    "l40s": {
        "name": "l40s",
        "vendor": "nvidia",
        "generation": "ada",
        "memory_gib": 44.4,
        "memory_bandwidth_gb_s": 864,
        "dense_tflops": {"bf16": 362, "fp16": 362, "fp8": 733},
        "interconnect": {
            "kind": "pcie",
            "topology": "shared",
            "bandwidth_gb_s_per_direction": 32,
            "domain_size": 8,
        },
        "accelerators_per_node": 8,
        "price": {"amount_per_hour": "1.86", "currency": "USD", "as_of": "2026-09-25"},
    },
    "a100": {
        "name": "a100",
        "vendor": "nvidia",
        "generation": "ampere",
        "memory_gib": 79.2,
        "memory_bandwidth_gb_s": 2039,
        "dense_tflops": {"bf16": 312, "fp16": 312, "int8": 624},
        "interconnect": {
            "kind": "nvlink",
            "topology": "switched",
            "bandwidth_gb_s_per_direction": 300,
            "domain_size": 8,
        },
        "accelerators_per_node": 8,
        "price": {"amount_per_hour": "3.67", "currency": "USD", "as_of": "2026-09-25"},
    },
}

IDEAL = dict.fromkeys(coefficient_names(), 1.0) | {
    name: 0.0
    for name in coefficient_names()
    if name.endswith(("_us", "_ms")) or name in ("overlap_residue", "shared_link_exponent")
}
"""Efficiencies of a machine without any loss: every peak reached, every overhead gone."""


@cache
def model(name: str) -> ModelProfile:
    """A model by name, always the same object."""
    return ModelProfile.from_mapping({"name": name, "hf_config": CONFIGS[name]})


def config(name: str, **changes: Any) -> dict[str, Any]:
    """A copy of a model's config.json with some keys changed; `...` takes a key out."""
    changed: dict[str, Any] = json.loads(json.dumps(CONFIGS[name])) | changes
    return {key: value for key, value in changed.items() if value is not ...}


@cache
def device(name: str) -> HardwareProfile:
    """An accelerator by name, always the same object."""
    return HardwareProfile.from_mapping(DEVICES[name])


def unpriced(name: str) -> HardwareProfile:
    """An accelerator without a price."""
    return replace(device(name), price=None)


def priced(name: str, amount: str, currency: str = "USD") -> HardwareProfile:
    """An accelerator at another price."""
    price = device(name).price
    assert price is not None
    return replace(
        device(name), price=replace(price, amount_per_hour=Decimal(amount), currency=currency)
    )


def layout(on: HardwareProfile | str = "h100", **split: Any) -> Layout:
    """A split on an accelerator."""
    return Layout(device(on) if isinstance(on, str) else on, Split(**split))


def pages(stage: StageLoad, engine: str = "vllm", longest: float = 4096, **serving: Any) -> Paging:
    """How an engine pages the KV cache of a stage (of one rank that has any device)."""
    settings = engine_settings(Serving(engine=engine, **serving), device("h100"), Split(), longest)
    return paging(stage, settings)


def workload(inputs: float | Length, outputs: float | Length, **load: Any) -> Workload:
    """A workload of fixed lengths, or of the lengths given."""
    return Workload(
        inputs if isinstance(inputs, Length) else Length(inputs),
        outputs if isinstance(outputs, Length) else Length(outputs),
        **load,
    )


def request(
    of: ModelProfile | str = "llama-3.1-8b",
    on: HardwareProfile | str | tuple[HardwareProfile, ...] = "h100",
    load: Workload | None = None,
    limits: Mapping[str, Any] | None = None,
    serving: Mapping[str, Any] | None = None,
    **fields: Any,
) -> PlanRequest:
    """A plan request; by default 8B on H100 at 4 requests a second of 1,000 and 250 tokens."""
    devices = (device(on) if isinstance(on, str) else on,) if not isinstance(on, tuple) else on
    return PlanRequest(
        model=model(of) if isinstance(of, str) else of,
        hardware=devices,
        workload=load or workload(1000, 250, request_rate_per_s=4.0),
        limits=Limits(**(limits or {})),
        serving=Serving(**(serving or {})),
        **fields,
    )


def planned(*args: Any, **kwargs: Any) -> Plan:
    """The plan of a `request`."""
    return plan(request(*args, **kwargs))


def answer(*args: Any, **kwargs: Any) -> dict[str, Any]:
    """The answer to a `request`, as it would travel: through JSON that knows no NaN."""
    travelled: dict[str, Any] = json.loads(
        json.dumps(planned(*args, **kwargs).as_dict(), allow_nan=False)
    )
    return travelled
