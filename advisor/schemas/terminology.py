"""Terminology checks: a text, what was found in it, and answers to the questions asked."""

from __future__ import annotations

from advisor.core.terminology.check import SENSES
from advisor.schemas.base import Answer, Closed
from advisor.schemas.common import AnyJson, MessageAnswer, page_of
from advisor.schemas.containers import ListOf, MapOf, Section
from advisor.schemas.fields import Choice, Text, Whole

LONGEST_TEXT = 100_000
FORMATS = ("plain",)
STATUSES = ("needs_answer", "resolved", "denied")


class CheckBody(Closed):
    """A text to check for ambiguous terms."""

    text = Text("The text.", LONGEST_TEXT, required=True)
    format = Choice("How the text is marked up.", FORMATS, load_default="plain")


class FindingReplyBody(Closed):
    """Which resource a finding means."""

    finding = Whole("Index in `findings`, from 0.", 0, LONGEST_TEXT, required=True)
    sense = Choice("What is meant.", SENSES, required=True)


class FindingRepliesBody(Closed):
    """Answers to the questions of a check; all are taken, or none."""

    answers = ListOf(Section(FindingReplyBody), fewest=1, most=1000, required=True)


class QuestionAnswer(Answer):
    """What to ask the author."""

    text = Text()
    options = ListOf(Choice("", SENSES))


class FindingAnswer(Answer):
    """One claim of a memory limit."""

    rule = Text("Id of the rule.")
    severity = Choice("`warning` when flagged.", ("warning", "info"))
    status = Choice("`needs_answer` is flagged; the others are listed.", STATUSES)
    match = Text("`text[start:end]`.")
    start = Whole("First code point, from 0.")
    end = Whole("Code point after the last.")
    line = Whole("From 1.")
    column = Whole("Code point in the line, from 1.")
    sense = Choice("What is meant, once resolved.", SENSES, allow_none=True)
    lean = Choice("What the text hints at while it is open.", SENSES, allow_none=True)
    cues = ListOf(MapOf(Text()), "Words that speak for a reading.")
    question = Section(QuestionAnswer, allow_none=True)
    if_bandwidth = Text("Advice if bandwidth is the limit.", allow_none=True)
    if_capacity = Text("Advice if capacity is the limit.", allow_none=True)
    advice = Text("Advice for the sense resolved.", allow_none=True)
    evidence = AnyJson("Figures of a plan that speak to the claim.")


class CheckSummaryAnswer(Answer):
    """Counts of findings."""

    claims = Whole()
    flagged = Whole()
    resolved = Whole()
    denied = Whole()


class CheckInputsAnswer(Answer):
    """The inputs, every default filled in."""

    text = Text()
    format = Choice("", FORMATS)


class CheckAnswer(Answer):
    """What was found in a text."""

    id = Text()
    created_at = Text("UTC, RFC 3339.")
    findings = ListOf(Section(FindingAnswer), "In the order of the text.")
    summary = Section(CheckSummaryAnswer)
    offset_unit = Choice("What `start`, `end` and `column` count.", ("code_point",))
    inputs = Section(CheckInputsAnswer)
    assumptions = ListOf(Section(MessageAnswer), "What the figures rest on.")
    warnings = ListOf(Section(MessageAnswer))
    planner_version = Text("Version of the service.")


class RuleAnswer(Answer):
    """One rule of the checker."""

    id = Text()
    description = Text()
    severity = Text()
    question = Section(QuestionAnswer)
    advice = MapOf(Text(), "Advice by sense.")


RulePage: type[Answer] = page_of(RuleAnswer, "RulePage")
