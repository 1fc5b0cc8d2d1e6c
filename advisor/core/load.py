"""What plans do under a load: open, closed or saturated. Rows are plans (a layout and a number of
replicas)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.core.latency import Latency
from advisor.core.workload import NO_SPECULATION, Speculation

Array = NDArray[np.float64]
Index = NDArray[np.int64]

NEAR_SATURATION = 0.98


def open_verdict(utilization: Array) -> NDArray[np.str_]:
    """What an open load of this share of saturation is, (rows,)."""
    names = np.where(utilization >= NEAR_SATURATION, "near_saturation", "stable")
    return np.where(utilization < 1, names, "unstable")


@dataclass(frozen=True)
class Served:
    """What plans do under the load; arrays of shape (rows,), rates for the whole plan.

    `in_service` is the mean batch of one replica, `concurrency` the mean number of requests in the
    plan from arrival to last token, `full` the share of requests that find every slot of their
    replica taken. `utilization` is the load as a share of saturation. `slot_wait` is the mean time
    that a request waits for a place in the batch [s], a part of TTFT: NaN where it has no end, or
    was simulated and not told apart. `classes` has TTFT, TPOT and E2E of each class of requests by
    its name, where classes are given.
    """

    verdict: NDArray[np.str_]
    utilization: Array
    saturation: Array
    requests_per_s: Array
    concurrency: Array
    in_service: Array
    slot_wait: Array
    full: Array
    latency: Mapping[str, Latency]
    classes: Mapping[str, Mapping[str, Latency]] = field(default_factory=dict)

    def take(self, rows: Index) -> Served:
        """Some of the rows, in this order."""
        plain = {name: getattr(self, name)[rows] for name in _PLAIN}
        return Served(
            **plain,
            latency=_taken(self.latency, rows),
            classes={name: _taken(each, rows) for name, each in self.classes.items()},
        )

    @staticmethod
    def joined(parts: Sequence[Served]) -> Served:
        """The rows of several evaluations, one after the other."""
        plain = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _PLAIN}
        return Served(
            **plain,
            latency=_joined([part.latency for part in parts]),
            classes={
                name: _joined([part.classes[name] for part in parts]) for name in parts[0].classes
            },
        )


_PLAIN = [each.name for each in fields(Served) if each.name not in ("latency", "classes")]


def _taken(latency: Mapping[str, Latency], rows: Index) -> dict[str, Latency]:
    return {name: Latency(one.mean[rows], one.quantiles[rows]) for name, one in latency.items()}


def _joined(parts: Sequence[Mapping[str, Latency]]) -> dict[str, Latency]:
    return {
        metric: Latency(
            np.concatenate([part[metric].mean for part in parts]),
            np.concatenate([part[metric].quantiles for part in parts]),
        )
        for metric in parts[0]
    }


@dataclass(frozen=True)
class Replicas:
    """The rows to evaluate, arrays of shape (rows,): which layout's curves, how many sequences a
    replica serves at once, what it then serves [requests/s], how many replicas serve, and the front
    end's time a request [s]; how tokens are drafted, and how requests find their replica. `load` is
    what comes to the plan: requests a second on average, or requests in flight; it has no value at
    saturation."""

    layout: Index
    slots: Index
    saturation: Array
    count: Index
    front_end: Array
    router_efficiency: float = 1.0
    speculation: Speculation = NO_SPECULATION
    routing: str = "random"
    load: Array = field(default_factory=lambda: np.zeros(0))

    def take(self, rows: Index) -> Replicas:
        """Some of the rows."""
        columns = ((f.name, getattr(self, f.name)) for f in fields(self))
        arrays: dict[str, Any] = {n: x[rows] for n, x in columns if isinstance(x, np.ndarray)}
        return replace(self, **arrays)

    def within(self, columns: int) -> Replicas:
        """The same rows on curves that stop at n = `columns`, which they need no more of."""
        return replace(self, slots=np.minimum(self.slots, columns))
