"""Evaluating plans: layouts to curves, replicas to latencies, and both to a table of candidates."""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.core.batch_limit import largest_batch
from advisor.core.batching import ServiceCurves, service_curves
from advisor.core.candidates import Candidates, Evaluated
from advisor.core.coefficients import coefficient
from advisor.core.confidence import regime
from advisor.core.engines import EngineSettings
from advisor.core.layouts import Layout, stage_loads
from advisor.core.load import Replicas, Served
from advisor.core.memory import MemoryFit
from advisor.core.open_load import split_cv2
from advisor.core.search import ladder, last_worthwhile, smallest_holding, spread
from advisor.core.serve import serve
from advisor.core.slo import slo_ratios
from advisor.core.steps import StepModel, StepTimes
from advisor.core.units import MS_PER_S
from advisor.core.workload import PlanRequest

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_BETWEEN = 3
_BLOCK_CELLS, _SPARED_CELLS = 65_536, 16_384
"""Rows are evaluated in blocks of at most so many table cells, which caches hold, as wide as one of
them needs; a block of their own is worth it for rows that need so many cells fewer."""

_TRIED_AT_ONCE, _LEAST_TRIED = 128, 8
"""Plans evaluated at first, and how many of each layout at least; then twice as many of those that
are not settled."""

PLATEAU = 1.01
"""Another replica is worth adding while it shortens p95 E2E by 1 % or more."""


