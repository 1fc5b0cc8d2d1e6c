"""Economic request bodies that work when pasted, on a database with the catalogue loaded."""

from __future__ import annotations

from typing import Any

BREAK_EVEN: dict[str, Any] = {
    "a published training cost": {
        "training_cost": 5576000,
        "price_per_call": "0.01",
        "serving_cost_per_call": "0.004",
        "calls": 2000000000,
        "currency": "USD",
    },
    "over time": {
        "training_cost": "5576000",
        "price_per_call": "0.01",
        "serving_cost_per_call": "0.004",
        "calls_per_month": 152187500,
        "fixed_cost_per_month": "200000",
        "monthly_growth": 0.02,
        "price_decline_per_month": 0.03,
        "cost_decline_per_month": 0.02,
        "annual_discount_rate": 0.15,
        "horizon_months": 24,
    },
}

SENSITIVITY: dict[str, Any] = {
    "a published training cost": {
        "training_cost": "5576000",
        "price_per_call": "0.01",
        "serving_cost_per_call": "0.004",
        "swing": 0.2,
    }
}

REQUEST_PRICE: dict[str, Any] = {
    "cached prompts": {
        "uncached_input_tokens": 500,
        "cached_input_tokens": 1000,
        "visible_output_tokens": 500,
        "reasoning_output_tokens": 0,
        "input_per_mtok": "0.55",
        "cached_input_per_mtok": "0.14",
        "output_per_mtok": "2.19",
        "batch_discount": 0,
        "currency": "USD",
    },
    "a listed price": {
        "uncached_input_tokens": 1000,
        "visible_output_tokens": 300,
        "reasoning_output_tokens": 1200,
        "api_offer": "together-gpt-oss-120b",
    },
}

SERVING_COST: dict[str, Any] = {
    "a server that is a tenth busy": {
        "accelerator_hour_price": "2.50",
        "accelerators": 1,
        "output_tokens_per_s": 700,
        "utilization": 0.1,
        "billing": "always_on",
        "currency": "USD",
    },
    "spot, its bill shared with the prompt": {
        "accelerator_hour_price": "2.29",
        "accelerators": 2,
        "output_tokens_per_s": 1400,
        "input_tokens_per_s": 5600,
        "output_to_input_cost_ratio": 4,
        "utilization": 0.6,
        "billing": "always_on",
        "spot": {
            "price_per_hour": "0.8015",
            "fallback_share": 0.05,
            "over_provision": 1.25,
            "lost_work_share": 0.1,
        },
        "api_per_mtok": "0.90",
    },
}

SELF_HOST: dict[str, Any] = {
    "a small model against a cheap API": {
        "input_tokens": 215.196,
        "output_tokens": 198.343,
        "input_per_mtok": "0.18",
        "output_per_mtok": "0.18",
        "replica_cost_per_month": "2204.6",
        "replica_capacity_requests_per_month": 44481528,
        "overhead_per_month": "0",
        "min_replicas": 1,
        "peak_to_mean": 1,
        "currency": "USD",
    }
}

TRAINING_COST: dict[str, Any] = {
    "hours that are known": {
        "parameters_active": 37e9,
        "tokens": 14.8e12,
        "peak_tflops": 989,
        "accelerator_hours": 2664000,
        "price_per_hour": "2",
        "overhead_multiplier": 1,
        "currency": "USD",
    },
    "an estimate": {"parameters_active": 8e9, "tokens": 15e12, "accelerator": "h100-sxm-80gb"},
}

OWNERSHIP: dict[str, Any] = {
    "a board bought in 2024": {
        "capex": "33810",
        "life_years": 4,
        "residual_share": 0,
        "cost_of_capital": 0.1,
        "power_kw": 1.73,
        "price_per_kwh": "0.08",
        "rent_per_hour": "2.95",
        "currency": "USD",
    }
}

SIZE: dict[str, Any] = {
    "a 13B model that serves two trillion tokens": {
        "reference_parameters": 13e9,
        "inference_tokens": 2e12,
        "constants": "sardana_code",
        "alternative_parameters": 7e9,
    }
}
