"""`/v1/profile-changes`."""

from __future__ import annotations

from dataclasses import asdict
from http import HTTPStatus
from typing import Any

from flask import Response

from advisor.schemas.history import ProfileChangePage, ProfileChangeQuery
from advisor.service import history
from advisor.service.clock import rfc3339
from advisor.store.changes import ProfileChange
from advisor.web.answers import database, page_answer
from advisor.web.spec import ETAG, IF_NONE_MATCH, Resource

blp = Resource(
    "profile changes", __name__, url_prefix="/v1/profile-changes",
    description="Who changed which profile when.",
)  # fmt: skip


@blp.route("")
@blp.operation(
    "list_profile_changes", "List changes of profiles", ProfileChangePage,
    query=ProfileChangeQuery, headers=ETAG, errors=(HTTPStatus.BAD_REQUEST,),
    parameters=(IF_NONE_MATCH,), scope="admin",
)  # fmt: skip
def list_all(query: dict[str, Any]) -> Response:
    """Newest first, with what the profile was from then on: also what a plan was made with, which
    names the versions of its profiles."""
    filters = {key: query[key] for key in ("kind", "name") if query[key] is not None}
    page = history.page(database(), query["limit"], query["cursor"], filters)
    return page_answer(*page, show=_shown)


def _shown(change: ProfileChange) -> dict[str, Any]:
    return asdict(change) | {"changed_at": rfc3339(change.changed_at)}
