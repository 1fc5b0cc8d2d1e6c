"""Deciding: what a candidate is worth, which one is taken, and which comes closest if none is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from advisor.core.candidates import Candidates
from advisor.core.choice import best_of, knee, pareto_front
from advisor.core.confidence import Regime, met_probability
from advisor.core.enumeration import Rejection
from advisor.core.evaluation import Evaluator, hourly_cost
from advisor.core.load import NEAR_SATURATION
from advisor.core.slo import slo_ratios
from advisor.core.workload import Limits, PlanRequest

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Verdicts:
    """What decides between plans, arrays of shape (rows,).

    `cost` is per hour (per million output tokens when saturated; NaN without a price), `slowness`
    the latency that plans are compared by: p95 E2E (time in service when saturated). `excess` is
    what a plan has or takes over what each limit of the request allows: at most 1 where it is kept.
    `sure` candidates fit for sure, or all are where none does; `eligible` ones may be recommended.
    `regimes` say how far predictions lie from what was measured.
    """

    cost: Array
    slowness: Array
    per_accelerator: Array
    meets: Mask
    ratios: Mapping[str, Array]
    regimes: Sequence[Regime]
    excess: Mapping[str, Array]
    sure: Mask
    eligible: Mask

    def met_probability(self, rows: NDArray[np.int64]) -> Array:
        """How likely some of the candidates meet every SLO, (rows,)."""
        ratios = {key: ratio[rows] for key, ratio in self.ratios.items()}
        return met_probability(ratios, [self.regimes[row] for row in rows])


class Decision:
    """The candidates of a request, and the choice among them."""

    def __init__(
        self, request: PlanRequest, evaluator: Evaluator, rejected: list[Rejection],
        warnings: list[dict[str, str]],
    ) -> None:  # fmt: skip
        self.request, self.evaluator = request, evaluator
        self.rejected, self.warnings = rejected, warnings
        self.candidates: Candidates = evaluator.candidates()
        self.verdicts = self.judged(self.candidates)
        self.recommended = _choose(request, evaluator, self.candidates, self.verdicts)
        self.nearest = None if self.recommended is not None else self._nearest()

    def judged(self, rows: Candidates) -> Verdicts:
        """What decides between plans, candidates or others."""
        return _verdicts(self.request, self.evaluator, rows)

    def with_slo(self, slo: Mapping[str, float]) -> Decision:
        """The same question with other SLOs, decided on what is known of the plans."""
        request = self.request.with_slo(slo)
        return Decision(request, self.evaluator.with_slo(slo), self.rejected, self.warnings)

    def _nearest(self) -> int | None:
        """The candidate that comes closest when none may be recommended."""
        verdicts, accelerators = self.verdicts, self.candidates.accelerators
        most = np.maximum.reduce(list(verdicts.excess.values()))
        order = np.lexsort((accelerators, most, ~verdicts.sure))
        return int(order[0]) if len(order) else None

    @cached_property
    def pareto(self) -> NDArray[np.int64]:
        """Rows of the Pareto front of latency against cost, by rising cost."""
        usable = self._held("max_utilization") & self._held("max_accelerators")
        return pareto_front(np.where(usable, self.verdicts.slowness, np.nan), self.verdicts.cost)

    def _held(self, limit: str) -> Mask:
        """Whether each candidate keeps a limit; every one does where it is none of this request."""
        return np.asarray(self.verdicts.excess.get(limit, np.zeros(len(self.candidates))) <= 1)

    @cached_property
    def ranking(self) -> list[int]:
        """Rows in the order of the objective, those that may be recommended first."""
        order = np.lexsort((np.nan_to_num(self.score, nan=np.inf), ~self.verdicts.eligible))
        return [int(i) for i in order]

    @property
    def score(self) -> Array:
        """What the objective makes small, of each candidate."""
        return _score(self.request, self.verdicts)


def _verdicts(request: PlanRequest, evaluator: Evaluator, candidates: Candidates) -> Verdicts:
    served, tokens = candidates.served, request.workload.output_tokens.mean
    layouts = [evaluator.layouts[i] for i in candidates.layout]
    pairs = zip(layouts, candidates.accelerators.tolist(), strict=True)
    hourly = [hourly_cost(layout, count) for layout, count in pairs]
    cost = np.array([np.nan if each is None else float(each) for each in hourly])
    slowness = served.latency["e2e"].at("p95")
    if request.workload.mode == "saturated":
        cost = cost / (served.requests_per_s * tokens * 3600) * 1e6
        slowness = served.concurrency / served.requests_per_s
    gaps = request.workload.gaps
    ratios = slo_ratios(served, request.slo, gaps)
    regimes = [evaluator.regimes[i] for i in candidates.layout]
    excess = ratios | _excess(request.limits, candidates, hourly)
    if request.limits.min_met_probability is not None and ratios:
        surely = [ratio * evaluator.margin(key)[candidates.layout] for key, ratio in ratios.items()]
        excess["min_met_probability"] = np.maximum.reduce(surely)
    if request.workload.mode == "open":
        excess["max_utilization"] = served.utilization / most_utilized(request.limits)
    fits = ~evaluator.memory.uncertain[candidates.layout]
    sure = fits if fits.any() else np.ones_like(fits)
    return Verdicts(
        cost=cost,
        slowness=slowness,
        per_accelerator=served.saturation * tokens / candidates.accelerators,
        meets=_all_kept(ratios, len(candidates)),
        ratios=ratios,
        regimes=regimes,
        excess=excess,
        sure=sure,
        eligible=sure & _all_kept(excess, len(candidates)),
    )


def most_utilized(limits: Limits) -> float:
    """The largest share of saturation that a plan may run at and be stable."""
    return min(limits.max_utilization + 1e-12, math.nextafter(NEAR_SATURATION, 0))


def _all_kept(excess: Mapping[str, Array], rows: int) -> Mask:
    kept = np.ones(rows, dtype=bool)
    for each in excess.values():
        kept &= each <= 1
    return kept


def _excess(
    limits: Limits, candidates: Candidates, hourly: Sequence[Decimal | None]
) -> dict[str, Array]:
    """What each plan takes over what the limits on its size and cost allow, (rows,)."""
    found = {"max_accelerators": candidates.accelerators / limits.max_accelerators}
    dearest = limits.max_cost_per_hour
    if dearest is not None:
        found["max_cost_per_hour"] = np.array([_over(each, dearest) for each in hourly])
    return found


def _over(cost: Decimal | None, limit: Decimal) -> float:
    """An exact cost over its limit: above 1 only where it is more."""
    if cost is None or (limit == 0 and cost):
        return math.inf
    if cost <= limit:
        return float(cost / limit) if limit else 0.0
    return max(float(cost / limit), math.nextafter(1, 2))


def _score(request: PlanRequest, verdicts: Verdicts) -> Array:
    """What the objective makes small."""
    if request.objective == "cost":
        return verdicts.cost
    if request.objective == "throughput":
        return 1 / verdicts.per_accelerator
    return verdicts.slowness


def _choose(
    request: PlanRequest, evaluator: Evaluator, candidates: Candidates, verdicts: Verdicts
) -> int | None:
    tensor_parallel = evaluator.tensor_parallel[candidates.layout]
    if request.objective == "balanced":
        return knee(verdicts.slowness, verdicts.cost, verdicts.eligible)
    score = _score(request, verdicts)
    return best_of(
        score, verdicts.eligible, candidates.accelerators, verdicts.met_probability, tensor_parallel
    )
