"""The answer of an allocation, field by field with units."""

from __future__ import annotations

from advisor.allocation.problem import MEASURES, OBJECTIVES
from advisor.allocation.request import TENURES
from advisor.core.workload import SLO_KEYS
from advisor.schemas.allocation import STATUSES, DemandLimitsBody
from advisor.schemas.base import Answer
from advisor.schemas.common import MessageAnswer, page_of
from advisor.schemas.containers import ListOf, MapOf, Section
from advisor.schemas.fields import Choice, Currency, DecimalText, Flag, Number, Text, Whole
from advisor.schemas.plan_answer import (
    CandidatePrecisionAnswer,
    ClassLatencyAnswer,
    EngineSettingsAnswer,
    LatencyAnswer,
    LoadAnswer,
    SloResultAnswer,
    UsedProfileAnswer,
)
from advisor.schemas.plan_explanation import DegreesAnswer
from advisor.schemas.workload import PrecisionBody, ServingBody, WorkloadBody

PRICED_BY = ("request", "profile", "nobody")
UNITS = ("accelerator", "node")
WHY_UNSERVED = ("no_feasible_layout", "inventory", "others_conflict", "undecided")


class DemandInputsAnswer(Answer):
    """A demand with every default filled in."""

    name = Text()
    must_have = Flag()
    weight = Number("null: it has to be served.", allow_none=True)
    inventory = ListOf(Text(), "Names of the entries that it may use.")
    model = Text("Name of the model profile.")
    workload = Section(WorkloadBody)
    slo = MapOf(Number("[ms]"), keys=SLO_KEYS)
    precision = Section(PrecisionBody)
    limits = Section(DemandLimitsBody)
    serving = Section(ServingBody)


class EntryInputsAnswer(Answer):
    """An entry of the inventory with every default filled in."""

    name = Text()
    hardware = Text("Name of the hardware profile.")
    accelerators = Whole()
    tenure = Choice("", TENURES)
    price_per_hour = DecimalText("Of one accelerator that is used.")
    priced_by = Choice("Who named the price; `nobody`: owned, and counted as 0.", PRICED_BY)
    whole_nodes = Flag()


class AllocationInputsAnswer(Answer):
    """The request with every default filled in."""

    demands = ListOf(Section(DemandInputsAnswer))
    inventory = ListOf(Section(EntryInputsAnswer))
    objective = Choice("", OBJECTIVES)
    currency = Currency()
    max_gap = Number()
    time_limit_s = Number("[s]")
    alternatives = Flag()


class AllocationTotalsAnswer(Answer):
    """The allocation in figures."""

    accelerators = Whole("In use, those of whole nodes counted.")
    cost_per_hour = DecimalText("Of those, at their prices.")
    power_kw = Number("Of those, at TDP [kW]; null: one has none in its profile.", allow_none=True)
    demands_served = Whole()
    served_weight = Number("Of the demands that need not be served.")


class SolverAnswer(Answer):
    """How the solver did."""

    objective_value = Number("Of the allocation, in the unit of `measure`.", allow_none=True)
    objective_bound = Number("No allocation that serves as much weight has less; null: not known.",
                             allow_none=True)  # fmt: skip
    gap = Number("What lies between them, as a share of the value.", allow_none=True)
    served_weight_bound = Number("No allocation serves more weight; null: no demand has one.",
                                 allow_none=True)  # fmt: skip
    planning_time_s = Number("What planning the demands took [s].")
    solving_time_s = Number("What the solver took, alternatives and checks included [s].")


class PoolOfDemandAnswer(DegreesAnswer):
    """Replicas of one layout that serve a share of a demand."""

    inventory = Text("Name of the entry.")
    replicas = Whole("Spares included.")
    accelerators = Whole("Those of whole nodes counted.")
    nodes = Whole("Nodes taken whole; null: they are not.", allow_none=True)
    precision = Section(CandidatePrecisionAnswer)
    share_of_rate = Number("Of the demand's rate.")
    request_rate_per_s = Number("That share of it [requests/s].")
    capacity_requests_per_s = Number(
        "What it carries within the SLOs, but no more than it is known to, nor than the demand."
    )
    cost_per_hour = DecimalText()
    power_kw = Number("At TDP [kW].", allow_none=True)
    latency = Section(LatencyAnswer, "At its share of the rate, as the planner evaluates it.")
    classes = ListOf(Section(ClassLatencyAnswer))
    load_ = Section(LoadAnswer, data_key="load")  # a schema has a method called load
    slo = Section(SloResultAnswer)
    serving = Section(EngineSettingsAnswer)


class ServedDemandAnswer(Answer):
    """A demand that is served, and by what."""

    demand = Text("Its name.")
    request_rate_per_s = Number("[requests/s]")
    accelerators = Whole("Of all its pools.")
    cost_per_hour = DecimalText("Of all its pools.")
    slo_met = Flag("Every pool meets every SLO.")
    pools = ListOf(Section(PoolOfDemandAnswer), "They share its requests.")


