"""How much of a demand a pool of replicas carries, by their number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

NEARLY = 1e-9
"""Shares that differ by less are alike: they come from sums of floating-point numbers."""


@dataclass(frozen=True)
class Run:
    """`length` replicas in a row that each add a `share` of the demand."""

    share: float
    length: int


@dataclass(frozen=True)
class Capacity:
    """The share of a demand that so many replicas carry within its SLOs.

    `known[k - 1]` is that of k replicas and never falls; each replica past those adds `each`. A
    share is not cut at 1.
    """

    known: tuple[float, ...]
    each: float

    @classmethod
    def linear(cls, each: float) -> Capacity:
        """Every replica carries the same share."""
        return cls((each,), each)

    def share(self, replicas: int) -> float:
        """What so many replicas carry."""
        if replicas <= 0:
            return 0.0
        beyond = max(replicas - len(self.known), 0)
        return self.known[replicas - beyond - 1] + beyond * self.each

    def fewest(self) -> int | None:
        """The fewest replicas that carry the whole demand; None where no number does."""
        for index, share in enumerate(self.known):
            if share >= 1 - NEARLY:
                return index + 1
        if self.each <= 0:
            return None
        missing = (1 - NEARLY - self.known[-1]) / self.each
        return len(self.known) + math.ceil(missing)

    def scaled(self, factor: float) -> Capacity:
        """The same pool, if each number of replicas carried this much of what was said."""
        return Capacity(tuple(factor * share for share in self.known), factor * self.each)

    def runs(self, most: int) -> list[Run]:
        """What replica after replica adds, up to `most`, equal ones in a row put together."""
        most = min(most, self.fewest() or most)
        steps = [b - a for a, b in pairwise((0.0, *self.known[:most]))]
        runs: list[Run] = []
        for step, length in [*((s, 1) for s in steps), (self.each, most - len(steps))]:
            if length > 0 and runs and math.isclose(runs[-1].share, step, rel_tol=NEARLY):
                runs[-1] = Run(runs[-1].share, runs[-1].length + length)
            elif length > 0:
                runs.append(Run(step, length))
        return runs


def in_order(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs in groups: one is to be taken in full before the next is begun.

    Within a group no replica adds more than one before it, so that their order does not matter:
    any choice of them carries no more than the first ones do.
    """
    groups: list[list[Run]] = []
    for index, run in enumerate(runs):
        if index == 0 or max(each.share for each in runs[index:]) > runs[index - 1].share + NEARLY:
            groups.append([])
        groups[-1].append(run)
    return groups
