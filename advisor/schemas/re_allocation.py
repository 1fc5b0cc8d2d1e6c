"""An allocation made again, beside what it was and beside keeping what runs."""

from __future__ import annotations

from advisor.allocation.keeping import VERDICTS
from advisor.allocation.problem import MEASURES, OBJECTIVES
from advisor.schemas.allocation_answer import AllocationTotalsAnswer
from advisor.schemas.base import Answer
from advisor.schemas.common import AnyJson
from advisor.schemas.containers import ListOf, Section
from advisor.schemas.fields import Choice, Currency, DecimalText, Flag, Number, Text, Whole
from advisor.schemas.plan_answer import LatencyAnswer, LoadAnswer, SloResultAnswer
from advisor.schemas.plan_explanation import DegreesAnswer, FormatsAnswer, MissedLimitAnswer
from advisor.schemas.re_evaluation import EvaluationAnswer, ProfileThenAndNowAnswer


class AllocatedAnswer(EvaluationAnswer):
    """One of the two allocations."""

    id = Text("The whole allocation is at `/v1/fleets/allocations/{id}`.")


class AllocationDifferenceAnswer(Answer):
    """A figure that is another one now."""

    pointer = Text(
        "JSON pointer (RFC 6901) by names: `/objective_value`, `/totals/...`, "
        "`/demands/{name}/...`, `/inventory/{name}/...`, `/reason`."
    )
    then = AnyJson("null: not there.")
    now = AnyJson("null: not there.")


class MoveAnswer(DegreesAnswer):
    """A pool that has another number of replicas now: what would have to be started or stopped."""

    demand = Text("Its name.")
    inventory = Text("Name of the entry.")
    precision = Section(FormatsAnswer)
    replicas_then = Whole("0: there was no such pool.")
    replicas_now = Whole("0: there is none any more.")


class KeptPoolAnswer(DegreesAnswer):
    """A pool that runs, as the planner evaluates it now."""

    inventory = Text("Name of the entry.")
    replicas = Whole("Spares included.")
    precision = Section(FormatsAnswer)
    accelerators = Whole("Those of whole nodes counted.")
    cost_per_hour = DecimalText()
    share_of_rate = Number(
        "Of the demand's rate: in proportion to what its pools carry now; as it was, where that is "
        "not known of one of them."
    )
    request_rate_per_s = Number("That share of it [requests/s].")
    capacity_requests_per_s = Number(
        "What it carries within the SLOs; null: its layout is no option any more.", allow_none=True
    )
    met = Flag("The planner would recommend it.")
    missed_limits = ListOf(Section(MissedLimitAnswer), "Limits that it misses, the worst first.")
    detail = Text("Why it does not do any more what was asked; null: it does.", allow_none=True)
    latency = Section(LatencyAnswer, "null: it cannot run.", allow_none=True)
    load_ = Section(  # a schema has a method called load
        LoadAnswer, "null: it cannot run.", data_key="load", allow_none=True
    )
    slo = Section(SloResultAnswer, "null: it cannot run.", allow_none=True)


class KeptDemandAnswer(Answer):
    """A demand that something runs for."""

    demand = Text("Its name.")
    met = Flag("All its pools do what was asked, with no more accelerators than it may have.")
    accelerators = Whole("Of all its pools.")
    cost_per_hour = DecimalText("Of all its pools.")
    pools = ListOf(Section(KeptPoolAnswer), "They share its requests.")


class OverbookedAnswer(Answer):
    """An entry that has fewer accelerators now than run."""

    inventory = Text("Name of the entry.")
    accelerators_used = Whole()
    accelerators = Whole("That there are.")


class KeepAnswer(Answer):
    """What runs already, with the figures of now, beside the new allocation."""

    verdict = Choice(
        "`fails`: it does not do any more what was asked; `serve_more`: the new allocation serves "
        "more weight; `move`: the new one has less of the objective; `keep`: it lies within "
        "`max_gap` of the best, or nothing better was found.",
        VERDICTS,
    )
    detail = Text("The same in a sentence, with what fails.")
    feasible = Flag("All that runs still does what was asked, and the inventory suffices.")
    objective_value = Number("Of all that runs, in the unit of `measure`.")
    totals = Section(AllocationTotalsAnswer, "Of all that runs; served: within every limit.")
    saving = Number(
        "What the new allocation has less of the objective, without what moving costs; negative: "
        "it has more. null: it serves another weight, or one of the two does not serve.",
        allow_none=True,
    )
    saving_at_most = Number(
        "No allocation that serves as much weight has more than that less; null: not known.",
        allow_none=True,
    )
    demands = ListOf(Section(KeptDemandAnswer), "The demands that something runs for.")
    overbooked = ListOf(Section(OverbookedAnswer), "Entries that do not suffice any more.")


class ReAllocationAnswer(Answer):
    """What has changed since an allocation was made, what that changes, and whether to move."""

    then = Section(AllocatedAnswer, "The allocation as it was made.")
    now = Section(AllocatedAnswer, "The new allocation, made of the same request.")
    same = Flag("Nothing compared is different, and nothing would move.")
    profiles = ListOf(Section(ProfileThenAndNowAnswer), "The profiles the request names.")
    objective = Choice("", OBJECTIVES)
    measure = Choice("What the objective makes small.", tuple(MEASURES.values()))
    currency = Currency()
    differences = ListOf(
        Section(AllocationDifferenceAnswer),
        "In the objective, totals, demands served and their cost, prices and what is used; not in "
        "latencies or in how the solver did.",
    )
    moves = ListOf(Section(MoveAnswer), "What would start and stop, pool by pool.")
    keep = Section(KeepAnswer, "null: nothing was allocated then.", allow_none=True)
