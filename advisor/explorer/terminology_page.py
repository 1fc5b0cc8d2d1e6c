"""The page of terminology: a text with its claims underlined, and the question each asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dash import dcc, html

from advisor.explorer import fields, parts
from advisor.explorer.pages import Page, Question, Services, Shown
from advisor.explorer.requests import curl
from advisor.explorer.state import Values, is_answer
from advisor.schemas.faults import loaded
from advisor.schemas.terminology import CheckBody
from advisor.service import terminology

Finding = Mapping[str, Any]
STATES = {
    "needs_answer": "open question",
    "resolved": "resolved",
    "denied": "denied by the text",
}


def ask(services: Services, question: Question) -> Shown:
    """The text as it reads with the answers given."""
    body = loaded(CheckBody(), question.document)
    asked = terminology.checked(services.database, services.vocabulary, body)
    given = _answers(question.values, asked["findings"])
    check = asked
    if given:
        check = terminology.answered(asked, given)
    shown = [
        _text(body["text"], check["findings"]),
        *(_finding(number, before, after, given)
          for number, (before, after) in enumerate(
              zip(asked["findings"], check["findings"], strict=True))),
        *parts.messages("Warnings", check["warnings"], kind="warnings"),
    ]  # fmt: skip
    return Shown(_sentence(check["summary"]), shown, [_taken(services, question)])


def _answers(values: Values, findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """The answers in the form to questions that this text asks; those left from another text, or
    that its question does not offer, are none."""
    found = []
    for name, sense in values.items():
        number = int(name.partition("-")[2]) if is_answer(name) else len(findings)
        if number < len(findings):
            question = findings[number]["question"]
            if question is not None and sense in question["options"]:
                found.append({"finding": number, "sense": sense})
    return found


def _sentence(summary: Mapping[str, int]) -> str:
    if not summary["claims"]:
        return "Nothing in the text asks for another word."
    one = summary["flagged"] == 1
    return (
        f"{summary['claims']} found: {summary['flagged']} open question{'' if one else 's'}, "
        f"{summary['resolved']} resolved, {summary['denied']} denied."
    )


def _text(text: str, findings: Sequence[Finding]) -> html.Section:
    """The text, each finding underlined and linked to its question."""
    pieces: list[Any] = []
    end = 0
    for number, each in enumerate(findings):
        if each["start"] < end:  # within the one before
            continue
        pieces.append(text[end : each["start"]])
        mark = html.Mark(each["match"], className=each["status"])
        pieces.append(html.A(mark, href=f"#finding-{number}"))
        end = each["end"]
    return parts.panel("The text", html.Pre([*pieces, text[end:]], className="prose"))


def _finding(
    number: int, before: Finding, after: Finding, given: Sequence[Mapping[str, Any]]
) -> html.Section:
    title = f"“{before['match']}”, line {before['line']}: {STATES[after['status']]}"
    shown: list[Any] = []
    if before["question"] is not None and before["status"] == "needs_answer":
        shown.append(_choice(number, before, given))
    if after["advice"]:
        shown.append(html.P([html.Strong(f"{_word(after['sense'])}: "), after["advice"]]))
    if after["cues"]:
        cues = [f"“{c['name']}” speaks for {c['sense']}: {c['reason']}" for c in after["cues"]]
        shown.append(parts.folded("What in the text speaks for a reading", parts.bullets(cues)))
    shown += _evidence(after["evidence"])
    return html.Section(
        [html.H2(title), *shown], className=f"panel {after['status']}", id=f"finding-{number}"
    )


def _choice(number: int, finding: Finding, given: Sequence[Mapping[str, Any]]) -> html.Fieldset:
    """The question as a choice; each option says what it would change."""
    readings = finding["readings"] or {}
    question = finding["question"]
    options = [
        {"value": sense, "label": html.Span([html.Strong(_word(sense)), html.Br(),
                                             html.Span(readings.get(sense, ""), className="hint")])}
        for sense in question["options"]
    ]  # fmt: skip
    chosen = next((one["sense"] for one in given if one["finding"] == number), None)
    lean = [html.P(f"The text leans to {finding['lean']}.")] if finding["lean"] else []
    radio = dcc.RadioItems(options, chosen, id={"answer": str(number)}, className="choices tall")
    return html.Fieldset([html.Legend(question["text"]), *lean, radio])


def _evidence(evidence: Mapping[str, Any] | None) -> list[Any]:
    if evidence is None:
        return []
    said = [evidence["bandwidth"], evidence["capacity"]]
    if evidence["holds"] is not None:
        said.append(f"The plan bears out: {evidence['holds']}.")
    return [html.H3("What the plan says"), parts.bullets(said)]


def _taken(services: Services, question: Question) -> html.Section:
    address = f"{question.address}/v1/terminology/checks"
    text = curl(address, question.body, with_key=services.needs_key)
    return parts.copyable("As curl", text, name="check_request")


def _word(sense: str) -> str:
    return sense.replace("_", " ").capitalize()


PAGE = Page(
    "terminology", "Terminology",
    "Which claims in a text do readers take in more than one way, and what would each way change?",
    fields.TERMINOLOGY, ask,
)  # fmt: skip
