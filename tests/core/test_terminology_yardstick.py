"""The wording checker against 138 labelled sentences, rewritten from public uses of the phrase.

`label` is what one reader took each to mean; `ambiguous` ones are those to ask about. The floors
are what the checker reaches now, so that a change of its cues is seen to help or to hurt.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from advisor.core.terminology.check import Finding, check

CASES_FILE = Path(__file__).parent / "data" / "memory_bound_cases.jsonl"
CASES = [json.loads(line) for line in CASES_FILE.read_text("utf-8").splitlines()]
SWAPPED = {"bandwidth": "capacity", "capacity": "bandwidth"}


def is_flagged(case: dict[str, Any]) -> bool:
    return any(finding.status == "needs_answer" for finding in check(case["text"]))


def on_the_term(case: dict[str, Any]) -> list[Finding]:
    """The findings that overlap the labelled term, all of them where it has no position."""
    findings = check(case["text"])
    if case["start"] is None:
        return findings
    return [f for f in findings if f.start < case["end"] and f.end > case["start"]]


def test_flags_are_precise_and_miss_few_ambiguous_sentences() -> None:
    flagged = {case["id"] for case in CASES if is_flagged(case)}
    wanted = {case["id"] for case in CASES if case["label"] == "ambiguous"}
    assert len(CASES) == 138
    assert len(wanted) == 24
    precision = len(flagged & wanted) / len(flagged)
    recall = len(flagged & wanted) / len(wanted)
    assert precision >= 0.92, sorted(flagged - wanted)
    assert recall >= 0.95, sorted(wanted - flagged)


@pytest.mark.parametrize("label", ["bandwidth", "capacity"])
def test_bandwidth_and_capacity_are_never_swapped(label: str) -> None:
    senses = {
        case["id"]: {finding.sense for finding in on_the_term(case)}
        for case in CASES
        if case["label"] == label
    }
    assert [case for case, found in senses.items() if SWAPPED[label] in found] == []
    resolved = sum(label in found for found in senses.values())
    assert resolved >= {"bandwidth": 28, "capacity": 10}[label]


def test_every_match_is_the_text_between_its_offsets() -> None:
    for case in CASES:
        for finding in check(case["text"]):
            assert case["text"][finding.start : finding.end] == finding.match
