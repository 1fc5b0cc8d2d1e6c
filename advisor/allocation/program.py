"""A problem as a mixed-integer linear program, and HiGHS on it.

Variables of an option: replicas in each run of its capacity, a switch for each group of runs but
the first (1: the group before is full), and whole nodes where several replicas share one. A demand
with a weight has a switch, 1 where it is served. The rows say that the shares of a served demand
add up to 1, that no more units are taken than there are, and that no demand takes more accelerators
than it may.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.allocation.capacity import Run, in_order
from advisor.allocation.problem import Option, Pool, Problem

Array = NDArray[np.float64]

PACKAGE = "inference-advisor[fleet]"
"""What brings SciPy along."""


class SolverMissing(Exception):
    """SciPy, an extra of the package, is not installed."""


@dataclass
class Rows:
    """Linear constraints, row by row."""

    values: list[float] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)

    def add(self, terms: Sequence[tuple[int, float]], lower: float, upper: float) -> None:
        """`lower` <= the sum of coefficients times columns <= `upper`."""
        for column, value in terms:
            self.values.append(value)
            self.rows.append(len(self.lower))
            self.columns.append(column)
        self.lower.append(lower)
        self.upper.append(upper)

    def matrix(self, columns: int, scipy: Any) -> Any:
        """The constraints as SciPy takes them."""
        shape = (len(self.lower), columns)
        table = scipy.sparse.csr_array((self.values, (self.rows, self.columns)), shape=shape)
        return scipy.optimize.LinearConstraint(table, self.lower, self.upper)


@dataclass(frozen=True)
class Found:
    """What HiGHS says: `outcome` is `optimal`, `time_limit`, `infeasible` or `not_solved`; the
    columns and their value where it has some, and a bound of the value where it knows one."""

    outcome: str
    columns: Array | None = None
    value: float | None = None
    bound: float | None = None


class Program:
    """The columns and rows of a problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.rows = problem, Rows()
        self.upper: list[float] = []
        self.replicas: dict[tuple[int, int], list[int]] = {}
        self.served: dict[int, int] = {}
        self.units: list[list[tuple[int, float]]] = [[] for _ in problem.devices]
        self.impossible = False
        values = [problem.unit_value(device) for device in problem.devices]
        self.scale = 1 / min((value for value in values if value), default=1.0)
        for demand in range(len(problem.demands)):
            self._demand(demand)
        for device, terms in zip(problem.devices, self.units, strict=True):
            self.rows.add(terms, 0, device.units)

    def _column(self, most: float) -> int:
        self.upper.append(most)
        return len(self.upper) - 1

    def _demand(self, index: int) -> None:
        demand = self.problem.demands[index]
        shares: list[tuple[int, float]] = []
        accelerators: list[tuple[int, float]] = []
        for place, option in enumerate(demand.options):
            columns, runs = self._option(option)
            self.replicas[index, place] = columns
            shares += [(c, run.share) for c, run in zip(columns, runs, strict=True) if run.share]
            taken = self._taken(option, columns)
            self.units[option.device] += taken
            each = self.problem.devices[option.device].accelerators_per_unit
            accelerators += [(column, count * each) for column, count in taken]
        if demand.weight is None:
            self.impossible = self.impossible or not shares
            self.rows.add(shares, 1, np.inf)
        else:
            self.served[index] = self._column(1 if shares else 0)
            self.rows.add([*shares, (self.served[index], -1)], 0, np.inf)
        all_there_are = sum(device.accelerators for device in self.problem.devices)
        if demand.most_accelerators is not None and demand.most_accelerators < all_there_are:
            self.rows.add(accelerators, 0, demand.most_accelerators)

    def _option(self, option: Option) -> tuple[list[int], list[Run]]:
        """Columns of the replicas in each run of an option."""
        device = self.problem.devices[option.device]
        groups = in_order(option.capacity.runs(option.most(device)))
        columns: list[int] = []
        before: list[tuple[int, int]] = []
        for group in groups:
            these = [(self._column(run.length), run.length) for run in group]
            if before:
                begun = self._column(1)
                for column, length in before:
                    self.rows.add([(column, 1), (begun, -length)], 0, np.inf)
                for column, length in these:
                    self.rows.add([(column, 1), (begun, -length)], -np.inf, 0)
            columns += [column for column, _ in these]
            before = these
        return columns, [run for group in groups for run in group]

    def _taken(self, option: Option, replicas: list[int]) -> list[tuple[int, float]]:
        """Units that an option takes, as a sum of columns."""
        device = self.problem.devices[option.device]
        per_unit, per_replica = option.packing(device)
        if per_unit == 1 or not replicas:
            return [(column, float(per_replica)) for column in replicas]
        nodes = self._column(device.units)
        self.rows.add([(nodes, per_unit), *((column, -1) for column in replicas)], 0, np.inf)
        return [(nodes, 1.0)]

    def value(self) -> Array:
        """Coefficients of the objective times `scale`, which makes the least of them 1: HiGHS takes
        what is below some 1e-7 for nothing."""
        devices = self.problem.devices
        return self._of_units([self.problem.unit_value(each) * self.scale for each in devices])

    def accelerators(self) -> Array:
        """Coefficients of the number of accelerators taken."""
        return self._of_units([device.accelerators_per_unit for device in self.problem.devices])

    def weight(self) -> Array:
        """Coefficients of the weight of what is served."""
        found = np.zeros(len(self.upper))
        for demand, column in self.served.items():
            found[column] = self.problem.demands[demand].weight
        return found

    def _of_units(self, each: Sequence[float]) -> Array:
        found = np.zeros(len(self.upper))
        for value, terms in zip(each, self.units, strict=True):
            for column, count in terms:
                found[column] += value * count
        return found

    def limited(self, coefficients: Array, lower: float, upper: float) -> None:
        """One more row."""
        terms = [(int(i), float(coefficients[i])) for i in np.flatnonzero(coefficients)]
        self.rows.add(terms, lower, upper)

    def minimize(self, coefficients: Array, time_limit_s: float, gap: float) -> Found:
        """The least of a sum of columns. Raises `SolverMissing`."""
        if self.impossible:
            return Found("infeasible")
        if not self.upper:
            return Found("optimal", np.zeros(0), 0.0, 0.0)
        scipy = _scipy()
        result = scipy.optimize.milp(
            coefficients,
            integrality=np.ones(len(self.upper)),
            bounds=scipy.optimize.Bounds(0, np.array(self.upper)),
            constraints=self.rows.matrix(len(self.upper), scipy),
            options={"time_limit": max(time_limit_s, 1e-3), "mip_rel_gap": gap},
        )
        return _found(result, coefficients)

    def pools(self, columns: Array) -> tuple[Pool, ...]:
        """The pools that columns say, in order."""
        counts = np.rint(columns)
        pools = (
            Pool(demand, option, int(counts[places].sum()))
            for (demand, option), places in self.replicas.items()
        )
        return tuple(pool for pool in pools if pool.replicas)


def _found(result: Any, coefficients: Array) -> Found:
    """HiGHS's answer with what it leaves out where a problem is trivial."""
    outcomes = {0: "optimal", 1: "time_limit", 2: "infeasible"}
    outcome = outcomes.get(result.status)
    if outcome is None:
        raise RuntimeError(f"HiGHS: {result.message}")
    bound = result.mip_dual_bound
    known = None if bound is None or not math.isfinite(bound) else float(bound)
    if outcome == "infeasible":
        return Found(outcome)
    if result.x is None:
        return Found("not_solved", bound=known)
    value = float(coefficients @ np.rint(result.x))
    if outcome == "optimal" and known is None:
        known = value
    return Found(outcome, np.asarray(result.x), value, known)


def _scipy() -> Any:
    """SciPy with the parts that are used of it; importing it takes a second. `SolverMissing`."""
    try:
        import scipy.optimize
        import scipy.sparse
    except ImportError:
        raise SolverMissing from None
    return scipy


def require_solver() -> None:
    """Raise `SolverMissing` now rather than after the demands have been planned."""
    _scipy()
