"""An allocation in sentences: why, what was assumed, and what to beware of."""

from __future__ import annotations

from advisor.allocation.allocate import Allocation
from advisor.allocation.capacity import NEARLY
from advisor.allocation.packing import unpacked
from advisor.allocation.problem import MEASURES
from advisor.allocation.usage import needs
from advisor.core.enumeration import precision_warnings
from advisor.core.units import rounded_plain

Message = dict[str, str]


def reason(found: Allocation) -> str | None:
    """Why there is no allocation; None where there is one."""
    if found.solution.found:
        return None
    if found.solution.status == "not_solved":
        return (
            f"The solver found no allocation in {found.request.time_limit_s:g} s. Give it more "
            "time, or ask for less."
        )
    if found.conflict is None or not found.conflict.demands:
        return "What has to be served cannot be."
    names = [found.plans[i].wanted.name for i in found.conflict.demands]
    if len(names) == 1:
        return f"{names[0]} has to be served and cannot be: {_alone(found)}"
    least = "" if found.conflict.minimal else " There was no time to tell whether fewer conflict."
    return f"{', '.join(names)} have to be served and cannot all be.{least}"


def _alone(found: Allocation) -> str:
    assert found.conflict is not None
    return why_unserved(found, found.conflict.demands[0])[1]


def why_unserved(found: Allocation, index: int) -> tuple[str, str]:
    """Why a demand is not served: a code, and a sentence."""
    planned = found.plans[index]
    if not planned.offers:
        codes = sorted({each.code for each in planned.rejected})
        why = f" ({', '.join(codes)})" if codes else ""
        return (
            "no_feasible_layout",
            f"No layout on any device that it may use can serve it{why}.",
        )
    clash = () if found.conflict is None else found.conflict.demands
    if clash and index not in clash:
        return "others_conflict", "Nothing is allocated, because other demands conflict."
    if found.solution.status == "not_solved":
        return "undecided", "The solver found no allocation in its time."
    return _too_little(found, index, [found.plans[i].wanted.name for i in clash if i != index])


def _too_little(found: Allocation, index: int, others: list[str]) -> tuple[str, str]:
    wants = [need for need in needs(found, index) if need.accelerators_needed is not None]
    limit = found.plans[index].wanted.request.limits.max_accelerators
    within = [need for need in wants if (need.accelerators_needed or 0) <= limit]
    what = " or ".join(
        f"{need.accelerators_needed} of {need.inventory}, where {need.accelerators_free} are free"
        for need in wants
    )
    if others:
        return "inventory", (
            f"There is not enough for it and {', '.join(others)} together. Alone it would take "
            f"{what}."
        )
    if within and _more_may_be_served(found):
        return "undecided", (
            f"The solver's time ran out. Alone it would take {what}: a better allocation may exist."
        )
    least = "" if within else f" It may take {limit}."
    return "inventory", f"The inventory does not suffice: alone it would take {what}.{least}"


def _more_may_be_served(found: Allocation) -> bool:
    """Whether the solver's time ran out before it was known that no more weight can be served."""
    solution = found.solution
    most = solution.weight_bound
    late = solution.status == "time_limit" and most is not None
    return late and (most or 0.0) > solution.served_weight * (1 + NEARLY)


def explanation(found: Allocation) -> list[str]:
    """What was chosen, how sure that is, and what would be otherwise."""
    why = reason(found)
    return [why] if why is not None else [_chosen(found), *_single(found), *_more(found)]


def _chosen(found: Allocation) -> str:
    solution, request = found.solution, found.request
    served, count = len(solution.served), len(found.plans)
    measure = MEASURES[request.objective]
    value = rounded_plain(solution.value or 0.0)
    gap = solution.gap
    sure = (
        "how much less would do is not known" if gap is None
        else f"none that serves as much takes more than {gap:.2%} less"
        if gap > 5e-5 else "none that serves as much takes less"
    )  # fmt: skip
    return f"{served} of {count} demands are served, {measure} {value}; {sure}."


