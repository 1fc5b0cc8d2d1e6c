"""`/v1/fleets`."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from flask import Response, url_for

from advisor.schemas.allocation import AllocationBody, AllocationQuery, loaded_allocation
from advisor.schemas.allocation_answer import AllocationPage, FleetAllocationAnswer
from advisor.schemas.re_allocation import ReAllocationAnswer
from advisor.service import allocations, re_allocation
from advisor.service.clock import rfc3339
from advisor.store.allocations import AllocationSummary
from advisor.web import examples
from advisor.web.answers import database, json_answer, page_answer
from advisor.web.spec import ETAG, IF_NONE_MATCH, LOCATION, Resource

blp = Resource(
    "fleets", __name__, url_prefix="/v1/fleets",
    description="Which devices of an inventory serve which of many demands.",
)  # fmt: skip


@blp.route("/allocations", methods=["POST"])
@blp.operation(
    "create_allocation", "Allocate an inventory to demands", FleetAllocationAnswer,
    status=HTTPStatus.CREATED, body=AllocationBody, examples=examples.ALLOCATIONS,
    headers=ETAG | LOCATION, errors=(HTTPStatus.NOT_IMPLEMENTED,),
)  # fmt: skip
def create(body: dict[str, Any]) -> Response:
    """Plans every demand on every device, chooses pools of replicas by a mixed-integer program,
    checks each at its share of the rate, and keeps the answer. Where the service was installed
    without its solver, 501."""
    made = allocations.create(database(), body)
    location = url_for(".read", allocation_id=made.id)
    return json_answer(made.answer, HTTPStatus.CREATED, location=location)


@blp.route("/allocations")
@blp.operation(
    "list_allocations", "List allocations", AllocationPage, query=AllocationQuery,
    headers=ETAG, errors=(HTTPStatus.BAD_REQUEST,), parameters=(IF_NONE_MATCH,),
)  # fmt: skip
def list_all(query: dict[str, Any]) -> Response:
    """Newest first; the whole answer is at `/v1/fleets/allocations/{allocation_id}`."""
    filters = {"status": query["status"]} if query["status"] is not None else {}
    page = allocations.page(database(), query["limit"], query["cursor"], filters)
    return page_answer(*page, show=_summary)


@blp.route("/allocations/<allocation_id>")
@blp.operation(
    "get_allocation", "Read an allocation", FleetAllocationAnswer,
    headers=ETAG, errors=(HTTPStatus.NOT_FOUND,), parameters=(IF_NONE_MATCH,),
)  # fmt: skip
def read(allocation_id: str) -> Response:
    """Word for word as it was answered when it was made."""
    return json_answer(allocations.read(database(), allocation_id).answer)


@blp.route("/allocations/<allocation_id>/re-evaluation", methods=["POST"])
@blp.operation(
    "re_evaluate_allocation", "Make an allocation again", ReAllocationAnswer,
    status=HTTPStatus.CREATED, headers=ETAG | LOCATION,
    errors=(HTTPStatus.NOT_FOUND, HTTPStatus.NOT_IMPLEMENTED), scope="write", sent_again=True,
)  # fmt: skip
def re_evaluate(allocation_id: str) -> Response:
    """With the prices, profiles and coefficients of now: what has changed, what would start and
    stop, and whether what runs still does what was asked and what moving would save. The new
    allocation is kept beside the old one."""
    found = re_allocation.re_evaluate(database(), allocation_id, loaded_allocation)
    place = url_for(".read", allocation_id=found["now"]["id"])
    return json_answer(found, HTTPStatus.CREATED, location=place)


def _summary(each: AllocationSummary) -> dict[str, Any]:
    return {
        "id": each.id,
        "created_at": rfc3339(each.created_at),
        "objective": each.objective,
        "status": each.status,
        "planner_version": each.planner_version,
    }
