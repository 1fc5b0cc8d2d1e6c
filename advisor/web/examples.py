"""Request bodies that work when pasted, on a database with the catalogue loaded."""

from __future__ import annotations

from typing import Any

HARDWARE: dict[str, Any] = {
    "H100 at a price of one's own": {
        "name": "my-h100",
        "vendor": "nvidia",
        "generation": "hopper",
        "description": "H100 SXM5 80 GB under a reservation",
        "memory_gib": 79.2,
        "memory_bandwidth_gb_s": 3350,
        "dense_tflops": {"bf16": 989.4, "fp8": 1978.9},
        "interconnect": {
            "kind": "nvlink",
            "topology": "switched",
            "bandwidth_gb_s_per_direction": 450,
            "domain_size": 8,
        },
        "network": {"bandwidth_gb_s_per_direction": 50},
        "accelerators_per_node": 8,
        "tdp_w": 700,
        "price": {
            "amount_per_hour": "2.10",
            "currency": "USD",
            "as_of": "2026-09-25",
            "source": "own contract",
        },
    }
}

MODELS: dict[str, Any] = {
    "from a config.json": {
        "name": "my-llama-8b",
        "aliases": ["my-org/My-Llama-8B"],
        "hf_config": {
            "model_type": "llama",
            "hidden_size": 4096,
            "intermediate_size": 14336,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "vocab_size": 128256,
            "max_position_embeddings": 131072,
            "tie_word_embeddings": False,
            "torch_dtype": "bfloat16",
        },
    },
    "from an architecture": {
        "name": "my-own-1b",
        "architecture": {
            "hidden_size": 2048,
            "vocab_size": 50304,
            "context_length": 8192,
            "num_layers": 24,
            "layer_kinds": {
                "layer": {
                    "mixer": {"kind": "gqa", "num_heads": 16, "num_kv_heads": 4, "head_dim": 128},
                    "mlp": {"kind": "dense", "intermediate_size": 5632},
                }
            },
            "layer_pattern": ["layer"],
        },
    },
}

PLANS: dict[str, Any] = {
    "cheapest within latency bounds": {
        "model": "meta-llama-3.1-70b",
        "hardware": ["h100-sxm-80gb", "h200-sxm-141gb"],
        "workload": {"request_rate_per_s": 4, "input_tokens": 1000, "output_tokens": 250},
        "slo": {"ttft_p95_ms": 1000, "tpot_p95_ms": 50},
        "objective": "cost",
        "precision": {"weights": ["fp8"], "kv_cache": ["fp8"]},
    },
    "one layout, as a benchmark runs it": {
        "model": "meta-llama-3.1-8b",
        "hardware": ["h100-sxm-80gb"],
        "workload": {
            "concurrency": 32,
            "input_tokens": {"mean": 1000, "p95": 2000},
            "output_tokens": 200,
        },
        "limits": {"tensor_parallel": [1], "replicas": [1]},
    },
    "two classes of requests": {
        "model": "meta-llama-3.1-8b",
        "hardware": ["h100-sxm-80gb"],
        "workload": {
            "request_rate_per_s": 6,
            "classes": [
                {
                    "name": "chat",
                    "weight": 3,
                    "input_tokens": {"mean": 600, "p95": 1500},
                    "output_tokens": {"mean": 300, "p95": 800},
                    "slo": {"tpot_p95_ms": 40},
                },
                {
                    "name": "search",
                    "weight": 1,
                    "input_tokens": 5000,
                    "output_tokens": {"values": [1, 50, 200], "weights": [1, 2, 1]},
                    "prefix_cache_hit": 0.2,
                },
            ],
        },
        "slo": {"ttft_p95_ms": 1000},
    },
}

ADVICE: dict[str, Any] = {
    "what would make this plan cheaper?": {
        "plan": PLANS["cheapest within latency bounds"] | {"precision": {}},
        "distilled_model": "meta-llama-3.1-8b",
        "prefix_cache_hit": 0.5,
    },
    "would quantization or drafts help at saturation?": {
        "plan": {
            "model": "meta-llama-3.1-8b",
            "hardware": ["h100-sxm-80gb"],
            "workload": {"saturate": True, "input_tokens": 1000, "output_tokens": 200},
        },
        "objective": "throughput",
        "techniques": ["weight_quantization", "kv_cache_quantization", "speculative_decoding"],
        "speculative": {"draft_tokens": 3, "acceptance_rate": 0.7, "draft_cost": 0.05},
    },
}

_CHAT: dict[str, Any] = {
    "name": "chat",
    "model": "meta-llama-3.1-8b",
    "workload": {"request_rate_per_s": 20, "input_tokens": 1000, "output_tokens": 250},
    "slo": {"ttft_p95_ms": 1000, "tpot_p95_ms": 50},
}

ALLOCATIONS: dict[str, Any] = {
    "own accelerators first, then rented ones": {
        "demands": [
            _CHAT,
            {
                "name": "documents",
                "model": "meta-llama-3.1-70b",
                "workload": {"request_rate_per_s": 6, "input_tokens": 4000, "output_tokens": 300},
                "slo": {"ttft_p95_ms": 3000, "tpot_p95_ms": 60},
                "precision": {"weights": ["fp8"], "kv_cache": ["fp8"]},
            },
        ],
        "inventory": [
            {"hardware": "l40s", "accelerators": 8, "tenure": "owned", "price_per_hour": "0.40"},
            {"hardware": "h100-sxm-80gb", "accelerators": 16},
            {"hardware": "h200-sxm-141gb", "nodes": 1, "whole_nodes": True},
        ],
        "objective": "cost",
    },
    "what to serve with too little": {
        "demands": [
            _CHAT | {"weight": 5},
            _CHAT | {"name": "batch", "weight": 1, "slo": {}},
            _CHAT | {"name": "search", "model": "qwen3-30b-a3b"},
        ],
        "inventory": [{"hardware": "h100-sxm-80gb", "accelerators": 3, "tenure": "owned"}],
        "objective": "accelerators",
    },
}

SWEEPS: dict[str, Any] = {
    "two models on three devices from 1 to 16 requests a second": {
        "grid": {
            "models": ["qwen3-32b", "meta-llama-3.1-70b"],
            "hardware": ["h100-sxm-80gb", "h200-sxm-141gb", "mi300x"],
            "workloads": [
                {
                    "request_rate_per_s": {"from": 1, "to": 16, "steps": 5, "scale": "log"},
                    "input_tokens": [500, 4000],
                    "output_tokens": 250,
                }
            ],
            "slos": [{"ttft_p95_ms": 2000, "tpot_p95_ms": 60}],
            "precisions": [{"weights": ["fp8"], "kv_cache": ["fp8"]}],
        }
    },
}

CHECK: dict[str, Any] = {
    "a claim that needs an answer": {
        "text": "Decode is memory-bound, so we need a bigger GPU.",
        "format": "plain",
    },
    "a Markdown file": {
        "text": "# Sizing\n\nThe 235B MoE fits on a single node and p95 latency is under 300 ms.\n",
        "format": "markdown",
    },
}

REPLIES: dict[str, Any] = {"capacity is meant": {"answers": [{"finding": 0, "sense": "capacity"}]}}