def _single(found: Allocation) -> list[str]:
    same = [each for each in found.single_kind if each.difference is not None]
    measure = MEASURES[found.request.objective]
    if same:
        best = min(same, key=lambda each: each.difference or 0.0)
        return [
            f"With {best.name} alone, the best single kind that serves the same demands, {measure} "
            f"is {rounded_plain(best.difference or 0.0)} more."
        ]
    if found.single_kind and all(
        each.solution.status != "not_solved" for each in found.single_kind
    ):
        return ["No single kind of device serves the same demands."]
    return []


def _more(found: Allocation) -> list[str]:
    lines = []
    for each in found.one_more:
        newly = [found.plans[i].wanted.name for i in each.solution.served - found.solution.served]
        if newly:
            lines.append(f"One more of {each.name} would serve {', '.join(sorted(newly))}.")
        elif each.high is not None and each.high < 0:
            saved = rounded_plain(-(each.difference or 0.0))
            measure = MEASURES[found.request.objective]
            lines.append(f"One more of {each.name} would save {saved} of {measure}.")
    return lines


def assumptions(found: Allocation) -> list[Message]:
    """What the figures rest on."""
    request = found.request
    said = [
        ("pools_share_by_chance", "Pools of one demand share its requests by chance, each in "
         "proportion to what it carries; no pool lends its queue to another."),
        ("pool_evaluated_alone", "Each pool is planned by itself at its share of the rate; its "
         "spares are its own."),
        ("weight_first", "As much weight as can be is served, wholly or not at all; of the "
         "allocations that do so the one with the least objective is chosen."),
        ("used_accelerators_cost", "Accelerators in use are counted, busy or idle, at one price; "
         "those of an entry that stand free are in no objective."),
    ]  # fmt: skip
    if request.objective == "energy":
        said.append(("power_at_tdp", "Power is counted at the TDP of every accelerator in use."))
    if any(entry.priced_by == "nobody" for entry in request.inventory):
        said.append(("owned_at_no_cost", "Owned accelerators without a price cost nothing."))
    return [{"code": code, "detail": detail} for code, detail in said]


def warnings(found: Allocation) -> list[Message]:
    """What to beware of, of the allocation and of each demand's plans."""
    said: list[Message] = []
    if found.solution.status == "time_limit":
        detail = "The solver's time ran out: a better allocation may exist, within the gap."
        said.append({"code": "time_limit", "detail": detail})
    for name in found.chosen.corrected:
        detail = f"{name}: the planner refused the pool as first chosen; its capacity was lowered."
        said.append({"code": "capacity_corrected", "detail": detail})
    for each in found.chosen.checked:
        if not each.met:
            name = found.plans[each.pool.demand].wanted.name
            detail = f"{name}: the planner finds that a pool of it misses a limit."
            said.append({"code": "pool_misses_limit", "detail": detail})
    said += _nodes(found)
    for index, planned in enumerate(found.plans):
        chosen = [p.option for p in found.solution.pools if p.demand == index]
        layouts = [planned.offers[option].layout for option in chosen]
        said += [
            {"code": each["code"], "detail": f"{planned.wanted.name}: {each['detail']}"}
            for each in (*planned.warnings, *precision_warnings(layouts))
        ]
    return [dict(pair) for pair in dict.fromkeys(tuple(each.items()) for each in said)]


def _nodes(found: Allocation) -> list[Message]:
    said: list[Message] = []
    for place, entry in enumerate(found.request.inventory):
        per_node = entry.hardware.accelerators_per_node
        left = entry.accelerators - entry.device.accelerators
        if left:
            detail = f"{entry.name}: {left} accelerators fill no node of {per_node} and are unused."
            said.append({"code": "part_of_a_node", "detail": detail})
        sizes: list[int] = []
        for pool in found.solution.pools:
            option = found.chosen.problem.demands[pool.demand].options[pool.option]
            if option.device == place:
                sizes += [option.accelerators] * pool.replicas
        if not entry.whole_nodes and unpacked(sizes, entry.accelerators, per_node):
            detail = (
                f"{entry.name}: these replicas may not fill nodes of {per_node} without being "
                "spread over several. Ask for whole_nodes to have that counted."
            )
            said.append({"code": "may_not_pack", "detail": detail})
    return said
