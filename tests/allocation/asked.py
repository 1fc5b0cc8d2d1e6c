"""Allocation requests as the command line and the service load them."""

from __future__ import annotations

from typing import Any

from advisor.allocation.answer import answered
from advisor.allocation.request import AllocationRequest
from advisor.catalog.loader import hardware_profile, model_profile
from advisor.schemas.allocation import loaded_allocation

LOAD: dict[str, Any] = {"request_rate_per_s": 20, "input_tokens": 1000, "output_tokens": 250}
CHAT: dict[str, Any] = {
    "name": "chat",
    "model": "meta-llama-3.1-8b",
    "workload": LOAD,
    "slo": {"ttft_p95_ms": 1000, "tpot_p95_ms": 50},
}
H100: dict[str, Any] = {"hardware": "h100-sxm-80gb", "accelerators": 16}


def request(demands: list[dict[str, Any]], inventory: list[dict[str, Any]], **more: Any) -> Any:
    """The question of a body on the shipped catalogue."""
    body = loaded_allocation({"demands": demands, "inventory": inventory, **more})
    return AllocationRequest.from_mapping(
        body,
        [model_profile(each["model"]) for each in demands],
        [hardware_profile(each["hardware"]) for each in inventory],
    )


def answer(demands: list[dict[str, Any]], inventory: list[dict[str, Any]], **more: Any) -> Any:
    """Its answer; without alternatives unless asked for."""
    return answered(request(demands, inventory, **{"alternatives": False} | more))
