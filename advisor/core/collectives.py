"""What a collective costs: an all-reduce over the fast link, or over the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advisor.core.coefficients import coefficient
from advisor.core.hardware import HardwareProfile
from advisor.core.layouts import Layout
from advisor.core.units import GB

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Link:
    """The path of a collective: start-up latency [s], and the bandwidth that one rank reaches
    [bytes/s, per direction]."""

    latency: float
    bandwidth: float


NO_LINK = Link(0.0, np.inf)


def link_of(layout: Layout, ranks: int, engine: str) -> Link:
    """The link that `ranks` ranks of a layout meet over. The layout is a valid one: where it leaves
    the fast link, its device has a network."""
    hardware = layout.hardware
    if ranks == 1:
        return NO_LINK
    if ranks > hardware.largest_domain:
        return _network(hardware, engine)
    link = hardware.interconnect
    assert link is not None
    data_sheet = link.bandwidth_gb_s_per_direction * GB
    if link.topology == "mesh":  # only the links to the ranks taking part carry anything
        data_sheet *= (ranks - 1) / max(link.domain_size - 1, 1)
    if link.topology == "shared":
        latency = coefficient("shared_collective_latency_us", hardware, engine)
        exponent = coefficient("shared_link_exponent", hardware, engine)
        efficiency = (
            coefficient("shared_link_efficiency", hardware, engine) * (2 / ranks) ** exponent
        )
    else:
        latency = coefficient("collective_latency_us", hardware, engine)
        efficiency = coefficient("link_efficiency", hardware, engine)
    return Link(latency * 1e-6, data_sheet * efficiency)


def _network(hardware: HardwareProfile, engine: str) -> Link:
    assert hardware.network_gb_s_per_direction is not None
    efficiency = coefficient("network_efficiency", hardware, engine)
    return Link(
        coefficient("network_latency_us", hardware, engine) * 1e-6,
        hardware.network_gb_s_per_direction * GB * efficiency,
    )


def all_reduce_seconds(size: Array, ranks: Array, latency: Array, bandwidth: Array) -> Array:
    """Time of an all-reduce of `size` bytes [s]; 0 for one rank.

    The faster of one-shot (every rank sends its whole buffer to every other: (r - 1) * size) and
    two-shot (reduce-scatter and all-gather: 2 (r - 1) / r * size, with twice the latency).
    """
    one_shot = latency + (ranks - 1) * size / bandwidth
    two_shot = 2 * latency + 2 * (ranks - 1) / ranks * size / bandwidth
    return np.where(ranks > 1, np.minimum(one_shot, two_shot), 0.0)


def all_to_all_seconds(size: Array, ranks: Array, latency: Array, bandwidth: Array) -> Array:
    """Time for each rank to send `size` bytes, spread evenly over all ranks [s]; 0 for one rank."""
    return np.where(ranks > 1, latency + (ranks - 1) / ranks * size / bandwidth, 0.0)


def columns(links: Sequence[Link]) -> tuple[Array, Array]:
    """Latency and bandwidth of many links, as columns of shape (rows, 1)."""
    latency = np.array([link.latency for link in links], dtype=np.float64)
    bandwidth = np.array([link.bandwidth for link in links], dtype=np.float64)
    return latency[:, None], bandwidth[:, None]
