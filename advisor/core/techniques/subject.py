"""The plan that advice is for, and the two requests that techniques change: the question asked
anew on its hardware, and its deployment as it stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from advisor.core.enumeration import kv_precisions, weight_precisions
from advisor.core.evaluation import Evaluator
from advisor.core.hardware import HardwareProfile
from advisor.core.layouts import Split
from advisor.core.model import ModelProfile
from advisor.core.plans import Plan, plan
from advisor.core.workload import PlanRequest, Speculation


@dataclass(frozen=True)
class Given:
    """What only the asker knows: a smaller model, how drafts are accepted, and which share of the
    input would be found in a prefix cache. None: not known."""

    distilled_model: ModelProfile | None = None
    speculative: Speculation | None = None
    prefix_cache_hit: float | None = None


@dataclass(frozen=True)
class Change:
    """One setting of a technique: the request with it. `in_place` where the same accelerators,
    split as they are, can use it."""

    setting: Mapping[str, Any]
    apply: Callable[[PlanRequest], PlanRequest]
    in_place: bool = True


@dataclass(frozen=True)
class Range:
    """A technique whose effect hangs on what is not known: a poor and a good case of it."""

    poor: Change
    good: Change


@dataclass(frozen=True)
class Refusal:
    """Why a technique, or one setting of it, does not apply."""

    reason: str
    setting: Mapping[str, Any]


Offers = Sequence[Change | Range | Refusal]
"""What a technique makes of a plan: one for each of its settings."""


@dataclass(frozen=True)
class Subject:
    """A plan, and its row that advice is for (None: no layout fits).

    `free` asks for a plan on the same hardware, in the same formats, with the same stages and
    attention groups; degrees and replicas stay the planner's choice as far as they were. `pinned`
    is the deployment itself.
    """

    plan: Plan
    row: int | None
    free: PlanRequest
    pinned: PlanRequest | None

    @property
    def request(self) -> PlanRequest:
        """The question."""
        return self.free

    @property
    def evaluator(self) -> Evaluator:
        """The layouts of `free`, evaluated."""
        return self.plan.evaluator

    @property
    def layout(self) -> int | None:
        """The number of the layout among the evaluator's."""
        return None if self.row is None else int(self.plan.candidates.layout[self.row])

    @property
    def split(self) -> Split | None:
        """How a replica is split."""
        return None if self.layout is None else self.evaluator.layouts[self.layout].split

    @property
    def replicas(self) -> int:
        """Replicas, spares included; 0 without a row."""
        return 0 if self.row is None else int(self.plan.candidates.replicas[self.row])

    @property
    def device(self) -> HardwareProfile:
        """The accelerator."""
        return self.free.hardware[0]

    @property
    def weights(self) -> str:
        """Format of the weights."""
        return self.split.weights if self.split else weight_precisions(self.free)[0]

    @property
    def kv_cache(self) -> str:
        """Format of the KV cache."""
        return self.split.kv_cache if self.split else kv_precisions(self.free)[0]


def subject_of(request: PlanRequest, objective: str | None = None) -> Subject:
    """The plan of a request, ready for its techniques. InvalidInput as `plan` raises it.

    Under another objective the question is asked anew on the hardware, and in the formats, of that
    plan. A burst is taken as the steady loop of as many clients; nothing is simulated.
    """
    asked = _plain(request)
    found = plan(asked)
    row = chosen(found)
    if row is None:
        largest = max(asked.hardware, key=lambda each: each.memory_gib * each.largest_domain)
        free = replace(asked, hardware=(largest,), objective=objective or request.objective)
        return Subject(plan(free), None, free, None)
    free = _on_its_hardware(asked, found, row)
    free = replace(free, objective=objective or request.objective)
    best = plan(free)
    row = chosen(best)
    return Subject(best, row, free, None if row is None else _pinned(free, best, row))


def chosen(found: Plan) -> int | None:
    """The row recommended, else the nearest; None without candidates.

    Under `balanced` the one of least cost times latency: a knee moves as the front around it does,
    so that two of them do not say which of two questions has the better plans.
    """
    if found.recommended is None or found.request.objective != "balanced":
        return found.recommended if found.recommended is not None else found.nearest
    verdicts = found.verdicts
    product = np.where(verdicts.eligible, verdicts.cost * verdicts.slowness, np.nan)
    return int(np.nanargmin(product))


def _plain(request: PlanRequest) -> PlanRequest:
    steady = replace(request.workload, start="steady", num_requests=None)
    return replace(request, workload=steady, verify=False, explain="brief")


def _on_its_hardware(request: PlanRequest, found: Plan, row: int) -> PlanRequest:
    layout = found.evaluator.layouts[found.candidates.layout[row]]
    split, limits = layout.split, request.limits
    experts = None if limits.expert_parallel is None else (split.expert_parallel,)
    return replace(
        request,
        hardware=(layout.hardware,),
        weights=(split.weights,),
        kv_cache=(split.kv_cache,),
        limits=replace(
            limits,
            pipeline_parallel=(split.pipeline_parallel,),
            expert_parallel=experts,
            attention_data_parallel=(split.attention_data_parallel,),
            decode_context_parallel=(split.decode_context_parallel,),
        ),
    )


def _pinned(request: PlanRequest, found: Plan, row: int) -> PlanRequest:
    split = found.evaluator.layouts[found.candidates.layout[row]].split
    limits = replace(
        request.limits,
        tensor_parallel=(split.tensor_parallel,),
        expert_parallel=(split.expert_parallel,),
        replicas=(int(found.candidates.replicas[row]),),
    )
    return replace(request, limits=limits)
