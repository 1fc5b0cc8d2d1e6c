"""Disaggregation: prompts computed in one pool of replicas, answers decoded in another.

Each pool is planned by itself: the prefill pool serves the same requests with one output token, the
decode pool the same requests with their prompts in the cache, each its own. Between them the KV
cache of a prompt travels. Rows are two pools: so many replicas of a layout each.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.core.answer import rounded
from advisor.core.candidates import Candidates
from advisor.core.evaluation import Evaluator
from advisor.core.latency import Latency
from advisor.core.load import Served, open_verdict
from advisor.core.plans import Plan, plan
from advisor.core.techniques.outcome import (
    Outcome,
    best_of,
    compared,
    in_pools,
    measure_of,
    one_pool,
)
from advisor.core.techniques.subject import Subject, chosen
from advisor.core.techniques.transfer import Transfer, transfer
from advisor.core.workload import NO_SPECULATION, Length, PlanRequest

Array = NDArray[np.float64]
Index = NDArray[np.int64]

MOST_COUNTS = 16
"""Numbers of replicas of a layout that are looked at: all up to some, then fewer and fewer."""

Found = tuple[Outcome, dict[str, Any]]


def disaggregated(subject: Subject) -> Found | str:
    """The best two pools on no more accelerators than the plan has (or the fewest that two pools
    take), with what there is to say of them; or why there are none."""
    request, device = subject.request, subject.device
    if request.workload.mode == "closed":
        return (
            "Computed for open and saturating loads: clients that wait for two pools in turn are "
            "not modelled."
        )
    if request.workload.classes:
        return "Computed for one class of requests: ask with all of them as one."
    if device.interconnect is None and device.network_gb_s_per_direction is None:
        return f"No link: {device.name} has neither an interconnect nor a network in its profile."
    if request.serving.pipeline_layers:
        return "The request names the layers of each stage."
    prefill = plan(_prefill_request(request))
    decode = plan(_decode_request(request))
    sides = prefill.evaluator, decode.evaluator
    if not all(side.layouts for side in sides):
        return "No layout fits for one of the two pools."
    budget = _budget(subject, sides)
    if isinstance(budget, str):
        return budget
    both = Plan(request, TwoPools(request, *sides, budget), [], [])
    row = chosen(both)
    if row is None:
        return (
            f"No link: two pools take more accelerators than the {device.largest_domain} that "
            f"{device.name} joins, and its profile names no network."
        )
    return _answer(subject, both, prefill, decode, row)


def _prefill_request(request: PlanRequest) -> PlanRequest:
    plain = replace(request.serving, speculative=NO_SPECULATION)
    return _of_pool(replace(request, serving=plain), {}, output_tokens=Length(1))


def _decode_request(request: PlanRequest) -> PlanRequest:
    tpot = {key: ms for key, ms in request.slo.items() if key.startswith("tpot")}
    return _of_pool(request, tpot, prefix_cache_hit=1.0, own_prefixes=True)


def _of_pool(request: PlanRequest, slo: dict[str, float], **changes: Any) -> PlanRequest:
    """What one pool is asked, on any split of its accelerators; an SLO may keep its batch small."""
    limits = request.limits
    return replace(
        request,
        workload=replace(request.workload, trace=None, **changes),
        slo=slo,
        objective="latency",
        serving=replace(
            request.serving, max_model_len=request.serving.max_model_len or _longest(request)
        ),
        limits=replace(
            limits, tensor_parallel=None, expert_parallel=None, replicas=None,
            attention_data_parallel=tuple(dict.fromkeys((1, *limits.attention_data_parallel))),
            min_met_probability=None,
        ),
    )  # fmt: skip


def _longest(request: PlanRequest) -> int:
    """Both pools admit the longest request of the whole [tokens]."""
    return int(np.ceil(request.workload.longest))


def _budget(subject: Subject, sides: tuple[Evaluator, Evaluator]) -> int | str:
    """Accelerators that two pools may take, or why they cannot. A saturating load, which is
    measured by accelerator, may have as many as one link joins."""
    limits = subject.request.limits
    least = sum(int(side.accelerators.min()) for side in sides) * (1 + limits.spare_replicas)
    if least > limits.max_accelerators:
        return (
            f"Two pools take {least} accelerators or more; max_accelerators is "
            f"{limits.max_accelerators}."
        )
    now = 0
    if subject.request.workload.saturate:
        now = subject.device.largest_domain
    elif subject.row is not None:
        now = int(subject.plan.candidates.accelerators[subject.row])
    return min(max(now, least), limits.max_accelerators)


class TwoPools(Evaluator):
    """Evaluates pairs of pools that take a number of accelerators together or fewer, as if each
    were a plan of the decode pool's layout."""

    def __init__(
        self, request: PlanRequest, prefill: Evaluator, decode: Evaluator, budget: int
    ) -> None:
        vars(self).update(vars(copy(decode)))
        self.request = request
        device = request.hardware[0]
        reach = device.largest_domain if device.network_gb_s_per_direction is None else budget
        first, second = (_options(side, budget) for side in (prefill, decode))
        i, j = (x.ravel() for x in np.meshgrid(np.arange(len(first)), np.arange(len(second))))
        kept = first.accelerators[i] + second.accelerators[j] <= min(budget, reach)
        self.prefill, self.decode = first.take(i[kept]), second.take(j[kept])
        self.transfers = self._transfers(prefill, decode)

    def _transfers(self, prefill: Evaluator, decode: Evaluator) -> list[Transfer]:
        known: dict[tuple[int, int, int], Transfer] = {}
        request, total = self.request, self.prefill.accelerators + self.decode.accelerators
        rows = list(
            zip(
                self.prefill.layout.tolist(), self.decode.layout.tolist(), total.tolist(),
                strict=True,
            )
        )  # fmt: skip
        for i, j, accelerators in set(rows):
            known[i, j, accelerators] = transfer(
                request.model, prefill.layouts[i], decode.layouts[j], accelerators,
                request.workload.input_tokens.mean, request.serving.engine,
            )  # fmt: skip
        return [known[row] for row in rows]

    def candidates(self) -> Candidates:
        """Every pair, with the accelerators of both and what they serve together."""
        return Candidates(
            self.decode.layout,
            self.decode.replicas,
            self.prefill.accelerators + self.decode.accelerators,
            self._served(),
        )

    def _served(self) -> Served:
        """One pool after the other: means add; percentiles are added. The narrower pool, or the
        links of either, saturate first."""
        first, second, request = self.prefill.served, self.decode.served, self.request
        spare = request.limits.spare_replicas
        busy, way = (
            np.array([getattr(each, name) for each in self.transfers], dtype=np.float64)
            for name in ("busy", "seconds")
        )
        senders = np.minimum(self.prefill.replicas, self.decode.replicas) - spare
        carried = np.where(busy > 0, senders / np.where(busy > 0, busy, 1.0), np.inf)
        saturation = np.minimum.reduce([first.saturation, second.saturation, carried])
        ttft, latency = first.latency["ttft"], second.latency
        before = Latency(ttft.mean + way, ttft.quantiles + way[:, None])
        found = {
            "verdict": second.verdict,
            "utilization": second.utilization,
            "saturation": saturation,
            "requests_per_s": np.minimum(first.requests_per_s, second.requests_per_s),
            "concurrency": first.concurrency + second.concurrency,
            "in_service": second.in_service,
            "slot_wait": first.slot_wait + second.slot_wait,
            "full": np.maximum(first.full, second.full),
        }
        rate = request.workload.request_rate_per_s
        if rate is None:  # saturated: each pool as busy as it can be
            times = first.concurrency / first.requests_per_s + way
            times = times + second.concurrency / second.requests_per_s
            found |= {"requests_per_s": saturation, "concurrency": times * saturation}
        else:
            utilization = rate * request.workload.peak_to_mean / saturation
            found |= {"utilization": utilization, "verdict": open_verdict(utilization)}
        parts = {
            "ttft": _sum(before, latency["ttft"]),
            "tpot": latency["tpot"],
            "itl": latency["itl"],
            "e2e": _sum(before, latency["e2e"]),
        }
        return Served(**found, latency=parts)


