"""Terminology checks: a text, what was found in it, and answers to the questions asked."""

from __future__ import annotations

from advisor.schemas.base import Answer, Closed
from advisor.schemas.common import MessageAnswer, page_of
from advisor.schemas.containers import ListOf, MapOf, Section
from advisor.schemas.fields import Choice, Number, Text, Whole

LONGEST_TEXT = 1_000_000
FORMATS = ("plain", "markdown", "rst", "html", "code")
READINGS = ("bandwidth", "capacity", "both", "neither")
STATUSES = ("needs_answer", "resolved", "denied")


class CheckBody(Closed):
    """A text to check for ambiguous terms."""

    text = Text("The text.", LONGEST_TEXT, required=True)
    format = Choice(
        "How the text is marked up; code, quotes and addresses are left out. Of code, comments are "
        "read.",
        FORMATS, load_default="plain",
    )  # fmt: skip
    language = Text(
        "Language of code; guessed from its comments where it is null.", 50,
        load_default=None, allow_none=True,
    )  # fmt: skip
    plan_id = Text(
        "A plan whose figures are evidence for either reading of a claim of a memory limit.", 100,
        load_default=None, allow_none=True,
    )  # fmt: skip


class FindingReplyBody(Closed):
    """Which resource a finding means."""

    finding = Whole("Index in `findings`, from 0.", 0, LONGEST_TEXT, required=True)
    sense = Text("One of the options of its question.", 100, required=True)


class FindingRepliesBody(Closed):
    """Answers to the questions of a check; all are taken, or none."""

    answers = ListOf(Section(FindingReplyBody), fewest=1, most=1000, required=True)


class QuestionAnswer(Answer):
    """What to ask the author."""

    text = Text()
    options = ListOf(Text(), "What may be answered.")


class EvidenceAnswer(Answer):
    """Figures of a plan's recommended candidate."""

    plan_id = Text()
    memory_bandwidth_share = Number("Of decode time, spent on memory traffic.", allow_none=True)
    memory_capacity_used = Number("Share of memory filled.", allow_none=True)
    bandwidth = Text("What they say of the reading bandwidth.")
    capacity = Text("What they say of the reading capacity.")
    holds = Choice("The reading that they bear out.", READINGS, allow_none=True)


class FindingAnswer(Answer):
    """One use of a term that readers take in more than one way."""

    rule = Text("Id of the rule.")
    severity = Choice(
        "By what a wrong reading costs, when flagged: `warning` from a factor of 1.5 on.",
        ("warning", "info"),
    )  # fmt: skip
    status = Choice("`needs_answer` is flagged; the others are listed.", STATUSES)
    match = Text("`text[start:end]`.")
    start = Whole("First code point, from 0.")
    end = Whole("Code point after the last.")
    line = Whole("From 1.")
    column = Whole("Code point in the line, from 1.")
    sense = Text("What is meant, once resolved: one of the options.", allow_none=True)
    lean = Choice(
        "What the text hints at while it is open.", ("bandwidth", "capacity"), allow_none=True
    )  # fmt: skip
    cues = ListOf(MapOf(Text()), "Words that speak for a reading.")
    question = Section(QuestionAnswer, allow_none=True)
    readings = MapOf(Text(), "What each option would mean, while it is open.", allow_none=True)
    if_bandwidth = Text("Advice if bandwidth is the limit.", allow_none=True)
    if_capacity = Text("Advice if capacity is the limit.", allow_none=True)
    advice = Text("Advice for the sense resolved.", allow_none=True)
    evidence = Section(EvidenceAnswer, "Of the plan asked about.", allow_none=True)


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
    language = Text(allow_none=True)
    plan_id = Text(allow_none=True)


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
    severity = Text("Of its findings when flagged.")
    cost = Text("What a wrong reading costs.")
    question = Section(QuestionAnswer)
    advice = MapOf(Text(), "Advice by sense.")


RulePage: type[Answer] = page_of(RuleAnswer, "RulePage")
