"""What a collective costs: an all-reduce over the fast link, or over the network.

The formulas take floats and arrays alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from advisor.core.coefficients import coefficient
from advisor.core.hardware import HardwareProfile
from advisor.core.layouts import Layout
from advisor.core.units import GB

Array = NDArray[np.float64]
Value = TypeVar("Value", float, Array)


@dataclass(frozen=True)
class Link:
    """The path of a collective: how long its ranks wait for the last of them [s], its kernel's
    start-up latency [s], and the bandwidth that one rank reaches [bytes/s, per direction]."""

    skew: float
    latency: float
    bandwidth: float


NO_LINK = Link(0.0, 0.0, np.inf)


def link_of(layout: Layout, ranks: int, engine: str) -> Link:
    """The link that `ranks` ranks of a layout meet over. The layout is a valid one: where it leaves
    the fast link, its device has a network."""
    if ranks == 1:
        return NO_LINK
    hardware = layout.hardware
    across_nodes = ranks > hardware.largest_domain
    latency, bandwidth = (
        _over_network(hardware, engine) if across_nodes else _in_domain(hardware, ranks, engine)
    )
    return Link(coefficient("collective_skew_us", hardware, engine) * 1e-6, latency, bandwidth)


def _in_domain(hardware: HardwareProfile, ranks: int, engine: str) -> tuple[float, float]:
    """Latency and bandwidth over the fast link. Each doubling of ranks adds to the latency; a
    shared root loses bandwidth by more ranks, a switch may gain some."""
    link = hardware.interconnect
    assert link is not None
    prefix = "shared_" if link.topology == "shared" else ""
    latency, growth, efficiency, exponent = (
        coefficient(prefix + name, hardware, engine)
        for name in (
            "collective_latency_us",
            "collective_growth_us",
            "link_efficiency",
            "link_exponent",
        )
    )
    reached = link.bandwidth_gb_s_per_direction * GB * efficiency
    if link.topology == "mesh":  # only the links to the ranks taking part carry anything
        reached *= (ranks - 1) / max(link.domain_size - 1, 1)
    elif link.topology == "shared":
        reached *= (2 / ranks) ** exponent
    else:
        reached *= min((ranks / 2) ** exponent, 1 / efficiency)
    return (latency + growth * math.log2(ranks / 2)) * 1e-6, reached


def _over_network(hardware: HardwareProfile, engine: str) -> tuple[float, float]:
    """Latency and bandwidth between nodes, the same for any number of ranks."""
    assert hardware.network_gb_s_per_direction is not None
    efficiency = coefficient("network_efficiency", hardware, engine)
    latency = coefficient("network_latency_us", hardware, engine) * 1e-6
    return latency, hardware.network_gb_s_per_direction * GB * efficiency


def all_reduce_seconds(
    size: Value,
    ranks: Value,
    skew: Value,
    latency: Value,
    bandwidth: Value,
    minimum: Callable[[Value, Value], Value],
) -> Value:
    """Time of an all-reduce of `size` bytes [s]; 0 for one rank over no link.

    The faster of one-shot (every rank sends its whole buffer to every other: (r - 1) * size) and
    two-shot (reduce-scatter and all-gather: 2 (r - 1) / r * size, with twice the latency), after
    the ranks have waited for each other.
    """
    sent = (ranks - 1) * size / bandwidth
    return skew + minimum(latency + sent, 2 * latency + 2 / ranks * sent)


def all_to_all_seconds(
    size: Value, ranks: Value, skew: Value, latency: Value, bandwidth: Value
) -> Value:
    """Time for each rank to send `size` bytes, spread evenly over all ranks [s]; 0 for one rank
    over no link."""
    return skew + latency + (ranks - 1) / ranks * size / bandwidth


def columns(links: Sequence[Link]) -> tuple[Array, Array, Array]:
    """Skew, latency and bandwidth of many links, as columns of shape (rows, 1)."""
    values = [(link.skew, link.latency, link.bandwidth) for link in links]
    skew, latency, bandwidth = np.array(values, dtype=np.float64).reshape(-1, 3, 1).swapaxes(0, 1)
    return skew, latency, bandwidth
