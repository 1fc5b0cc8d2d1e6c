"""Ranges of figures, and the workloads that they span."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

SCALES = ("linear", "log")


@dataclass(frozen=True)
class Range:
    """`steps` figures from `start` to `stop`, both among them: evenly spaced, or their logarithms
    (then both are above 0). One step is `start` alone."""

    start: float
    stop: float
    steps: int
    scale: str = "linear"

    def figures(self, *, whole: bool = False) -> list[float]:
        """The figures in rising or falling order, to six digits or, where `whole`, to the next
        whole number; those that are alike by then once."""
        found = (self._at(place) for place in range(self.steps))
        rounded = (round(each) if whole else float(f"{each:.6g}") for each in found)
        return list(dict.fromkeys(rounded))

    def _at(self, place: int) -> float:
        if place == 0:
            return self.start
        if place == self.steps - 1:
            return self.stop
        share = place / (self.steps - 1)
        if self.scale == "log":
            # By their logarithms: the ratio of a large figure to a tiny one is no number.
            first, last = math.log(self.start), math.log(self.stop)
            return math.exp(first + share * (last - first))
        return self.start + share * (self.stop - self.start)


def spanned(
    fields: Mapping[str, Any], figures: Mapping[str, Sequence[float]]
) -> Iterator[dict[str, Any]]:
    """`fields` with each combination of `figures` in their place, the last of them moving first."""
    for chosen in product(*figures.values()):
        yield {**fields, **dict(zip(figures, chosen, strict=True))}
