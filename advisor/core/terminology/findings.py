"""What the checker answers: findings, and a finding answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from advisor.core.errors import FieldError, InvalidInput, nearest_name
from advisor.core.terminology.vocabulary import Rule

MEMORY_BOUND = "ambiguous-memory-bound"
NEEDS_ANSWER, RESOLVED, DENIED = "needs_answer", "resolved", "denied"
NOT_FLAGGED = "info"
"""Severity of what is listed and not flagged."""


@dataclass(frozen=True)
class Finding:
    """One use of an ambiguous term: `text[start:end] == match`, in code points.

    `status`: `needs_answer` (flagged; `question` is set, `lean` may hint), `resolved` (`sense` and
    `advice` are set) or `denied` (the text says that it is not so). `readings` says for each option
    that is still open what it would mean, `if_bandwidth` and `if_capacity` the same of a claim of a
    memory limit; `line` and `column` count from 1.
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
    readings: Mapping[str, str] | None
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


def asked(
    rule: Rule, text: str, start: int, end: int, position: tuple[int, int],
    lean: str | None = None, cues: tuple[Mapping[str, str], ...] = (),
) -> Finding:  # fmt: skip
    """The finding that `rule` asks about the words between two offsets."""
    match, advice = text[start:end], rule.advice
    of_memory = rule.id == MEMORY_BOUND
    return Finding(
        rule=rule.id,
        severity=rule.severity,
        status=NEEDS_ANSWER,
        match=match,
        start=start,
        end=end,
        line=position[0],
        column=position[1],
        sense=None,
        lean=lean,
        cues=cues,
        question=rule.asked(match),
        readings=dict(advice),
        if_bandwidth=advice["bandwidth"] if of_memory else None,
        if_capacity=advice["capacity"] if of_memory else None,
        advice=None,
    )


def denied(finding: Finding) -> Finding:
    """The finding as one that its text denies."""
    return _closed(finding, DENIED)


def resolved(finding: Finding, sense: str, advice: Mapping[str, str]) -> Finding:
    """The finding as one of that sense, with what `advice` says of it."""
    return replace(
        _closed(finding, RESOLVED),
        sense=sense,
        if_bandwidth=finding.if_bandwidth if sense in ("bandwidth", "both") else None,
        if_capacity=finding.if_capacity if sense in ("capacity", "both") else None,
        advice=advice[sense],
    )


def with_cue(finding: Finding, cue: Mapping[str, str]) -> Finding:
    """The finding with one more reason."""
    return replace(finding, cues=(*finding.cues, cue))


def answered(finding: Finding, sense: str) -> Finding:
    """`finding` resolved to `sense` by its author, with the advice for that reading.

    Raises `InvalidInput` for a sense that is none of the options (pointer `/sense`) or a finding
    that asks nothing (pointer `/finding`).
    """
    if finding.status != NEEDS_ANSWER or finding.readings is None:
        detail = f"The finding is {finding.status} and asks nothing."
        raise InvalidInput(FieldError("/finding", detail))
    if sense not in finding.readings:
        options = list(finding.readings)
        detail = "This is not one of the options."
        near = nearest_name(sense, options)
        raise InvalidInput(FieldError("/sense", detail, given=sense, allowed=options, nearest=near))
    return resolved(finding, sense, finding.readings)


def summary(findings: Iterable[Finding]) -> dict[str, int]:
    """How many claims there are, and how many of them are flagged, resolved and denied."""
    counts = Counter(finding.status for finding in findings)
    return {
        "claims": counts.total(),
        "flagged": counts[NEEDS_ANSWER],
        "resolved": counts[RESOLVED],
        "denied": counts[DENIED],
    }


def _closed(finding: Finding, status: str) -> Finding:
    """The finding with nothing left to ask: listed, not flagged."""
    return replace(
        finding,
        status=status,
        severity=NOT_FLAGGED,
        lean=None,
        question=None,
        readings=None,
        if_bandwidth=None,
        if_capacity=None,
    )
