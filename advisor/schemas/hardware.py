"""Hardware profiles: one accelerator and the links it has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, post_load, pre_load, validates_schema

from advisor.core.coefficients import coefficient_bounds, coefficient_names
from advisor.core.hardware import ARITHMETIC, INTERCONNECTS, TOPOLOGIES
from advisor.schemas.base import Answer, Closed
from advisor.schemas.common import MessageAnswer, PageQuery, StoredAnswer, page_of
from advisor.schemas.containers import ListOf, MapOf, Section
from advisor.schemas.faults import fault
from advisor.schemas.fields import Choice, Currency, Date, Money, Name, Number, Text, Whole

LEAST_GB_S = 1e-3
MOST_GB_S = 1e6


class InterconnectBody(Closed):
    """The link between the accelerators of one node.

    `none` says that there is no such link; the other fields may then be left out.
    """

    kind = Choice("What the link is.", INTERCONNECTS, required=True)
    topology = Choice(
        "`switched`: the whole bandwidth reaches any peer; `mesh`: each pair has its own link; "
        "`shared`: all share one root.",
        TOPOLOGIES, required=True,
    )  # fmt: skip
    bandwidth_gb_s_per_direction = Number(
        "One direction, per accelerator, over all its links [GB/s]. 0 only for `none`.",
        0, MOST_GB_S, required=True,
    )  # fmt: skip
    domain_size = Whole(
        "How many accelerators the link joins; 1 for `none`.", 1, 65_536, required=True
    )

    @pre_load
    def complete_none(self, data: Any, **_: Any) -> Any:
        """No link has no bandwidth and joins nothing."""
        if isinstance(data, Mapping) and data.get("kind") == "none":
            absent = {"topology": "shared", "bandwidth_gb_s_per_direction": 0, "domain_size": 1}
            return absent | dict(data)
        return data

    @validates_schema
    def agree(self, data: dict[str, Any], **_: Any) -> None:
        """A link has bandwidth; none has, and joins nothing, where there is no link."""
        linked = data["kind"] != "none"
        bandwidth, size = data["bandwidth_gb_s_per_direction"], data["domain_size"]
        faults = {}
        least, most = (LEAST_GB_S, MOST_GB_S) if linked else (0, 0)
        if not least <= bandwidth <= most:
            detail = f"A link of kind {data['kind']} has {'some' if linked else 'no'} bandwidth."
            allowed = {"minimum": least, "maximum": most}
            wrong = fault(detail, given=bandwidth, allowed=allowed)
            faults["bandwidth_gb_s_per_direction"] = wrong.messages
        if size > 1 and not linked:
            detail = "Without a link, no accelerators are joined."
            wrong = fault(detail, given=size, allowed={"minimum": 1, "maximum": 1})
            faults["domain_size"] = wrong.messages
        if faults:
            raise ValidationError(faults)


class NetworkBody(Closed):
    """The network between nodes, as one accelerator's share of it."""

    bandwidth_gb_s_per_direction = Number(
        "One direction, per accelerator [GB/s].", LEAST_GB_S, MOST_GB_S, required=True
    )


