"""`/v1/techniques`."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from flask import Response
from werkzeug.routing import BaseConverter

from advisor.schemas.plans import loaded_plan
from advisor.schemas.techniques import (
    AdviceAnswer,
    AdviceBody,
    TechniqueAnswer,
    TechniquePage,
    TechniqueQuery,
)
from advisor.service import techniques
from advisor.web import examples
from advisor.web.answers import database, json_answer, page_answer
from advisor.web.spec import ETAG, IF_NONE_MATCH, Resource


class TechniqueName(BaseConverter):
    """A part of a path that is no other resource beside it."""

    regex = r"(?!advice$)[^/]+"


blp = Resource(
    "techniques", __name__, url_prefix="/v1/techniques",
    description="Optimization techniques, and which of them would help a plan.",
)  # fmt: skip


@blp.route("")
@blp.operation(
    "list_techniques", "List techniques", TechniquePage, query=TechniqueQuery,
    headers=ETAG, errors=(HTTPStatus.BAD_REQUEST,), parameters=(IF_NONE_MATCH,),
)  # fmt: skip
def list_all(query: dict[str, Any]) -> Response:
    """What each changes, its price, when it helps and hurts, and who published it, by name."""
    page = techniques.page(query["limit"], query["cursor"], query["family"])
    return page_answer(*page, show=dict)


@blp.route("/<technique:name>")
@blp.operation(
    "get_technique", "Read a technique", TechniqueAnswer,
    headers=ETAG, errors=(HTTPStatus.NOT_FOUND,), parameters=(IF_NONE_MATCH,),
)  # fmt: skip
def read(name: str) -> Response:
    """One of the list."""
    return json_answer(techniques.read(name))


@blp.route("/advice", methods=["POST"])
@blp.operation(
    "advise_techniques", "Which techniques would help a plan?", AdviceAnswer,
    body=AdviceBody, examples=examples.ADVICE, scope="read",
)  # fmt: skip
def advise(body: dict[str, Any]) -> Response:
    """Plans anew with each technique that applies, and ranks them by their effect on the plan's
    objective; says which do not apply, and what cannot be computed."""
    return json_answer(techniques.advise(database(), body, loaded_plan))
