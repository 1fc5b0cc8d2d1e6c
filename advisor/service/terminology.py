"""Terminology checks: check a text and keep what was found, take answers to its questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import advisor
from advisor.core.errors import FieldError, InvalidInput
from advisor.core.terminology import check as checker
from advisor.core.terminology.check import Finding
from advisor.service.clock import now, rfc3339
from advisor.service.database import Database
from advisor.store import checks
from advisor.store.checks import StoredCheck
from advisor.store.errors import BadCursor, NotFound
from advisor.store.ids import new_id

Answer = dict[str, Any]


def create(database: Database, text: str, text_format: str) -> Answer:
    """Check `text`, keep the result and answer it."""
    check_id, moment = new_id(), now()
    inputs = {"text": text, "format": text_format}
    answer = {
        "id": check_id,
        "created_at": rfc3339(moment),
        **_judgement(checker.check(text)),
        "offset_unit": "code_point",
        "inputs": inputs,
        "assumptions": [],
        "warnings": [],
        "planner_version": advisor.__version__,
    }
    with database.writing() as session:
        checks.add(session, StoredCheck(check_id, moment, inputs, answer))
    return answer


def read(database: Database, check_id: str) -> Answer:
    """The check of that id as it stands now. Raises `NotFound`."""
    _refuse_impossible(check_id)
    with database.reading() as session:
        return checks.get(session, check_id).answer


def answer_findings(
    database: Database, check_id: str, answers: Sequence[Mapping[str, Any]]
) -> Answer:
    """Resolve findings of a check by `{"finding": index, "sense": ...}` and answer the whole check.

    All of the answers are taken or none. Raises `NotFound`, and InvalidInput for an index that does
    not exist or a finding that asks nothing.
    """
    _refuse_impossible(check_id)
    with database.writing() as session:
        document = checks.get(session, check_id, lock=True).answer
        findings = [Finding.from_dict(finding) for finding in document["findings"]]
        document = document | _judgement(_resolved(findings, answers))
        checks.update_answer(session, check_id, document)
    return document


def rules_page(limit: int, cursor: str | None) -> tuple[list[Answer], str | None]:
    """At most `limit` rules of the checker by id, and the cursor of the next page.

    Raises `BadCursor`.
    """
    rules = sorted(checker.rules(), key=lambda rule: str(rule["id"]))
    ids = [rule["id"] for rule in rules]
    if cursor is not None and cursor not in ids:
        raise BadCursor
    start = 0 if cursor is None else ids.index(cursor) + 1
    page = rules[start : start + limit]
    return page, page[-1]["id"] if page and page[-1] is not rules[-1] else None


def _judgement(findings: Iterable[Finding]) -> Answer:
    findings = list(findings)
    return {
        "findings": [finding.as_dict() for finding in findings],
        "summary": checker.summary(findings),
    }


def _resolved(findings: list[Finding], answers: Iterable[Mapping[str, Any]]) -> list[Finding]:
    errors: list[FieldError] = []
    for position, given in enumerate(answers):
        pointer, index = f"/answers/{position}", given["finding"]
        if index >= len(findings):
            detail = f"The check has {len(findings)} findings, counted from 0."
            errors.append(FieldError(f"{pointer}/finding", detail, given=index))
            continue
        try:
            findings[index] = checker.answer(findings[index], given["sense"])
        except InvalidInput as refused:
            errors += refused.under(pointer).errors
    if errors:
        raise InvalidInput(*errors)
    return findings


def _refuse_impossible(check_id: str) -> None:
    """What no id looks like is not asked for: a database may refuse the text itself."""
    if not (check_id.isascii() and check_id.isalnum()):
        raise NotFound(check_id)