class Evaluator:
    """All layouts of a request that fit, ready to be evaluated at any number of replicas."""

    def __init__(
        self,
        request: PlanRequest,
        layouts: Sequence[Layout],
        settings: Sequence[EngineSettings],
        memory: MemoryFit,
    ) -> None:
        self.request, self.memory = request, memory
        self.known = Evaluated()
        self.layouts = tuple(layouts)
        self.settings = self._settings_asked = tuple(settings)
        engine = request.serving.engine
        self.regimes = [regime(request.model, layout, engine) for layout in layouts]
        self.slots = self._most_slots = self._slots()
        self.front_end = np.array([_front_end(request, layout) for layout in layouts])
        budgets = [_token_budget(la, se) for la, se in self._pairs()]
        self.batched_tokens = np.array(budgets, dtype=np.float64)[:, None]
        self.steps = StepModel(request.model, self.layouts, engine, request.serving.speculative)
        self.curves: ServiceCurves = service_curves(
            self.steps, request.workload, self.batched_tokens, int(self.slots.max(initial=1))
        )
        self._keep_tpot_within_slo()
        self.accelerators = np.array([la.split.accelerators for la in layouts], dtype=np.int64)
        self.tensor_parallel = np.array([la.split.tensor_parallel for la in layouts])

    def _pairs(self) -> zip[tuple[Layout, EngineSettings]]:
        return zip(self.layouts, self.settings, strict=True)

    def _keep_tpot_within_slo(self) -> None:
        """Let no more sequences run than keep TPOT within its SLOs, unless the request says how
        many; whole numbers for each attention group.

        Not under an open load, which fills no batch: there fewer prompts come between the tokens
        than in a full replica, whose largest batch would ask for more of them.
        """
        self.settings, self.slots = self._settings_asked, self._most_slots.copy()
        if self.batch_follows_slo:
            self._keep_batch_small()
        self.saturation = self.curves.rate_at(np.arange(len(self.layouts)), self.slots)

    @property
    def batch_follows_slo(self) -> bool:
        """Whether SLOs on TPOT decide how many sequences run."""
        request = self.request
        return request.serving.max_num_seqs is None and request.workload.mode != "open"

    def _keep_batch_small(self) -> None:
        request, drafts = self.request, self.request.serving.speculative
        slo = {key: ms / self.margin(key) for key, ms in request.slo.items()}
        most = largest_batch(self.curves, self.slots, request.workload, slo, drafts)
        settings = list(self.settings)
        for i in np.flatnonzero(most < self.slots):
            groups = self.layouts[i].split.attention_data_parallel
            each = max(int(most[i]) // groups, 1)
            settings[i] = replace(settings[i], max_num_seqs=each, max_num_seqs_by_slo=True)
            self.slots[i] = min(each * groups, int(self.slots[i]))
        self.settings = tuple(settings)

    def with_slo(self, slo: Mapping[str, float]) -> Evaluator:
        """The same layouts under other SLOs; what was evaluated is kept, unless the batch follows
        them."""
        other = copy.copy(self)
        other.request = self.request.with_slo(slo)
        if self.batch_follows_slo and _of_tpot(slo) != _of_tpot(self.request.slo):
            other.known = Evaluated()
            other._keep_tpot_within_slo()
        return other

    def margin(self, key: str) -> Array:
        """How far each layout has to stay below a limit for that to be as sure as is asked for,
        (layouts,)."""
        probability, metric = self.request.limits.min_met_probability, key.split("_")[0]
        if probability is None:
            return np.ones(len(self.layouts))
        return np.array([known.width(metric).margin(probability) for known in self.regimes])

    def meets(self, layout: Index, served: Served) -> NDArray[np.bool_]:
        """Which rows meet every SLO, as surely as is asked for."""
        met = np.ones(len(layout), dtype=bool)
        ratios = slo_ratios(served, self.request.slo, self.request.workload.gaps)
        for key, ratio in ratios.items():
            met &= ratio * self.margin(key)[layout] <= 1
        return met

    def _slots(self) -> Index:
        """Largest number of sequences a replica runs at once: the engine's limit, or memory's."""
        engine = [se.max_num_seqs * la.split.attention_data_parallel for la, se in self._pairs()]
        held = np.floor(self.memory.max_concurrency)
        return np.maximum(np.minimum(engine, held), 1).astype(np.int64)

    def serve(self, layout: Index, serving: Index, load: Array | None = None) -> Served:
        """Evaluate layouts with `serving` replicas each (spares not counted), under the load of the
        request or one of each row: requests a second on average, or requests in flight.

        Rows are evaluated in blocks that need about as many columns of the curves.
        """
        if load is None:
            workload = self.request.workload
            one = workload.concurrency or workload.request_rate_per_s or np.nan
            load = np.full(len(layout), float(one))
        columns = self._columns_needed(layout, serving, load)
        parts, order = [], []
        for block in _blocks(columns):
            width = int(columns[block].max(initial=1))
            rows = self._rows(layout[block], serving[block], load[block])
            parts.append(serve(self.curves, rows, width, self.request.workload))
            order.append(block)
        if len(parts) == 1:
            return parts[0]
        return Served.joined(parts).take(np.argsort(np.concatenate(order)))

    def _columns_needed(self, layout: Index, serving: Index, load: Array) -> Index:
        workload, slots = self.request.workload, self.slots[layout]
        if workload.mode == "saturated":
            return slots
        if workload.mode == "closed":
            return np.asarray(np.minimum(slots, load.astype(np.int64) // serving + 2))
        offered = load * workload.peak_to_mean
        effective = serving * self.request.serving.router_efficiency
        peakedness = (1 + split_cv2(workload.arrival_cv, serving)) / 2
        needed = self.curves.columns_needed(layout, slots, offered / effective, peakedness)
        stable = offered / (effective * self.saturation[layout]) < 1
        return np.where(stable, needed, 1)  # others are not evaluated

    def _rows(self, layout: Index, serving: Index, load: Array) -> Replicas:
        return Replicas(
            layout,
            self.slots[layout],
            self.saturation[layout],
            serving,
            self.front_end[layout],
            self.request.serving.router_efficiency,
            self.request.serving.speculative,
            self.request.serving.routing,
            load,
        )

    def largest_counts(self) -> Index:
        """Most replicas of each layout that the limits leave for serving."""
        limits = self.request.limits
        most = limits.max_accelerators // self.accelerators
        if limits.max_cost_per_hour is not None:
            for i, layout in enumerate(self.layouts):
                if layout.hardware.price is not None:
                    one = layout.hardware.price.amount_per_hour * int(self.accelerators[i])
                    afford = int(limits.max_cost_per_hour / one) if one else int(most[i])
                    most[i] = min(most[i], afford)
        return np.asarray(most - limits.spare_replicas)

    def smallest_counts(self) -> Index:
        """Fewest replicas of each layout that carry the load within the utilization limit."""
        workload, limits = self.request.workload, self.request.limits
        count = len(self.layouts)
        if workload.request_rate_per_s is None:
            return np.ones(count, dtype=np.int64)
        offered = workload.request_rate_per_s * workload.peak_to_mean
        one = self.saturation * self.request.serving.router_efficiency
        return np.maximum(np.ceil(offered / (limits.max_utilization * one)), 1).astype(np.int64)

    def candidates(self) -> Candidates:
        """The plans worth showing: every count asked for, or for each layout the fewest replicas
        that hold, the fewest that meet the SLOs, the last that still pays, and some between. Where
        the limits leave none that holds, the fewest that do, beyond them."""
        spare, fixed = self.request.limits.spare_replicas, self.request.limits.replicas
        if fixed:
            counts = [[n - spare for n in fixed if n > spare] for _ in self.layouts]
            return self._at_counts(counts)
        low, high = self.smallest_counts(), self.largest_counts()
        if (low > high).all():
            high = low
        if self.request.workload.mode == "saturated":
            return self._at_counts([[1] if most >= 1 else [] for most in high])
        if self.request.workload.concurrency is not None:
            high = np.minimum(high, self.request.workload.concurrency)
        return self._searched(
            [ladder(a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
        )

    def at(self, plans: Sequence[tuple[int, int]]) -> Candidates:
        """Plans given as (layout, replicas), spares included, in this order."""
        known = self.known
        unknown = [plan for plan in dict.fromkeys(plans) if plan not in known.rows]
        if unknown or known.table is None:
            known.add(unknown, self._evaluated(unknown))
        assert known.table is not None
        return known.table.take(np.array([known.rows[plan] for plan in plans], dtype=np.int64))

    def _evaluated(self, plans: Sequence[tuple[int, int]]) -> Candidates:
        layout = np.array([i for i, _ in plans], dtype=np.int64)
        replicas = np.array([n for _, n in plans], dtype=np.int64)
        served = self.serve(layout, replicas - self.request.limits.spare_replicas)
        return Candidates(layout, replicas, replicas * self.accelerators[layout], served)

    def _at_counts(self, counts: Sequence[Sequence[int]]) -> Candidates:
        """Every layout at each of its counts of serving replicas."""
        spare = self.request.limits.spare_replicas
        return self.at([(i, n + spare) for i, each in enumerate(counts) for n in each])

    def _searched(self, counts: list[list[int]]) -> Candidates:
        first, last = self._places(counts)
        most = self._plateaus(counts, last)
        fewest = smallest_holding(
            self._meets, [_ends(*each, 0) for each in zip(counts, first, strict=True)]
        )
        shown = []
        for each, at, enough, n in zip(counts, first, fewest, most, strict=True):
            through = max(at, bisect_right(each, n) - 1)
            places = spread(0, through, _BETWEEN) if each else set()
            shown.append(sorted({each[i] for i in places} | ({enough, n} - {0})))
        return self._at_counts(shown)

    def _places(self, counts: list[list[int]]) -> tuple[list[int], list[int]]:
        """Where in its ladder each layout first meets the SLOs, -1 if it does nowhere, and where
        the last replica pays. Of many layouts, no more of a ladder is evaluated than these take."""
        tried = [max(_LEAST_TRIED, _TRIED_AT_ONCE // max(len(counts), 1))] * len(counts)
        while True:
            rungs = [each[:n] for each, n in zip(counts, tried, strict=True)]
            times = _of_each(rungs, self._at_counts(rungs).served.latency["e2e"].at("p95"))
            last = [last_worthwhile(*each, PLATEAU) for each in zip(rungs, times, strict=True)]
            first = [int(np.argmax(met)) if met.any() else -1 for met in self._meets(rungs)]
            more = [
                len(some) < len(each) and (i < 0 or j == len(some) - 1)
                for each, some, i, j in zip(counts, rungs, first, last, strict=True)
            ]
            if not any(more):
                return first, last
            tried = [2 * n if on else n for n, on in zip(tried, more, strict=True)]

    def _plateaus(self, counts: list[list[int]], last: list[int]) -> list[int]:
        """The last count of each layout that still pays, which stands in its ladder at `last`; the
        exact one, near it, where the objective is latency. 0 for none."""
        if self.request.objective != "latency":
            return [each[i] if each else 0 for each, i in zip(counts, last, strict=True)]

        def reached(some: list[list[int]]) -> list[NDArray[np.bool_]]:
            now, then = (
                self._at_counts([[n + more for n in each] for each in some])
                .served.latency["e2e"]
                .at("p95")
                for more in (0, 1)
            )
            return _of_each(some, now <= then * PLATEAU)

        return smallest_holding(
            reached, [_ends(*each, 1) for each in zip(counts, last, strict=True)]
        )

    def _meets(self, counts: list[list[int]]) -> list[NDArray[np.bool_]]:
        """Which counts of each layout meet the SLOs."""
        found = self._at_counts(counts)
        return _of_each(counts, self.meets(found.layout, found.served))

    def operating_point(self, candidates: Candidates) -> tuple[StepTimes, StepTimes]:
        """Decode and mixed step of each candidate at its mean batch, causes apart, (rows,)."""
        return self.curves.causes_at(candidates.layout, candidates.served.in_service)

    def prompt_share(self, candidates: Candidates) -> Array:
        """Share of the steps' time that prompts take at the mean batch, (rows,)."""
        gaps = self.request.workload.gaps
        return self.curves.prompt_share(candidates.layout, candidates.served.in_service, gaps)


def _blocks(columns: Index) -> list[Index]:
    """Rows in blocks of bounded size: all of them as they are, or by falling number of columns."""
    order, blocks = np.arange(len(columns)), list[Index]()
    cells = len(columns) * int(columns.max(initial=1))
    if cells <= _BLOCK_CELLS and cells - columns.sum() <= _SPARED_CELLS:
        return [order]
    order = np.argsort(-columns, kind="stable")
    while len(order):
        needed = columns[order]
        cells = needed[0] * np.arange(1, len(order) + 1)
        fits = (cells <= _BLOCK_CELLS) & (cells - np.cumsum(needed) <= _SPARED_CELLS)
        size = max(int(fits.sum()), 1)
        blocks.append(order[:size])
        order = order[size:]
    return blocks


def _of_each(counts: Sequence[Sequence[int]], values: NDArray[Any]) -> list[NDArray[Any]]:
    """Values of rows, apart by layout: each has so many counts."""
    return np.split(values, np.cumsum([len(each) for each in counts])[:-1]) if counts else []


def _ends(counts: Sequence[int], at: int, beyond: int) -> tuple[int, int]:
    """From the first count above the one before place `at` in a ladder, to the one `beyond` it; 0
    and 0 for no place."""
    if not counts or at < 0:
        return 0, 0
    return (counts[at - 1] + 1 if at else counts[0]), counts[min(at + beyond, len(counts) - 1)]


def _of_tpot(slo: Mapping[str, float]) -> dict[str, float]:
    return {key: limit for key, limit in slo.items() if key.startswith("tpot")}


def hourly_cost(layout: Layout, accelerators: int) -> Decimal | None:
    """What the accelerators cost an hour, or None without a price."""
    price = layout.hardware.price
    return None if price is None else price.amount_per_hour * accelerators


def _front_end(request: PlanRequest, layout: Layout) -> float:
    device, engine = layout.hardware, request.serving.engine
    name = "moe_front_end_ms" if request.model.architecture.moe else "front_end_ms"
    milliseconds = coefficient(name, device, engine)
    if any(stage.latent_layers for stage in stage_loads(request.model, layout.split)):
        milliseconds += coefficient("latent_front_end_ms", device, engine)
    tokens = request.workload.input_tokens.mean
    each = coefficient("front_end_token_us", device, engine) * 1e-6
    return milliseconds / MS_PER_S + tokens * each


def _token_budget(layout: Layout, settings: EngineSettings) -> float:
    """Tokens that one pass over a replica may compute: each microbatch and each attention group
    has the engine's budget."""
    split = layout.split
    return float(
        settings.max_num_batched_tokens * split.pipeline_parallel * split.attention_data_parallel
    )
