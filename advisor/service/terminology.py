"""Terminology checks: check a text and keep what was found, take answers to its questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import advisor
from advisor.core.errors import FieldError, InvalidInput
from advisor.core.terminology import findings as listed
from advisor.core.terminology.check import Checked, check_all
from advisor.core.terminology.evidence import evidence
from advisor.core.terminology.findings import MEMORY_BOUND, Finding
from advisor.core.terminology.vocabulary import Vocabulary
from advisor.documents.code import is_language
from advisor.documents.reading import Read
from advisor.documents.reading import read as read_document
from advisor.service import metrics, plans
from advisor.service.clock import now, rfc3339
from advisor.service.database import Database
from advisor.store import checks
from advisor.store.checks import StoredCheck
from advisor.store.ids import new_id, refuse_impossible
from advisor.store.paging import page_of_names

Answer = dict[str, Any]


def create(database: Database, vocabulary: Vocabulary, ask: Mapping[str, Any]) -> Answer:
    """Check a text, keep the result and answer it.

    `ask` is a loaded `CheckBody`. Raises InvalidInput for a language that nobody knows and a plan
    that is not there.
    """
    judged = checked(database, vocabulary, ask)
    check_id, moment = new_id(), now()
    answer: Answer = {"id": check_id, "created_at": rfc3339(moment)} | judged
    with database.writing() as session:
        checks.add(session, StoredCheck(check_id, moment, answer["inputs"], answer))
    for finding in answer["findings"]:
        metrics.findings_total.labels(finding["rule"], finding["status"]).inc()
    return answer


def checked(database: Database, vocabulary: Vocabulary, ask: Mapping[str, Any]) -> Answer:
    """The answer to a check that is not kept, and so has no id; raises as `create`."""
    inputs = dict(ask)
    figures = _figures(database, inputs["plan_id"])
    document = _document(inputs)
    found = check_all(inputs["text"], vocabulary, document.prose)
    return {
        **_judgement(_with_evidence(found.findings, figures)),
        "offset_unit": "code_point",
        "inputs": inputs,
        "assumptions": [],
        "warnings": _warnings(document, found),
        "planner_version": advisor.__version__,
    }


def read(database: Database, check_id: str) -> Answer:
    """The check of that id as it stands now. Raises `NotFound`."""
    refuse_impossible(check_id)
    with database.reading() as session:
        return checks.get(session, check_id).answer


def answer_findings(
    database: Database, check_id: str, answers: Sequence[Mapping[str, Any]]
) -> Answer:
    """Resolve findings of a check by `{"finding": index, "sense": ...}` and answer the whole check.

    All of the answers are taken or none. Raises `NotFound`, and InvalidInput for an index that does
    not exist, a finding that asks nothing and a sense that it does not offer.
    """
    refuse_impossible(check_id)
    with database.writing() as session:
        document = answered(checks.get(session, check_id, lock=True).answer, answers)
        checks.update_answer(session, check_id, document)
    return document


def answered(check: Answer, answers: Sequence[Mapping[str, Any]]) -> Answer:
    """A check with answers to its questions; InvalidInput as of `answer_findings`."""
    findings = [Finding.from_dict(finding) for finding in check["findings"]]
    return check | _judgement(_resolved(findings, answers))


def rules_page(
    vocabulary: Vocabulary, limit: int, cursor: str | None
) -> tuple[list[Answer], str | None]:
    """At most `limit` rules of the checker by id, and the cursor of the next page.

    Raises `BadCursor`.
    """
    ids, following = page_of_names(vocabulary.by_id, limit, cursor)
    return [vocabulary.by_id[each].as_dict() for each in ids], following


def _document(inputs: Mapping[str, Any]) -> Read:
    """The text as its format has it."""
    text, text_format, language = inputs["text"], inputs["format"], inputs["language"]
    if language is not None and text_format != "code":
        detail = "Only code has a language."
        raise InvalidInput(FieldError("/language", detail, given=language))
    if language is not None and not is_language(language):
        detail = f"Language {language!r} is not known."
        raise InvalidInput(FieldError("/language", detail, given=language))
    return read_document(text, text_format, language)


def _figures(database: Database, plan_id: str | None) -> Answer | None:
    return None if plan_id is None else evidence(plans.referred(database, plan_id))


def _with_evidence(findings: Iterable[Finding], figures: Answer | None) -> Iterable[Finding]:
    return (
        replace(each, evidence=figures) if figures and each.rule == MEMORY_BOUND else each
        for each in findings
    )  # fmt: skip


def _warnings(document: Read, checked: Checked) -> list[Answer]:
    warnings = []
    if document.coarse_because:
        detail = (
            f"{document.coarse_because} Its markup was read by lines alone: code and quotations "
            "may count as prose. Check it in parts."
        )
        warnings.append({"code": "read_coarsely", "detail": detail})
    if checked.unread_from is not None:
        detail = (
            "There are more terms than one check takes: what follows code point "
            f"{checked.unread_from} was not read. Check it in parts."
        )
        warnings.append({"code": "not_read_to_the_end", "detail": detail})
    return warnings


def _judgement(findings: Iterable[Finding]) -> Answer:
    findings = list(findings)
    return {
        "findings": [finding.as_dict() for finding in findings],
        "summary": listed.summary(findings),
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
            findings[index] = listed.answered(findings[index], given["sense"])
        except InvalidInput as refused:
            errors += refused.under(pointer).errors
    if errors:
        raise InvalidInput(*errors)
    return findings
