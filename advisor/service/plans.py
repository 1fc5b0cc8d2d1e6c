"""Plans: compute one and keep it, read it again word for word, list them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from advisor.core.capacity import capacity as most_served
from advisor.core.coefficients import data_version
from advisor.core.errors import FieldError, InvalidInput
from advisor.core.plans import plan
from advisor.core.workload import PlanRequest
from advisor.service import metrics
from advisor.service.clock import now, rfc3339
from advisor.service.database import Database
from advisor.service.lookup import Resolved, resolve
from advisor.store import plans as stored_plans
from advisor.store.errors import NotFound
from advisor.store.ids import new_id, refuse_impossible
from advisor.store.plans import PlanSummary, StoredPlan

Loader = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def create(database: Database, ask: Mapping[str, Any]) -> StoredPlan:
    """Answer a plan request and keep request and answer.

    `ask` is a loaded `PlanBody`. No transaction is open while the plan is computed. Raises
    InvalidInput for unknown names and for what the planner refuses.
    """
    request, answer = evaluate(database, ask)
    stored = _stored(request, ask["request"], answer)
    with database.writing() as session:
        stored_plans.add(session, stored)
    return stored


def evaluate(database: Database, ask: Mapping[str, Any]) -> tuple[PlanRequest, dict[str, Any]]:
    """The question of a loaded `PlanBody` and the answer to it, which is not kept and so has no id;
    raises as `create`."""
    found, request = asked(database, ask)
    with metrics.plan_seconds.time():
        answer = _origins(found) | plan(request).as_dict()
    metrics.plan_candidates.observe(answer["candidates_total"])
    return request, answer


def asked(database: Database, ask: Mapping[str, Any]) -> tuple[Resolved, PlanRequest]:
    """The profiles that a loaded `PlanBody` names, and the question. Raises InvalidInput."""
    found = resolve(database, ask["model"], ask["hardware"])
    return found, PlanRequest.from_mapping(ask, found.model, found.hardware)


def read(database: Database, plan_id: str) -> StoredPlan:
    """The plan of that id. Raises `NotFound`."""
    refuse_impossible(plan_id)
    with database.reading() as session:
        return stored_plans.get(session, plan_id)


def referred(database: Database, plan_id: str) -> dict[str, Any]:
    """The answer of a plan that a request names. InvalidInput at /plan_id without one."""
    answer: dict[str, Any] = json.loads(named(database, plan_id).answer)
    return answer


def named(database: Database, plan_id: str) -> StoredPlan:
    """The plan that a request names. InvalidInput at /plan_id without one."""
    try:
        return read(database, plan_id)
    except NotFound:
        error = FieldError("/plan_id", "There is no plan with this id.", given=plan_id)
        raise InvalidInput(error) from None


def capacity(database: Database, plan_id: str, load: Loader) -> float:
    """Requests a second that a stored plan, which recommends one, serves at most within its SLOs.

    `load` reads a request as it was sent. InvalidInput at /plan_id where the plan cannot be made
    any more as it was.
    """
    stored = read(database, plan_id)
    try:
        _, request = asked(database, load(stored.request))
        return most_served(request, json.loads(stored.answer)["recommended"])
    except InvalidInput as refused:
        detail = f"What this plan can serve is not known any more. {refused.errors[0].detail}"
        raise InvalidInput(FieldError("/plan_id", detail, given=plan_id)) from None


def page(
    database: Database, limit: int, cursor: str | None, filters: Mapping[str, str]
) -> tuple[list[PlanSummary], str | None]:
    """At most `limit` plans, newest first, and the cursor of the next page. Raises `BadCursor`."""
    with database.reading() as session:
        return stored_plans.page(session, limit, cursor, filters)


def _origins(found: Resolved) -> dict[str, Any]:
    """What the answer follows from besides the request: another of these, and it may change."""
    profiles = [
        {"pointer": pointer, "name": name, "version": version}
        for pointer, (name, version) in found.versions.items()
    ]
    return {"profiles": profiles, "coefficients_version": data_version()}


def _stored(request: PlanRequest, asked: dict[str, Any], answer: dict[str, Any]) -> StoredPlan:
    plan_id, moment = new_id(), now()
    answer = {"id": plan_id, "created_at": rfc3339(moment)} | answer
    return StoredPlan(
        id=plan_id,
        created_at=moment,
        model=request.model.name,
        objective=request.objective,
        planner_version=answer["planner_version"],
        request=asked,
        answer=json.dumps(answer, allow_nan=False),
    )
