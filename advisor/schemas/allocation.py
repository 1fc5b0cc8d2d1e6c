"""Allocations: demands and an inventory in, pools out."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError, post_load, validates_schema

from advisor.allocation.problem import OBJECTIVES
from advisor.allocation.request import MOST_ACCELERATORS, TENURES
from advisor.core.workload import SLO_KEYS, Limits, Serving
from advisor.schemas.base import Closed
from advisor.schemas.common import PageQuery
from advisor.schemas.containers import Either, ListOf, MapOf, Section, plain
from advisor.schemas.faults import fault, loaded
from advisor.schemas.fields import (
    Choice,
    Currency,
    Flag,
    Money,
    Name,
    Number,
    Text,
    Whole,
)
from advisor.schemas.hardware import HardwareProfileBody
from advisor.schemas.models import ModelProfileBody
from advisor.schemas.workload import LimitsBody, PrecisionBody, ServingBody, WorkloadBody

MOST_DEMANDS, MOST_ENTRIES = 64, 32
STATUSES = ("optimal", "time_limit", "infeasible", "not_solved")


class DemandLimitsBody(LimitsBody):
    """Bounds on the search of a demand; null leaves the choice to the planner."""

    class Meta(LimitsBody.Meta):
        """How many replicas there are, and what they cost, the allocation decides."""

        exclude = ("replicas", "max_cost_per_hour")

    max_accelerators = Whole(
        "Of the demand in all, those of whole nodes counted.",
        1, MOST_ACCELERATORS, load_default=MOST_ACCELERATORS,
    )  # fmt: skip


class DemandBody(Closed):
    """What is to be served: a model under an open load, within its SLOs."""

    name = Name("Each demand has its own.", required=True)
    must_have = Flag(
        "Whether it has to be served; null: unless it has a weight.",
        allow_none=True, load_default=None,
    )  # fmt: skip
    weight = Number(
        "How much serving it counts; null: it has to be served, or 1.",
        1, 1000, allow_none=True, load_default=None,
    )  # fmt: skip
    inventory = ListOf(
        Name(), "Names of the entries that it may use; null: all.",
        fewest=1, most=MOST_ENTRIES, unique=True, allow_none=True, load_default=None,
    )  # fmt: skip
    model = Either(
        Text("Name or alias of a model profile.", 200, shortest=1), ModelProfileBody,
        "A model profile by name, or whole.", required=True,
    )  # fmt: skip
    workload = Section(WorkloadBody, "Its load: a `request_rate_per_s`.", required=True)
    slo = MapOf(
        Number("[ms]", 1e-3, 1e9),
        "Upper bounds [ms]. tpot is one value per request, itl one per gap between tokens.",
        keys=SLO_KEYS, load_default=dict,
    )  # fmt: skip
    precision = Section(
        PrecisionBody, "Number formats to try.",
        load_default=lambda: {"weights": [], "kv_cache": []},
    )  # fmt: skip
    limits = Section(
        DemandLimitsBody, "Bounds on the search.",
        load_default=lambda: Limits(max_accelerators=MOST_ACCELERATORS),
    )  # fmt: skip
    serving = Section(ServingBody, "The engine.", load_default=Serving)

    @validates_schema
    def a_rate_to_share(self, data: dict[str, Any], **_: Any) -> None:
        """Refuse loads that have no rate which pools could share."""
        workload = data["workload"]
        if workload.mode != "open" or workload.trace is not None:
            detail = "Pools share an open load: give its request_rate_per_s, and no trace."
            raise ValidationError({"workload": fault(detail).messages})

    @validates_schema
    def weighed_or_needed(self, data: dict[str, Any], **_: Any) -> None:
        """Refuse a weight of what has to be served anyway."""
        if data["must_have"] and data["weight"] is not None:
            detail = "What has to be served has no weight: leave out one of the two."
            raise ValidationError({"weight": fault(detail, given=data["weight"]).messages})


class EntryBody(Closed):
    """Accelerators of one kind that may be used: how many, whose, and at what price."""

    name = Name(
        "null: the name of its hardware. Two entries of one hardware need a name each.",
        allow_none=True, load_default=None,
    )  # fmt: skip
    hardware = Either(
        Text("Name of a hardware profile.", 200, shortest=1), HardwareProfileBody,
        "A hardware profile by name, or whole.", required=True,
    )  # fmt: skip
    accelerators = Whole("How many there are, or may be rented; null: `nodes` says.", 0, 100_000,
                         allow_none=True, load_default=None)  # fmt: skip
    nodes = Whole("The same in nodes of the hardware's `accelerators_per_node`.", 0, 10_000,
                  allow_none=True, load_default=None)  # fmt: skip
    whole_nodes = Flag(
        "Nodes are taken whole: one node serves one pool, and all its accelerators are counted.",
        load_default=False,
    )
    tenure = Choice("Whose they are.", TENURES, load_default="rented")
    price_per_hour = Money(
        "Of one accelerator that is used; null: that of the profile where rented, 0 where owned.",
        10**9, allow_none=True, load_default=None,
    )  # fmt: skip

    @validates_schema
    def one_count(self, data: dict[str, Any], **_: Any) -> None:
        """Exactly one of the two ways to count."""
        if (data["accelerators"] is None) == (data["nodes"] is None):
            detail = "Give either accelerators or nodes."
            wrong = fault(detail, allowed=["accelerators", "nodes"]).messages
            raise ValidationError({"accelerators": wrong})


class AllocationBody(Closed):
    """Demands, an inventory, and what is to be small."""

    demands = ListOf(Section(DemandBody), "What is to be served.",
                     fewest=1, most=MOST_DEMANDS, required=True)  # fmt: skip
    inventory = ListOf(Section(EntryBody), "What there is to serve it.",
                       fewest=1, most=MOST_ENTRIES, required=True)  # fmt: skip
    objective = Choice(
        "`cost`: of the accelerators used, by the hour; `accelerators`: how many; `energy`: their "
        "power at TDP.",
        OBJECTIVES, load_default="cost",
    )  # fmt: skip
    currency = Currency("ISO 4217 code of every price.", load_default="USD")
    max_gap = Number(
        "How far above the best an allocation may lie, as a share of it.", 0, 0.5,
        load_default=1e-3,
    )  # fmt: skip
    time_limit_s = Number(
        "What the solver may take [s]; planning the demands takes time beside.", 0.1, 60,
        load_default=10.0,
    )  # fmt: skip
    alternatives = Flag(
        "Say besides what one more of each device would change, and what each kind alone would do. "
        "Half of the time is left for that.",
        load_default=True,
    )

    @post_load(pass_original=True)
    def keep_request(self, data: dict[str, Any], original: Any, **_: Any) -> dict[str, Any]:
        """The loaded request with, as `request`, the one that was sent, for it to be kept."""
        return data | {"request": plain(original)}


def loaded_allocation(document: Any) -> dict[str, Any]:
    """An allocation request that did not come as the body of one; as `loaded`."""
    return loaded(AllocationBody(), document)


class AllocationQuery(PageQuery):
    """Which allocations to list."""

    status = Choice("Only those of this status.", STATUSES, load_default=None, allow_none=False)