class PriceBody(Closed):
    """One named offer: what an accelerator costs for an hour."""

    amount_per_hour = Money("For one accelerator and one hour, busy or idle.", required=True)
    currency = Currency(required=True)
    as_of = Date("When the offer was read; null: not known.", allow_none=True, load_default=None)
    source = Text("Where the offer was read.", 500, load_default="")

    @post_load
    def as_text(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Money stands in documents as decimal text."""
        return data | {"amount_per_hour": f"{data['amount_per_hour']:f}"}


class HardwareProfileBody(Closed):
    """One kind of accelerator, by its data sheet.

    Throughput is dense, never with sparsity; links are counted in one direction.
    """

    name = Name("Lower-case slug.", required=True)
    vendor = Text("Maker of the device.", 100, shortest=1, required=True)
    description = Text("Free text.", 2000, load_default="")
    generation = Text(
        "Architecture that efficiency coefficients are kept for (`hopper`, `cdna3`, ...).",
        100, load_default="",
    )  # fmt: skip
    memory_gib = Number(
        "What the device reports as usable in total [GiB]; less than the name plate.",
        1e-2, 1e5, required=True,
    )  # fmt: skip
    memory_bandwidth_gb_s = Number("Data-sheet bandwidth [GB/s].", 1e-1, 1e6, required=True)
    dense_tflops = MapOf(
        Number("Dense peak [TFLOP/s].", 1e-3, 1e7),
        "Dense peak by arithmetic [TFLOP/s, for int8 TOP/s].",
        keys=ARITHMETIC, fewest=1, required=True,
    )  # fmt: skip
    interconnect = Section(
        InterconnectBody, "Link within a node; null: none.", allow_none=True, load_default=None
    )
    network = Section(
        NetworkBody, "Network between nodes; null: none.", allow_none=True, load_default=None
    )
    accelerators_per_node = Whole("Accelerators in one node.", 1, 65_536, load_default=1)
    tdp_w = Number("Thermal design power [W].", 1e-1, 1e5, allow_none=True, load_default=None)
    price = Section(PriceBody, "null: no costs are computed.", allow_none=True, load_default=None)
    efficiency = MapOf(
        Number("Value of the coefficient, in its unit.", 0, 1e6),
        "Overrides of coefficients, by name; shares and factors are at most 1.",
        keys=coefficient_names(), load_default=dict,
    )  # fmt: skip
    sources = MapOf(
        Text("Where the figure is from.", 1000),
        "Source of each figure, by field.", load_default=dict,
    )  # fmt: skip
    uncertain_fields = ListOf(
        Text("", 100), "Fields whose figure rests on weak or derived sources.",
        most=100, load_default=list,
    )  # fmt: skip
    notes = Text("What else to know of the figures.", 2000, load_default="")

    @validates_schema
    def within_physics(self, data: dict[str, Any], **_: Any) -> None:
        """No share or factor exceeds 1; times have wider bounds."""
        wrong = {}
        for name, value in data["efficiency"].items():
            least, most = coefficient_bounds(name)
            if not least <= value <= most:
                detail = f"{name} lies between {least:g} and {most:g}."
                allowed = {"minimum": least, "maximum": most}
                wrong[name] = fault(detail, given=value, allowed=allowed).messages
        if wrong:
            raise ValidationError({"efficiency": wrong})


class HardwareProfileAnswer(StoredAnswer):
    """A stored hardware profile."""

    name = Name()
    vendor = Text()
    description = Text()
    generation = Text("Empty: not known, general coefficients are used.")
    memory_gib = Number("Usable in total, as the device reports it [GiB].")
    memory_bandwidth_gb_s = Number("Data-sheet bandwidth [GB/s].")
    dense_tflops = MapOf(Number(), "Dense peak by arithmetic [TFLOP/s].", keys=ARITHMETIC)
    interconnect = Section(InterconnectBody, allow_none=True)
    network = Section(NetworkBody, allow_none=True)
    accelerators_per_node = Whole()
    tdp_w = Number("Thermal design power [W].", allow_none=True)
    price = Section(PriceBody, allow_none=True)
    efficiency = MapOf(Number(), "Overrides of coefficients, by name.")
    sources = MapOf(Text(), "Source of each figure, by field.")
    uncertain_fields = ListOf(Text(), "Fields whose figure rests on weak or derived sources.")
    notes = Text()
    warnings = ListOf(Section(MessageAnswer), "Magnitudes that look mistaken, a missing price.")


HardwareProfilePage: type[Answer] = page_of(HardwareProfileAnswer, "HardwareProfilePage")


class HardwareProfileQuery(PageQuery):
    """Which hardware profiles to list."""

    vendor = Text("Only this maker's.", 100, load_default=None, allow_none=False)
