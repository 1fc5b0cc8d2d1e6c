"""The routes of one kind of profile; hardware and models differ in their schemas alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from flask import Response, url_for

from advisor.schemas.base import Answer, Closed
from advisor.service.clock import rfc3339
from advisor.service.profiles import ProfileKind
from advisor.store.profiles import StoredProfile
from advisor.web.answers import database, expected_version, json_answer, page_answer
from advisor.web.authentication import client_name
from advisor.web.spec import ETAG, IF_MATCH, IF_NONE_MATCH, LOCATION, Resource

NOT_FOUND = (HTTPStatus.NOT_FOUND,)
CHANGE_ERRORS = (
    HTTPStatus.NOT_FOUND,
    HTTPStatus.PRECONDITION_FAILED,
    HTTPStatus.PRECONDITION_REQUIRED,
)


@dataclass(frozen=True)
class ProfileRoutes:
    """What tells one kind of profile from the other."""

    kind: ProfileKind
    noun: str
    body: type[Closed]
    answer: type[Answer]
    page: type[Answer]
    query: type[Closed]
    filters: tuple[str, ...]
    examples: Mapping[str, Any]


def shown(routes: ProfileRoutes, profile: StoredProfile) -> dict[str, Any]:
    """A stored profile as it is answered."""
    return {
        **profile.document,
        "warnings": routes.kind.warnings(profile.document),
        "origin": profile.origin,
        "created_at": rfc3339(profile.created_at),
        "updated_at": rfc3339(profile.updated_at),
    }


def add_routes(blp: Resource, routes: ProfileRoutes) -> None:
    """Add list, create, read, replace and delete to a resource."""
    noun, kind = routes.noun, routes.kind
    name = noun.replace(" ", "_")

    def one(profile: StoredProfile, status: int = HTTPStatus.OK, **headers: str) -> Response:
        return json_answer(shown(routes, profile), status, etag=str(profile.version), **headers)

    @blp.route("")
    @blp.operation(
        f"list_{name}s", f"List {noun}s", routes.page, query=routes.query,
        headers=ETAG, errors=(HTTPStatus.BAD_REQUEST,), parameters=(IF_NONE_MATCH,),
    )  # fmt: skip
    def list_all(query: dict[str, Any]) -> Response:
        """Sorted by name."""
        filters = {key: query[key] for key in routes.filters if query[key] is not None}
        page = kind.page(database(), query["limit"], query["cursor"], filters)
        return page_answer(*page, show=lambda profile: shown(routes, profile))

    @blp.route("", methods=["POST"])
    @blp.operation(
        f"create_{name}", f"Create a {noun}", routes.answer, status=HTTPStatus.CREATED,
        body=routes.body, examples=routes.examples, headers=ETAG | LOCATION,
        errors=(HTTPStatus.CONFLICT,),
    )  # fmt: skip
    def create(body: dict[str, Any]) -> Response:
        """Under a name that is not taken yet."""
        profile = kind.create(database(), body, client_name())
        return one(profile, HTTPStatus.CREATED, location=url_for(".read", name=profile.name))

    @blp.route("/<name>")
    @blp.operation(
        f"get_{name}", f"Read a {noun}", routes.answer,
        headers=ETAG, errors=NOT_FOUND, parameters=(IF_NONE_MATCH,),
    )  # fmt: skip
    def read(name: str) -> Response:
        """By its name. The ETag is what a change of it has to send as `If-Match`."""
        return one(kind.read(database(), name))

    @blp.route("/<name>", methods=["PUT"])
    @blp.operation(
        f"replace_{name}", f"Replace a {noun}", routes.answer, body=routes.body,
        examples=routes.examples, headers=ETAG, errors=(*CHANGE_ERRORS, HTTPStatus.CONFLICT),
        parameters=(IF_MATCH,),
    )  # fmt: skip
    def replace(body: dict[str, Any], name: str) -> Response:
        """The whole profile, under the same name; what is left out takes its default."""
        version = expected_version(lambda: kind.read(database(), name).version)
        return one(kind.replace(database(), name, body, version, client_name()))

    @blp.route("/<name>", methods=["DELETE"])
    @blp.operation(
        f"delete_{name}", f"Delete a {noun}", None, status=HTTPStatus.NO_CONTENT,
        errors=CHANGE_ERRORS, parameters=(IF_MATCH,),
    )  # fmt: skip
    def delete(name: str) -> Response:
        """A deleted entry of the catalogue stays deleted. Plans made with it stay."""
        version = expected_version(lambda: kind.read(database(), name).version)
        kind.delete(database(), name, version, client_name())
        return Response(status=HTTPStatus.NO_CONTENT)
