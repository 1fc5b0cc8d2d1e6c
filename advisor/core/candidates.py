"""Evaluated plans, in rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advisor.core.load import Served

Index = NDArray[np.int64]


@dataclass(frozen=True)
class Candidates:
    """Evaluated plans, one row each: a layout and how many replicas of it, spares included."""

    layout: Index
    replicas: Index
    accelerators: Index
    served: Served

    def __len__(self) -> int:
        return len(self.layout)

    def take(self, rows: Index) -> Candidates:
        """Some of the rows, in this order."""
        return Candidates(
            self.layout[rows], self.replicas[rows], self.accelerators[rows], self.served.take(rows)
        )

    def and_also(self, others: Candidates) -> Candidates:
        """These rows, and others after them."""
        return Candidates(
            np.concatenate([self.layout, others.layout]),
            np.concatenate([self.replicas, others.replicas]),
            np.concatenate([self.accelerators, others.accelerators]),
            Served.joined([self.served, others.served]),
        )


class Evaluated:
    """The plans evaluated so far, each of them once, and where they stand."""

    def __init__(self) -> None:
        self.rows: dict[tuple[int, int], int] = {}
        self.table: Candidates | None = None

    def add(self, plans: Sequence[tuple[int, int]], found: Candidates) -> None:
        """Keep plans, as (layout, replicas), that were not known."""
        self.rows |= {plan: len(self.rows) + i for i, plan in enumerate(plans)}
        self.table = found if self.table is None else self.table.and_also(found)
