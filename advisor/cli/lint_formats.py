"""Findings of many files as lines, JSON, SARIF and annotations: severity stands in each."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

import advisor
from advisor.core.terminology.findings import NEEDS_ANSWER, Finding
from advisor.core.terminology.text import LINE_END
from advisor.core.terminology.vocabulary import Vocabulary

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {"warning": "warning", "info": "note"}
_COMMANDS = {"warning": "warning", "info": "notice"}


@dataclass(frozen=True)
class Report:
    """What was found in the files read, which were skipped, with the reason, and which of those
    could not be read."""

    findings: Sequence[tuple[str, Finding]]
    skipped: Mapping[str, str]
    vocabulary: Vocabulary
    unread: Collection[str]

    @property
    def flagged(self) -> list[tuple[str, Finding]]:
        """Those that need an answer."""
        return [each for each in self.findings if each[1].status == NEEDS_ANSWER]


def as_lines(report: Report) -> str:
    """One line each, `path:line:column: severity: question (rule)`, as compilers print."""
    return _lines(
        f"{path}:{found.line}:{found.column}: {found.severity}: {_question(found)} ({found.rule})"
        for path, found in report.flagged
    )


def as_json(report: Report) -> str:
    """Findings by file, resolved and denied ones too, and the files that were skipped."""
    by_file: dict[str, list[dict[str, Any]]] = {}
    for path, found in report.findings:
        by_file.setdefault(path, []).append(found.as_dict())
    document = {
        "files": by_file, "skipped": dict(report.skipped), "offset_unit": "code_point",
        "flagged": len(report.flagged),
    }  # fmt: skip
    return json.dumps(document, indent=2, ensure_ascii=False)


def as_github(report: Report) -> str:
    """Workflow commands that GitHub shows beside the lines."""
    return _lines(
        f"::{_COMMANDS[found.severity]} file={_property(path)},line={found.line},"
        f"col={found.column},{_annotated_end(found)},"
        f"title={_property(found.rule)}::{_data(_question(found))}"
        for path, found in report.flagged
    )


def _annotated_end(found: Finding) -> str:
    """GitHub takes columns within one line only."""
    line, column = _end(found)
    return f"endColumn={column}" if line == found.line else f"endLine={line}"


def as_sarif(report: Report) -> str:
    """SARIF 2.1.0. Columns and offsets count code points; skipped files are notifications, those
    that could not be read as errors."""
    rules = list(report.vocabulary.rules)
    index = {rule.id: number for number, rule in enumerate(rules)}
    run = {
        "tool": {
            "driver": {
                "name": "advisor lint",
                "version": advisor.__version__,
                "rules": [
                    {
                        "id": rule.id,
                        "fullDescription": {"text": rule.description},
                        "help": {"text": "\n".join(rule.advice.values())},
                        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
                    }
                    for rule in rules
                ],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": not report.unread,
                "toolExecutionNotifications": [
                    {
                        "level": "error" if path in report.unread else "note",
                        "message": {"text": f"Skipped: {reason}"},
                        "locations": [{"physicalLocation": {"artifactLocation": _artifact(path)}}],
                    }
                    for path, reason in report.skipped.items()
                ],
            }
        ],
        "results": [
            {
                "ruleId": found.rule,
                "ruleIndex": index[found.rule],
                "level": _LEVELS[found.severity],
                "message": {"text": _question(found)},
                "locations": [{"physicalLocation": _location(path, found)}],
            }
            for path, found in report.flagged
        ],
    }
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=2, ensure_ascii=False)


FORMATS: Mapping[str, Callable[[Report], str]] = {
    "lines": as_lines,
    "json": as_json,
    "sarif": as_sarif,
    "github": as_github,
}


def _location(path: str, found: Finding) -> dict[str, Any]:
    end_line, end_column = _end(found)
    region = {
        "startLine": found.line,
        "startColumn": found.column,
        "endLine": end_line,
        "endColumn": end_column,
        "charOffset": found.start,
        "charLength": found.end - found.start,
        "snippet": {"text": found.match},
    }
    return {"artifactLocation": _artifact(path), "region": region}


def _end(found: Finding) -> tuple[int, int]:
    """Line and column of the code point after the last: a term may run on in the next line."""
    *before, last = LINE_END.split(found.match)
    return found.line + len(before), len(last) + (1 if before else found.column)


def _artifact(path: str) -> dict[str, str]:
    """A URI of its own scheme where the path is absolute: a reference must not begin with "/"."""
    pure = PurePath(path)
    return {"uri": pure.as_uri() if pure.is_absolute() else quote(pure.as_posix())}


def _question(found: Finding) -> str:
    assert found.question is not None
    return " ".join(str(found.question["text"]).split())


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
