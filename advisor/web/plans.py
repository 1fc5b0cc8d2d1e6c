"""`/v1/plans`."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from flask import Response, url_for

from advisor.schemas.plan_answer import PlanAnswer
from advisor.schemas.plans import PlanBody, PlanPage, PlanQuery, loaded_plan
from advisor.schemas.re_evaluation import ReEvaluationAnswer
from advisor.service import plans, re_evaluation
from advisor.service.clock import rfc3339
from advisor.store.plans import PlanSummary
from advisor.web import examples
from advisor.web.answers import database, json_answer, page_answer
from advisor.web.spec import ETAG, IF_NONE_MATCH, LOCATION, Resource

blp = Resource(
    "plans", __name__, url_prefix="/v1/plans",
    description="Which accelerators, how many replicas, how split; and what follows.",
)  # fmt: skip


@blp.route("", methods=["POST"])
@blp.operation(
    "create_plan", "Plan the serving of a model", PlanAnswer, status=HTTPStatus.CREATED,
    body=PlanBody, examples=examples.PLANS, headers=ETAG | LOCATION,
)  # fmt: skip
def create(body: dict[str, Any]) -> Response:
    """Evaluates every plan within the limits, chooses one and keeps the answer."""
    plan = plans.create(database(), body)
    return json_answer(plan.answer, HTTPStatus.CREATED, location=url_for(".read", plan_id=plan.id))


@blp.route("")
@blp.operation(
    "list_plans", "List plans", PlanPage, query=PlanQuery,
    headers=ETAG, errors=(HTTPStatus.BAD_REQUEST,), parameters=(IF_NONE_MATCH,),
)  # fmt: skip
def list_all(query: dict[str, Any]) -> Response:
    """Newest first, each with its request; the whole answer is at `/v1/plans/{plan_id}`."""
    filters = {"model": query["model"]} if query["model"] is not None else {}
    page = plans.page(database(), query["limit"], query["cursor"], filters)
    return page_answer(*page, show=_summary)


@blp.route("/<plan_id>")
@blp.operation(
    "get_plan", "Read a plan", PlanAnswer,
    headers=ETAG, errors=(HTTPStatus.NOT_FOUND,), parameters=(IF_NONE_MATCH,),
)  # fmt: skip
def read(plan_id: str) -> Response:
    """Word for word as it was answered when it was made."""
    return json_answer(plans.read(database(), plan_id).answer)


@blp.route("/<plan_id>/re-evaluation", methods=["POST"])
@blp.operation(
    "re_evaluate_plan", "Make a plan again", ReEvaluationAnswer, status=HTTPStatus.CREATED,
    headers=ETAG | LOCATION, errors=(HTTPStatus.NOT_FOUND,), scope="write", sent_again=True,
)  # fmt: skip
def re_evaluate(plan_id: str) -> Response:
    """With the profiles and coefficients of now: what has changed, and what that changes in the
    recommendation. The new plan is kept beside the old one."""
    found = re_evaluation.re_evaluate(database(), plan_id, loaded_plan)
    place = url_for(".read", plan_id=found["now"]["id"])
    return json_answer(found, HTTPStatus.CREATED, location=place)


def _summary(plan: PlanSummary) -> dict[str, Any]:
    return {
        "id": plan.id,
        "created_at": rfc3339(plan.created_at),
        "model": plan.model,
        "objective": plan.objective,
        "planner_version": plan.planner_version,
        "request": plan.request,
    }