class NeedAnswer(Answer):
    """What a demand would take of an entry alone."""

    inventory = Text("Name of the entry.")
    accelerators_needed = Whole("The fewest; null: no number would do.", allow_none=True)
    accelerators_free = Whole("Left by what is served.")


class RejectedLayoutsAnswer(Answer):
    """Layouts that cannot serve a demand, for one reason."""

    hardware = Text("Name of the hardware profile.")
    code = Text("Stable identifier, as plans have it.")
    layouts = Whole("How many.")
    detail = Text("Of the first of them.")
    remedy = Text("What would work.", allow_none=True)


class UnservedDemandAnswer(Answer):
    """A demand that is not served, and why."""

    demand = Text("Its name.")
    must_have = Flag()
    code = Choice(
        "`no_feasible_layout`: nothing that it may use can serve it; `inventory`: there is not "
        "enough of it; `others_conflict`: others that have to be served cannot be, and nothing is "
        "allocated; `undecided`: the solver's time ran out.",
        WHY_UNSERVED,
    )
    detail = Text("The same in a sentence.")
    needs = ListOf(Section(NeedAnswer), "Entry by entry.")
    rejected = ListOf(Section(RejectedLayoutsAnswer), "By hardware and reason.")


class ConflictAnswer(Answer):
    """Demands that have to be served and cannot all be."""

    demands = ListOf(Text(), "Their names.")
    minimal = Flag("Without any one of them the others can; false: there was no time to show it.")


class EntryUseAnswer(Answer):
    """What is used of an entry of the inventory."""

    name = Text()
    hardware = Text("Name of the hardware profile.")
    tenure = Choice("", TENURES)
    accelerators = Whole("That there are.")
    accelerators_used = Whole()
    accelerators_free = Whole()
    cost_per_hour = DecimalText("Of those used.")
    idle_cost_per_hour = DecimalText("Of those free, where owned: in no objective.")


class AlternativeAnswer(Answer):
    """What another inventory would do."""

    status = Choice("As that of an allocation.", STATUSES)
    objective_value = Number("null: no allocation was found.", allow_none=True)
    served_weight = Number("null: no allocation was found.", allow_none=True)
    unserved = ListOf(Text(), "Names of the demands that are not served.")
    difference = Number(
        "Of its objective from the allocation's; null: it serves other demands, or was not found.",
        allow_none=True,
    )
    difference_at_least = Number("That of the best of each, within the gaps.", allow_none=True)
    difference_at_most = Number("Likewise.", allow_none=True)


class OneMoreAnswer(AlternativeAnswer):
    """With one more of an entry: solved anew, not a price of a relaxation."""

    inventory = Text("Name of the entry.")
    unit = Choice("What there is one more of.", UNITS)
    accelerators = Whole("Of that one.")
    newly_served = ListOf(Text(), "Demands that are served then.")


class SingleHardwareAnswer(AlternativeAnswer):
    """With entries of one hardware alone."""

    hardware = Text("Name of the hardware profile.")


class FleetAllocationAnswer(Answer):
    """Which devices serve which demands, and why."""

    id = Text()
    created_at = Text("UTC, RFC 3339.")
    profiles = ListOf(Section(UsedProfileAnswer), "The profiles it was made with.")
    coefficients_version = Text(
        "Tells the planner's coefficients of one release from those of another."
    )
    inputs = Section(AllocationInputsAnswer)
    status = Choice(
        "`optimal`: within `max_gap`; `time_limit`: the best found in the time; `infeasible`: what "
        "has to be served cannot be; `not_solved`: nothing was found in the time.",
        STATUSES,
    )
    reason = Text("Why there is no allocation; null: there is.", allow_none=True)
    objective = Choice("", OBJECTIVES)
    measure = Choice("What the objective makes small.", tuple(MEASURES.values()))
    currency = Currency()
    totals = Section(AllocationTotalsAnswer, "null: there is no allocation.", allow_none=True)
    solver = Section(SolverAnswer)
    allocation = ListOf(Section(ServedDemandAnswer), "The demands that are served.")
    unserved = ListOf(Section(UnservedDemandAnswer), "The others.")
    conflict = Section(ConflictAnswer, "null: what has to be served can be.", allow_none=True)
    inventory = ListOf(Section(EntryUseAnswer))
    one_more = ListOf(Section(OneMoreAnswer), "Entry by entry; empty where not asked for.")
    single_hardware = ListOf(
        Section(SingleHardwareAnswer), "Kind by kind; empty where not asked for, or of one kind."
    )
    explanation = ListOf(Text(), "The same in sentences.")
    assumptions = ListOf(Section(MessageAnswer), "What the figures rest on.")
    warnings = ListOf(Section(MessageAnswer))
    planner_version = Text()


class AllocationSummaryAnswer(Answer):
    """An allocation as a list shows it."""

    id = Text()
    created_at = Text("UTC, RFC 3339.")
    objective = Choice("", OBJECTIVES)
    status = Choice("", STATUSES)
    planner_version = Text("Version of the service that answered.")


AllocationPage: type[Answer] = page_of(AllocationSummaryAnswer, "AllocationPage")
