"""`/v1/terminology`."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from flask import Response, url_for

from advisor.schemas.common import PageQuery
from advisor.schemas.terminology import CheckAnswer, CheckBody, FindingRepliesBody, RulePage
from advisor.service import terminology
from advisor.web import examples
from advisor.web.answers import database, json_answer, page_answer, vocabulary
from advisor.web.spec import ETAG, IF_NONE_MATCH, LOCATION, Resource

blp = Resource(
    "terminology", __name__, url_prefix="/v1/terminology",
    description="Texts checked for terms that readers take in more than one way.",
)  # fmt: skip


@blp.route("/checks", methods=["POST"])
@blp.operation(
    "create_terminology_check", "Check a text", CheckAnswer, status=HTTPStatus.CREATED,
    body=CheckBody, examples=examples.CHECK, headers=ETAG | LOCATION,
)  # fmt: skip
def create(body: dict[str, Any]) -> Response:
    """Finds terms that readers take in more than one way, and asks where the text does not say."""
    check = terminology.create(database(), vocabulary(), body)
    return json_answer(check, HTTPStatus.CREATED, location=url_for(".read", check_id=check["id"]))


@blp.route("/checks/<check_id>")
@blp.operation(
    "get_terminology_check", "Read a check", CheckAnswer,
    headers=ETAG, errors=(HTTPStatus.NOT_FOUND,), parameters=(IF_NONE_MATCH,),
)  # fmt: skip
def read(check_id: str) -> Response:
    """As it stands with the answers given so far."""
    return json_answer(terminology.read(database(), check_id))


@blp.route("/checks/<check_id>/answers", methods=["POST"])
@blp.operation(
    "answer_terminology_check", "Answer the questions of a check", CheckAnswer,
    body=FindingRepliesBody, examples=examples.REPLIES,
    headers=ETAG, errors=(HTTPStatus.NOT_FOUND,),
)  # fmt: skip
def answer(body: dict[str, Any], check_id: str) -> Response:
    """All answers are taken, or none. The check is answered with the advice for each reading."""
    return json_answer(terminology.answer_findings(database(), check_id, body["answers"]))


@blp.route("/rules")
@blp.operation(
    "list_terminology_rules", "List the rules of the checker", RulePage, query=PageQuery,
    headers=ETAG, errors=(HTTPStatus.BAD_REQUEST,), parameters=(IF_NONE_MATCH,),
)  # fmt: skip
def list_rules(query: dict[str, Any]) -> Response:
    """What is found, what is asked, and the advice for each answer."""
    page = terminology.rules_page(vocabulary(), query["limit"], query["cursor"])
    return page_answer(*page, show=dict)
