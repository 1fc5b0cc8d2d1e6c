"""The check: finds ambiguous terms, resolves those that the text resolves, asks about the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from advisor.core.errors import FieldError, InvalidInput, unknown_choice
from advisor.core.terminology import senses
from advisor.core.terminology.data import table
from advisor.core.terminology.matching import Lines, Phrase, lowered, phrases, sentences
from advisor.core.terminology.scope import in_scope

RULE = "ambiguous-memory-bound"
SENSES = ("bandwidth", "capacity", "both", "other")
NEEDS_ANSWER, RESOLVED, DENIED = "needs_answer", "resolved", "denied"
NOT_FLAGGED = "info"
"""Severity of what is listed and not flagged."""


@dataclass(frozen=True)
class Finding:
    """One use of an ambiguous term: `text[start:end] == match`, in code points.

    `status`: `needs_answer` (flagged; `question` is set, `lean` may hint), `resolved` (`sense` and
    `advice` are set) or `denied` (the text says that it is not so). `if_bandwidth` and
    `if_capacity` advise for each reading that is still open; `line` and `column` count from 1.
    """

    rule: str
    severity: str
    status: str
    match: str
    start: int
    end: int
    line: int
    column: int
    sense: str | None
    lean: str | None
    cues: tuple[Mapping[str, str], ...]
    question: Mapping[str, Any] | None
    if_bandwidth: str | None
    if_capacity: str | None
    advice: str | None
    evidence: Mapping[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready; `Finding.from_dict` reads it back."""
        return vars(self) | {"cues": list(self.cues)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Finding:
        """The finding that `as_dict` wrote."""
        return cls(**{**fields, "cues": tuple(fields["cues"])})


def check(text: str) -> list[Finding]:
    """Every claim of a memory limit in plain `text`, in order. Time is linear in the text."""
    lower, lines, findings = lowered(text), Lines(text), []
    spans = list(sentences(lower))
    for index, span in enumerate(spans):
        if found := list(phrases(text, lower, span)):
            sentence = lower[span.start : span.end]
            last = min(index + 1, len(spans) - 1)
            around = lower[spans[max(index - 1, 0)].start : spans[last].end]
            cues = senses.cues_in(sentence)
            findings += [
                _judged(_asked(text, lines, use, cues), lower, use, cues)
                for use in in_scope(found, sentence, around)
            ]
    return findings


def summary(findings: Iterable[Finding]) -> dict[str, int]:
    """How many claims there are, and how many of them are flagged, resolved and denied."""
    counts = Counter(finding.status for finding in findings)
    return {
        "claims": counts.total(),
        "flagged": counts[NEEDS_ANSWER],
        "resolved": counts[RESOLVED],
        "denied": counts[DENIED],
    }


def answer(finding: Finding, sense: str) -> Finding:
    """`finding` resolved to `sense`, with the advice for that reading.

    Raises `InvalidInput` for a sense that is none of the options (pointer `/sense`) or a finding
    that asks nothing (pointer `/finding`).
    """
    if finding.status != NEEDS_ANSWER:
        detail = f"The finding is {finding.status} and asks nothing."
        raise InvalidInput(FieldError("/finding", detail, given=finding.match))
    if sense not in SENSES:
        raise InvalidInput(unknown_choice("/sense", sense, SENSES, "Sense"))
    return _resolved(finding, sense)


def rules() -> list[dict[str, Any]]:
    """The rules of the checker: `id`, `description`, `severity`, `question` and its `advice`."""
    return [
        {
            "id": rule,
            "description": data["description"],
            "severity": data["severity"],
            "question": _question(data, "memory-bound"),
            "advice": dict(data["advice"]),
        }
        for rule, data in table("rules.toml").items()
    ]


def _asked(text: str, lines: Lines, use: Phrase, cues: tuple[senses.Cue, ...]) -> Finding:
    """The finding for one use as if nothing resolved it."""
    rule = table("rules.toml")[RULE]
    line, column = lines.position(use.start)
    match = text[use.start : use.end]
    return Finding(
        rule=RULE,
        severity=rule["severity"],
        status=NEEDS_ANSWER,
        match=match,
        start=use.start,
        end=use.end,
        line=line,
        column=column,
        sense=None,
        lean=senses.lean_of(cues),
        cues=tuple(cue.as_dict() for cue in cues),
        question=_question(rule, match),
        if_bandwidth=rule["advice"]["bandwidth"],
        if_capacity=rule["advice"]["capacity"],
        advice=None,
    )


def _judged(finding: Finding, lower: str, use: Phrase, cues: tuple[senses.Cue, ...]) -> Finding:
    """The finding denied or resolved where its sentence does so, else as it is."""
    if senses.is_denied(lower, use.start):
        return _closed(finding, DENIED)
    named = senses.QUALIFIER_SENSES[use.qualifier] if use.qualifier else senses.sense_of(cues)
    return _resolved(finding, named) if named else finding


def _resolved(finding: Finding, sense: str) -> Finding:
    advice = table("rules.toml")[finding.rule]["advice"]
    return replace(
        _closed(finding, RESOLVED),
        sense=sense,
        if_bandwidth=advice["bandwidth"] if sense in ("bandwidth", "both") else None,
        if_capacity=advice["capacity"] if sense in ("capacity", "both") else None,
        advice=advice[sense],
    )


def _closed(finding: Finding, status: str) -> Finding:
    """The finding with nothing left to ask: listed, not flagged."""
    return replace(
        finding,
        status=status,
        severity=NOT_FLAGGED,
        lean=None,
        question=None,
        if_bandwidth=None,
        if_capacity=None,
    )


def _question(rule: Mapping[str, Any], match: str) -> dict[str, Any]:
    return {"text": rule["question"].replace("{match}", match), "options": list(rule["options"])}