def _sum(one: Latency, other: Latency) -> Latency:
    return Latency(one.mean + other.mean, one.quantiles + other.quantiles)


def _options(side: Evaluator, budget: int) -> Candidates:
    """Pools of up to so many accelerators: of each number of them, the layout that serves most and
    the one that is fastest."""
    spare, plans = side.request.limits.spare_replicas, list[tuple[int, int]]()
    for i, each in enumerate(side.accelerators.tolist()):
        most = budget // each
        counts = np.unique(np.geomspace(1, max(most, 1), MOST_COUNTS).round().astype(int))
        plans += [(i, int(n)) for n in counts if spare < n <= most]
    rows = side.at(plans)
    served = rows.served
    slow = served.latency["e2e"].at("p95")
    if side.request.workload.saturate:
        slow = served.concurrency / served.requests_per_s
    kept = set()
    for count in np.unique(rows.accelerators):
        alike = np.flatnonzero(rows.accelerators == count)
        kept.add(int(alike[np.argmax(served.saturation[alike])]))
        kept.add(int(alike[np.argmin(np.nan_to_num(slow[alike], nan=np.inf))]))
    return rows.take(np.array(sorted(kept), dtype=np.int64))


def _answer(subject: Subject, both: Plan, prefill: Plan, decode: Plan, row: int) -> Found:
    pair = both.evaluator
    assert isinstance(pair, TwoPools)
    accelerators = int(both.candidates.accelerators[row])
    figures = in_pools(both, both.candidates, row, bool(both.verdicts.meets[row]))
    figures |= {
        "accelerators": accelerators,
        "pools": [
            one_pool(prefill, pair.prefill, row, "prefill"),
            one_pool(decode, pair.decode, row, "decode"),
        ],
    }
    found = compared(both.verdicts, row, figures, kept=both.recommended is not None)
    return found, {
        "accelerators": accelerators,
        "transfer": pair.transfers[row].as_dict(),
        "prefill_saturation_requests_per_s": rounded(pair.prefill.served.saturation[row]),
        "decode_saturation_requests_per_s": rounded(pair.decode.served.saturation[row]),
        "disaggregated": figures,
        "aggregated": _aggregated(subject, accelerators),
    }


def _aggregated(subject: Subject, accelerators: int) -> dict[str, Any] | None:
    """As many accelerators in one pool, as the objective would have them; None: no layout takes
    exactly as many."""
    evaluator, spare = subject.evaluator, subject.request.limits.spare_replicas
    rows = [
        (i, accelerators // each)
        for i, each in enumerate(evaluator.accelerators.tolist())
        if accelerators % each == 0 and accelerators // each > spare
    ]
    if not rows:
        return None
    alike, measure = evaluator.at(rows), measure_of(subject.request)
    verdicts = subject.plan.judged(alike)
    found = [
        compared(
            verdicts, i, in_pools(subject.plan, alike, i, bool(verdicts.meets[i])),
            kept=bool(verdicts.eligible[i]),
        )
        for i in range(len(alike))
    ]  # fmt: skip
    return dict(best_of(measure, found).figures)
