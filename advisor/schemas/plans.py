"""Plan requests: which model on which hardware, for which load, within which bounds."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, post_load, validates_schema

from advisor.core.enumeration import MAX_LAYOUTS
from advisor.core.errors import FieldError
from advisor.core.workload import EXPLANATIONS, OBJECTIVES, SLO_KEYS, Limits, Serving
from advisor.schemas.base import Answer, Closed
from advisor.schemas.common import AnyJson, PageQuery, page_of
from advisor.schemas.containers import Either, ListOf, MapOf, Section, plain
from advisor.schemas.faults import fault, loaded
from advisor.schemas.fields import Choice, Flag, Number, Text, Whole
from advisor.schemas.hardware import HardwareProfileBody
from advisor.schemas.models import ModelProfileBody
from advisor.schemas.workload import LimitsBody, PrecisionBody, ServingBody, WorkloadBody

MOST_HARDWARE = 64
MOST_CANDIDATES = 100_000
LARGEST_REQUEST = 131_072
"""Bytes of a request that is kept: a page of the list of plans holds up to 200 of them."""


class PlanBody(Closed):
    """One question to the planner."""

    model = Either(
        Text("Name or alias of a model profile.", 200, shortest=1), ModelProfileBody,
        "A model profile by name, or whole.", required=True,
    )  # fmt: skip
    hardware = ListOf(
        Either(Text("Name of a hardware profile.", 200, shortest=1), HardwareProfileBody),
        "Hardware profiles by name, or whole; each is tried by itself.",
        fewest=1, most=MOST_HARDWARE, required=True,
    )  # fmt: skip
    workload = Section(WorkloadBody, "The load.", required=True)
    slo = MapOf(
        Number("[ms]", 1e-3, 1e9),
        "Upper bounds [ms]. tpot is one value per request, itl one per gap between tokens.",
        keys=SLO_KEYS, load_default=dict,
    )  # fmt: skip
    objective = Choice(
        "`cost`: cheapest that meets the SLOs; `latency`: least p95 E2E within the limits; "
        "`throughput`: most tokens per second and accelerator; "
        "`balanced`: between cost and latency.",
        OBJECTIVES, load_default="cost",
    )  # fmt: skip
    precision = Section(
        PrecisionBody, "Number formats to try.",
        load_default=lambda: {"weights": [], "kv_cache": []},
    )  # fmt: skip
    limits = Section(LimitsBody, "Bounds on the search.", load_default=Limits)
    serving = Section(ServingBody, "The engine.", load_default=Serving)
    max_candidates = Whole("Most candidates in the answer, best first.", 1, 1000, load_default=50)
    verify = Flag(
        "Simulate the plan recommended and those of the front, and give both answers.",
        load_default=False,
    )
    explain = Choice(
        "`full`: besides, where another way to spend the accelerators becomes the better one "
        "(`crossing_loads`), and in `slo_sensitivity` tighter SLOs and those that the batch "
        "follows. It takes two or three times as long.",
        EXPLANATIONS, load_default="brief",
    )  # fmt: skip

    @validates_schema
    def bound_the_search(self, data: dict[str, Any], **_: Any) -> None:
        """Refuse what spans too many layouts or candidates before any of them is made."""
        refuse_large_searches(data["limits"], data["precision"], len(data["hardware"]))

    @post_load(pass_original=True)
    def keep_request(self, data: dict[str, Any], original: Any, **_: Any) -> dict[str, Any]:
        """The loaded request with, as `request`, the one that was sent, for it to be kept."""
        return data | {"request": kept_request(original, LARGEST_REQUEST)}


def loaded_plan(document: Any) -> dict[str, Any]:
    """A plan request that did not come as the body of one; as `loaded`."""
    return loaded(PlanBody(), document)


def kept_request(original: Any, largest_bytes: int) -> Any:
    """A request as it was sent, for it to be kept. Raises ValidationError for one that is larger,
    by the profiles that it brings along."""
    request = plain(original)
    size = len(json.dumps(request))
    if size > largest_bytes:
        detail = f"The request has {size} bytes. Create its profiles, and name them here."
        raise fault(detail, allowed={"maximum_bytes": largest_bytes})
    return request


def refuse_large_searches(limits: Limits, precision: Mapping[str, Any], devices: int) -> None:
    """Raises ValidationError for limits and formats that spell out too many layouts or candidates;
    what is left to the planner counts once."""
    degrees = (
        limits.tensor_parallel,
        limits.pipeline_parallel,
        limits.expert_parallel,
        limits.attention_data_parallel,
        limits.decode_context_parallel,
    )
    lists = (precision["weights"], precision["kv_cache"], *degrees)
    layouts = devices * math.prod(len(one or "1") for one in lists)
    candidates = layouts * len(limits.replicas or "1")
    if layouts > MAX_LAYOUTS or candidates > MOST_CANDIDATES:
        allowed = {"maximum_layouts": MAX_LAYOUTS, "maximum_candidates": MOST_CANDIDATES}
        given = {"layouts": layouts, "candidates": candidates}
        detail = f"The request spans {layouts} layouts and {candidates} candidates or more."
        error = FieldError("", detail, given=given, allowed=allowed)
        raise ValidationError({"limits": [error]})


class PlanSummaryAnswer(Answer):
    """A plan as a list shows it."""

    id = Text()
    created_at = Text("UTC, RFC 3339.")
    model = Text("Name of the model.")
    objective = Choice("", OBJECTIVES)
    planner_version = Text("Version of the service that answered.")
    request = AnyJson("The request as it was sent.")


PlanPage: type[Answer] = page_of(PlanSummaryAnswer, "PlanPage")


class PlanQuery(PageQuery):
    """Which plans to list."""

    model = Text("Only plans for the model of this name.", 100, load_default=None, allow_none=False)
