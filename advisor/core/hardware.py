"""Hardware profiles: what the planner needs to know of an accelerator.

A profile is read from the same mapping that the API takes (`HardwareProfile.from_mapping`), so
that an accelerator of any vendor is a line of data.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from advisor.core.units import GB, GIB, TERA

ARITHMETIC = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4", "int4")
INTERCONNECTS = (
    "nvlink",
    "pcie",
    "infinity_fabric",
    "ici",
    "ethernet",
    "infiniband",
    "none",
    "other",
)
TOPOLOGIES = ("switched", "mesh", "shared")


@dataclass(frozen=True)
class Interconnect:
    """The link between accelerators of one node.

    `bandwidth_gb_s_per_direction` is one direction, per accelerator, over all its links;
    `domain_size` is how many accelerators it joins. In a `mesh` each pair has its own link,
    behind a `switched` fabric the whole bandwidth reaches any peer, `shared` is one root for all.
    """

    kind: str
    topology: str
    bandwidth_gb_s_per_direction: float
    domain_size: int


@dataclass(frozen=True)
class Price:
    """One named offer: price of one accelerator for an hour, with its date and source."""

    amount_per_hour: Decimal
    currency: str
    as_of: datetime.date | None
    source: str


@dataclass(frozen=True, eq=False)
class HardwareProfile:
    """One kind of accelerator; two profiles are equal only when they are the same object.

    `memory_gib` is what the device reports as usable in total; `memory_bandwidth_gb_s` and
    `dense_tflops` (by arithmetic, never with sparsity) are the data sheet's. `generation` names the
    architecture that coefficients are kept for (`hopper`, `cdna3`, ...), or is empty when unknown.
    `efficiency` overrides any coefficient by name. `network_gb_s_per_direction` is one
    accelerator's share of the network between nodes.
    """

    name: str
    vendor: str
    memory_gib: float
    memory_bandwidth_gb_s: float
    dense_tflops: Mapping[str, float]
    generation: str = ""
    description: str = ""
    interconnect: Interconnect | None = None
    network_gb_s_per_direction: float | None = None
    accelerators_per_node: int = 1
    tdp_w: float | None = None
    price: Price | None = None
    efficiency: Mapping[str, float] = field(default_factory=dict)

    @property
    def memory_bytes(self) -> float:
        """Usable memory [bytes]."""
        return self.memory_gib * GIB

    @property
    def memory_bytes_s(self) -> float:
        """Data-sheet memory bandwidth [bytes/s]."""
        return self.memory_bandwidth_gb_s * GB

    @property
    def largest_domain(self) -> int:
        """How many accelerators the fast link joins; 1 where there is none."""
        if self.interconnect is None or self.interconnect.kind == "none":
            return 1
        return self.interconnect.domain_size

    def peak_flop_s(self, arithmetic: str) -> float:
        """Dense peak [FLOP/s] in an arithmetic the device has (KeyError otherwise)."""
        return self.dense_tflops[arithmetic] * TERA

    @classmethod
    def from_mapping(cls, document: Mapping[str, Any]) -> HardwareProfile:
        """Read a profile from its API form, whose values are already validated."""
        link = document.get("interconnect")
        network = document.get("network")
        price = document.get("price")
        return cls(
            name=document["name"],
            vendor=document["vendor"],
            description=document.get("description") or "",
            generation=document.get("generation") or "",
            memory_gib=float(document["memory_gib"]),
            memory_bandwidth_gb_s=float(document["memory_bandwidth_gb_s"]),
            dense_tflops={k: float(v) for k, v in document["dense_tflops"].items()},
            interconnect=Interconnect(**link) if link else None,
            network_gb_s_per_direction=(
                float(network["bandwidth_gb_s_per_direction"]) if network else None
            ),
            accelerators_per_node=document.get("accelerators_per_node") or 1,
            tdp_w=document.get("tdp_w"),
            price=_price(price) if price else None,
            efficiency=dict(document.get("efficiency") or {}),
        )


def _price(document: Mapping[str, Any]) -> Price:
    as_of = document.get("as_of")
    return Price(
        amount_per_hour=Decimal(str(document["amount_per_hour"])),
        currency=document["currency"],
        as_of=datetime.date.fromisoformat(str(as_of)) if as_of else None,
        source=document.get("source") or "",
    )
