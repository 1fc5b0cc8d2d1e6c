"""Allocations: compute one and keep it, read it again word for word, list them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from advisor.allocation.allocate import Allocation, allocate
from advisor.allocation.answer import written
from advisor.allocation.request import AllocationRequest, profiles_named
from advisor.core.coefficients import data_version
from advisor.service.clock import now, rfc3339
from advisor.service.database import Database
from advisor.service.lookup import resolve_all
from advisor.store import allocations as stored_allocations
from advisor.store.allocations import AllocationSummary, StoredAllocation
from advisor.store.ids import new_id, refuse_impossible


def create(database: Database, body: Mapping[str, Any]) -> StoredAllocation:
    """Answer an allocation request and keep request and answer.

    `body` is a loaded `AllocationBody`. Raises as `evaluate` does.
    """
    found, answer = evaluate(database, body)
    return keep(database, found, body["request"], answer)


def evaluate(database: Database, body: Mapping[str, Any]) -> tuple[Allocation, dict[str, Any]]:
    """What was found for a loaded `AllocationBody`, and the answer, which is not kept and so has no
    id. No transaction is open while it is computed. Raises InvalidInput for unknown names and for
    what the planner refuses, and `SolverMissing`."""
    models, hardware, versions = resolve_all(database, *profiles_named(body))
    asked = AllocationRequest.from_mapping(body, models.values(), hardware.values())
    found = allocate(asked)
    profiles = [{"pointer": at, "name": n, "version": v} for at, (n, v) in versions.items()]
    origins = {"profiles": profiles, "coefficients_version": data_version()}
    return found, origins | written(found)


def keep(
    database: Database, found: Allocation, request: dict[str, Any], answer: Mapping[str, Any]
) -> StoredAllocation:
    """Store what was answered to a request as it was sent, with an id and the time."""
    allocation_id, moment = new_id(), now()
    answer = {"id": allocation_id, "created_at": rfc3339(moment), **answer}
    stored = StoredAllocation(
        id=allocation_id,
        created_at=moment,
        objective=found.request.objective,
        status=answer["status"],
        planner_version=answer["planner_version"],
        request=request,
        answer=json.dumps(answer, allow_nan=False),
    )
    with database.writing() as session:
        stored_allocations.add(session, stored)
    return stored


def read(database: Database, allocation_id: str) -> StoredAllocation:
    """The allocation of that id. Raises `NotFound`."""
    refuse_impossible(allocation_id)
    with database.reading() as session:
        return stored_allocations.get(session, allocation_id)


def page(
    database: Database, limit: int, cursor: str | None, filters: Mapping[str, str]
) -> tuple[list[AllocationSummary], str | None]:
    """At most `limit` allocations, newest first, and the cursor of the next page. Raises
    `BadCursor`."""
    with database.reading() as session:
        return stored_allocations.page(session, limit, cursor, filters)
