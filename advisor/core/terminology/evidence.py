"""What a plan's figures say of a claim of a memory limit: one sentence for each reading."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FULL = 0.9
"""Share of the memory filled from which on capacity is near its limit: what engines take by
default, and leave the rest to the driver and to peaks."""


def evidence(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of a plan that was answered: of its recommended candidate, where it has one.

    `memory_bandwidth_share` is the share of decode time spent on memory traffic and
    `memory_capacity_used` that of the memory filled; `holds` is the reading that they bear out,
    `both`, `neither` or null where there is nothing to go by.
    """
    chosen = plan["recommended"]
    if chosen is None:
        return _none(plan)
    decode, used = chosen["bottleneck"]["decode"], chosen["bottleneck"]["memory_capacity_used"]
    share = decode["shares"]["memory_bandwidth"]
    by_bandwidth = decode["kind"] == "memory_bandwidth"
    by_capacity = used is not None and used >= FULL
    of_plan = f"plan {plan['id']} ({_layout(chosen)})"
    return {
        "plan_id": plan["id"],
        "memory_bandwidth_share": share,
        "memory_capacity_used": used,
        "bandwidth": f"In {of_plan} decode spends {share:.0%} of its time on memory traffic"
        f"{', more than on anything else' if by_bandwidth else ''}.",
        "capacity": f"In {of_plan} "
        + ("the share of memory filled is not known." if used is None else f"{used:.0%} of the "
           f"memory is filled{', which leaves little room' if by_capacity else ''}."),
        "holds": _reading(by_bandwidth, by_capacity),
    }  # fmt: skip


def _reading(by_bandwidth: bool, by_capacity: bool) -> str:
    if by_bandwidth and by_capacity:
        return "both"
    return "bandwidth" if by_bandwidth else "capacity" if by_capacity else "neither"


def _layout(candidate: Mapping[str, Any]) -> str:
    return (
        f"{candidate['replicas']} x TP{candidate['tensor_parallel']} on "
        f"{candidate['hardware']}"
    )  # fmt: skip


def _none(plan: Mapping[str, Any]) -> dict[str, Any]:
    codes = {entry["code"] for entry in plan["rejected"]}
    text = f"Plan {plan['id']} recommends nothing, so that no decode step is there to go by."
    fits_not = "does_not_fit" in codes
    return {
        "plan_id": plan["id"],
        "memory_bandwidth_share": None,
        "memory_capacity_used": None,
        "bandwidth": text,
        "capacity": f"Plan {plan['id']} recommends nothing; "
        + (
            "some of what it tried does not fit into memory."
            if fits_not
            else "nothing that it tried was refused for memory."
        ),
        "holds": None,
    }
