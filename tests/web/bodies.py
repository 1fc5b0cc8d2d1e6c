"""Whole request bodies, every field given, by the operation that takes them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from advisor.web import economics_examples, examples

HARDWARE: dict[str, Any] = examples.HARDWARE["H100 at a price of one's own"] | {
    "efficiency": {"bandwidth_efficiency": 0.8},
    "sources": {"tdp_w": "data sheet"},
    "uncertain_fields": ["tdp_w"],
    "notes": "none",
}
MODEL: dict[str, Any] = examples.MODELS["from a config.json"]
MOE_LAYER = {
    "mixer": {
        "kind": "mla",
        "num_heads": 16,
        "q_lora_rank": 512,
        "kv_lora_rank": 256,
        "qk_nope_head_dim": 64,
        "qk_rope_head_dim": 32,
        "v_head_dim": 64,
        "index_topk": 2048,
        "index_heads": 8,
        "index_head_dim": 64,
        "head_gate": False,
    },
    "mlp": {
        "kind": "moe",
        "num_experts": 16,
        "experts_per_token": 2,
        "intermediate_size": 512,
        "shared_intermediate_size": 512,
        "shared_gate": True,
        "latent_size": 256,
        "gated": True,
        "bias": False,
        "router_bias": True,
    },
    "norms": 2,
    "parallel": False,
    "per_layer_input": 0,
    "streams": 1,
}
DENSE_LAYER = {
    "mixer": {
        "kind": "gqa",
        "num_heads": 16,
        "num_kv_heads": 4,
        "head_dim": 64,
        "window": 4096,
        "qkv_bias": True,
        "output_bias": False,
        "chunked": True,
        "qk_norm": "head",
        "output_gate": True,
        "sinks": False,
        "value_head_dim": 32,
        "keys_as_values": False,
        "borrows_kv": False,
        "head_gate": True,
    },
    "mlp": {
        "kind": "dense",
        "intermediate_size": 4096,
        "gated": True,
        "bias": False,
        "activation_scalars": 2,
    },
    "norms": 2,
    "parallel": True,
    "per_layer_input": 64,
    "streams": 1,
}
MLP_LAYER = {
    "mixer": None,
    "mlp": DENSE_LAYER["mlp"],
    "norms": 1,
    "parallel": False,
    "per_layer_input": 0,
    "streams": 1,
}
MAMBA1_LAYER = {
    "mixer": {
        "kind": "mamba1",
        "inner_size": 2048,
        "state_size": 16,
        "conv_kernel": 4,
        "time_step_rank": 64,
        "projection_bias": False,
        "conv_bias": True,
        "inner_norms": True,
        "state_value_bytes": 4,
    },
    "mlp": None,
    "norms": 1,
    "parallel": False,
    "per_layer_input": 0,
    "streams": 1,
}
MAMBA2_LAYER = {
    "mixer": {
        "kind": "mamba2",
        "num_heads": 32,
        "head_dim": 64,
        "state_size": 128,
        "num_groups": 8,
        "conv_kernel": 4,
        "projection_bias": False,
        "conv_bias": True,
        "gated_norm": False,
        "state_value_bytes": 4,
    },
    "mlp": None,
    "norms": 1,
    "parallel": False,
    "per_layer_input": 0,
    "streams": 1,
}
LINEAR_LAYER = {
    "mixer": {
        "kind": "gated_delta_net",
        "num_key_heads": 8,
        "num_value_heads": 16,
        "key_head_dim": 64,
        "value_head_dim": 64,
        "conv_kernel": 4,
        "state_value_bytes": 4,
    },
    "mlp": DENSE_LAYER["mlp"],
    "norms": 2,
    "parallel": False,
    "per_layer_input": 0,
    "streams": 1,
}
COMPRESSED_LAYER = {
    "mixer": {
        "kind": "compressed",
        "num_heads": 16,
        "head_dim": 64,
        "q_lora_rank": 512,
        "output_groups": 4,
        "output_lora_rank": 256,
        "window": 128,
        "compress_rate": 4,
        "index_topk": 512,
        "index_heads": 8,
        "index_head_dim": 64,
    },
    "mlp": None,
    "norms": 1,
    "parallel": False,
    "per_layer_input": 0,
    "streams": 4,
}
DELTA_LAYER = MAMBA1_LAYER | {
    "mixer": {
        "kind": "kimi_delta_attention",
        "num_heads": 16,
        "head_dim": 64,
        "conv_kernel": 4,
        "full_rank_gates": True,
        "state_value_bytes": 4,
    }
}
LIGHTNING_LAYER = MAMBA1_LAYER | {
    "mixer": {
        "kind": "lightning_attention",
        "num_heads": 16,
        "head_dim": 64,
        "state_value_bytes": 4,
    }
}
CONVOLUTION_LAYER = MAMBA1_LAYER | {
    "mixer": {"kind": "short_convolution", "channels": 1024, "conv_kernel": 3, "bias": True}
}
BOTH_LAYER = MAMBA1_LAYER | {
    "mixer": {
        "kind": "gqa_mamba2",
        "attention": DENSE_LAYER["mixer"],
        "state_space": MAMBA2_LAYER["mixer"],
    }
}
ARCHITECTURE: dict[str, Any] = {
    "name": "written-out",
    "aliases": ["org/Written-Out"],
    "architecture": {
        "family": "custom",
        "hidden_size": 1024,
        "vocab_size": 32000,
        "context_length": 32768,
        "tied_embeddings": True,
        "num_layers": 12,
        "positions": 32768,
        "final_norms": 2,
        "head_bias": True,
        "per_layer_vocab": 32000,
        "layer_kinds": {
            "dense": DENSE_LAYER,
            "moe": MOE_LAYER,
            "mlp": MLP_LAYER,
            "mamba1": MAMBA1_LAYER,
            "mamba2": MAMBA2_LAYER,
            "linear": LINEAR_LAYER,
            "compressed": COMPRESSED_LAYER,
            "delta": DELTA_LAYER,
            "lightning": LIGHTNING_LAYER,
            "convolution": CONVOLUTION_LAYER,
            "both": BOTH_LAYER,
        },
        "layer_pattern": [
            *("dense", "moe", "mlp", "mamba1", "mamba2", "linear", "compressed", "delta"),
            *("lightning", "convolution", "both"),
        ],
        "plain_precision": "bf16",
        "weights_precision": "fp8",
        "quantized_parts": ["attention", "mlp"],
        "kv_cache_precision": "fp8",
    },
}
PLAN: dict[str, Any] = {
    "model": "meta-llama-3.1-8b",
    "hardware": ["h100-sxm-80gb"],
    "workload": {
        "request_rate_per_s": 4,
        "input_tokens": {"mean": 1000, "p95": 2000},
        "output_tokens": 250,
        "arrival_cv": 1.2,
        "peak_to_mean": 1.5,
        "prefix_cache_hit": 0.2,
    },
    "slo": {"ttft_p95_ms": 1000, "tpot_p95_ms": 50},
    "objective": "cost",
    "precision": {"weights": ["fp8"], "kv_cache": ["fp8"]},
    "limits": {
        "max_accelerators": 8,
        "max_cost_per_hour": "100.00",
        "tensor_parallel": [1, 2],
        "pipeline_parallel": [1],
        "expert_parallel": [1],
        "attention_data_parallel": [1],
        "replicas": [1, 2],
        "spare_replicas": 0,
        "max_utilization": 0.9,
        "min_met_probability": 0.6,
    },
    "serving": {
        "engine": "vllm",
        "memory_utilization": 0.9,
        "max_num_seqs": 256,
        "max_num_batched_tokens": 8192,
        "router_efficiency": 0.95,
        "routing": "least_loaded",
    },
    "max_candidates": 10,
    "verify": True,
    "explain": "full",
}
PLAN_OF_CLASSES: dict[str, Any] = PLAN | {
    "workload": {
        "concurrency": 40,
        "prefix_cache_hit": 0.2,
        "classes": [
            {
                "name": "chat",
                "weight": 3,
                "input_tokens": {"mean": 600, "p95": 1500},
                "output_tokens": {"mean": 300, "p95": 800},
                "prefix_cache_hit": 0.5,
                "slo": {"ttft_p95_ms": 800, "tpot_mean_ms": 40},
            },
            {
                "name": "search",
                "weight": 0.5,
                "input_tokens": {"values": [500, 4000], "weights": [2, 1]},
                "output_tokens": {"values": [1, 50]},
            },
        ],
    },
    "limits": {"tensor_parallel": [1], "replicas": [1, 2]},
    "serving": {"max_num_batched_tokens": 8192},
}
ADVICE: dict[str, Any] = {
    "plan": PLAN | {"verify": False, "explain": "brief"},
    "objective": "latency",
    "techniques": ["kv_cache_management", "prefix_caching"],
    "distilled_model": "llama-3.2-3b-instruct",
    "speculative": {"draft_tokens": 3, "acceptance_rate": 0.7, "draft_cost": 0.05},
    "prefix_cache_hit": 0.5,
}
BREAK_EVEN: dict[str, Any] = economics_examples.BREAK_EVEN["a published training cost"]
OVER_TIME: dict[str, Any] = economics_examples.BREAK_EVEN["over time"] | {
    "one_off_cost": "1000",
    "free_share": 0.1,
    "fee_share": 0.03,
}
ALLOCATION: dict[str, Any] = {
    "demands": [
        {
            "name": "chat",
            "must_have": False,
            "weight": 2,
            "inventory": ["own"],
            "model": "meta-llama-3.1-8b",
            "workload": {"request_rate_per_s": 5, "input_tokens": 500, "output_tokens": 100},
            "slo": {"ttft_p95_ms": 1000},
            "limits": {"max_accelerators": 8, "tensor_parallel": [1]},
        }
    ],
    "inventory": [
        {
            "name": "own",
            "hardware": "h100-sxm-80gb",
            "accelerators": 4,
            "tenure": "owned",
            "price_per_hour": "1.5",
        }
    ],
    "currency": "USD",
    "max_gap": 0.01,
    "time_limit_s": 2,
    "alternatives": False,
}
CHECK: dict[str, Any] = examples.CHECK["a claim that needs an answer"]
REPLIES: dict[str, Any] = examples.REPLIES["capacity is meant"]

POSTS: dict[str, dict[str, Any]] = {
    "/v1/hardware-profiles": HARDWARE,
    "/v1/model-profiles": ARCHITECTURE,
    "/v1/plans": PLAN,
    "/v1/techniques/advice": ADVICE,
    "/v1/fleets/allocations": ALLOCATION,
    "/v1/economics/break-even": BREAK_EVEN,
    "/v1/economics/sensitivity": OVER_TIME | {"swing": 0.2},
    "/v1/economics/request-price": economics_examples.REQUEST_PRICE["cached prompts"],
    "/v1/economics/serving-cost": economics_examples.SERVING_COST[
        "spot, its bill shared with the prompt"
    ]
    | {"cached_input_tokens_per_s": 100, "cached_to_input_cost_ratio": 0.1, "requests_per_s": 5},
    "/v1/economics/self-host-vs-api": economics_examples.SELF_HOST[
        "a small model against a cheap API"
    ]
    | {"requests_per_month": 30_000_000},
    "/v1/economics/training-cost": {
        "parameters_active": 8e9,
        "tokens": 15e12,
        "peak_tflops": 989.4,
        "mfu": 0.35,
        "price_per_hour": "2.50",
        "overhead_multiplier": 1.5,
        "num_layers": 32,
        "hidden_size": 4096,
        "sequence_tokens": 8192,
    },
    "/v1/economics/ownership": economics_examples.OWNERSHIP["a board bought in 2024"],
    "/v1/economics/inference-aware-size": economics_examples.SIZE[
        "a 13B model that serves two trillion tokens"
    ],
    "/v1/terminology/checks": CHECK,
}
"""Bodies that each get a 2xx on a database with the catalogue."""

BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    **{route: (route, body) for route, body in POSTS.items()},
    "/v1/plans-of-classes": ("/v1/plans", PLAN_OF_CLASSES),
}
"""Those, and what a body cannot have beside other fields, by name."""

Path = tuple[str | int, ...]


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every scalar in a body, with the keys that lead to it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, (*path, index))
    else:
        yield path, value


def with_leaf(body: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    """A copy of a body with another value in one place."""
    changed: Any = copy.deepcopy(body)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return dict(changed)


def pointer(path: Path) -> str:
    """The JSON pointer of a path."""
    return "".join(f"/{key}" for key in path)
