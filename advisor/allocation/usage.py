"""What an allocation takes of the inventory, and what a demand would."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.allocation.allocate import Allocation
from advisor.allocation.problem import used_units


@dataclass(frozen=True)
class Need:
    """The fewest accelerators of an entry that would serve a demand there alone (None: no number
    would), and those that are free."""

    inventory: str
    accelerators_needed: int | None
    accelerators_free: int


def taken(found: Allocation) -> list[int]:
    """Accelerators of each entry that are taken, those of whole nodes counted."""
    problem = found.chosen.problem
    used = used_units(problem, found.solution.pools)
    return [n * d.accelerators_per_unit for n, d in zip(used, problem.devices, strict=True)]


def needs(found: Allocation, index: int) -> list[Need]:
    """What a demand would take of each entry that it may use."""
    problem, used = found.chosen.problem, taken(found)
    answers = []
    for place in found.plans[index].wanted.entries:
        device = problem.devices[place]
        fewest = [
            option.units(device, replicas) * device.accelerators_per_unit
            for option in problem.demands[index].options
            if option.device == place and (replicas := option.capacity.fewest()) is not None
        ]
        free = device.accelerators - used[place]
        answers.append(Need(device.name, min(fewest, default=None), free))
    return answers
