"""Traces of requests in CSV files, as public ones come."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from advisor.cli.faults import Refused
from advisor.core.trace import MOST_TRACED, Trace

COLUMNS = (
    ("sent_s", "input_tokens", "output_tokens"),
    ("TIMESTAMP", "ContextTokens", "GeneratedTokens"),  # Azure's LLM inference traces, 2023, 2024
    ("Timestamp", "Request tokens", "Response tokens"),  # BurstGPT
)
"""Names of the columns that hold the time, in seconds or as ISO 8601, and the tokens of a request.
Others are not read."""


def trace_in(path: str) -> dict[str, Any]:
    """The trace of a CSV file as a request takes it: in order of time, from 0 s on. Of a longer one
    than is taken, the busiest part, as is said on standard error; so it is of requests that have no
    answer or no prompt, which failed and are left out. Raises `Refused`."""
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            rows = list(_rows(path, file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise Refused(f"{path}: the file cannot be read: {error}") from None
    served = sorted(row for row in rows if row[1] and row[2])
    if len(served) < len(rows):
        click.echo(f"{path}: {len(rows) - len(served)} requests without tokens left out", err=True)
    if not served:
        raise Refused(f"{path}: there are no requests in it.")
    whole = Trace(*zip(*served, strict=True))
    part = whole.busiest(MOST_TRACED)
    start = part.sent_s[0]
    if len(part) < len(whole):
        after = start - whole.sent_s[0]
        click.echo(
            f"{path}: the busiest {len(part)} of {len(whole)} requests, from {after:g} s on, in "
            f"{part.duration_s:g} s",
            err=True,
        )
    return part.as_dict() | {"sent_s": [round(at - start, 6) for at in part.sent_s]}


def _rows(path: str, file: Any) -> Iterator[tuple[float, int, int]]:
    """Time [s], input and output tokens of each request."""
    reader = csv.DictReader(file)
    names = reader.fieldnames or []
    known = next((columns for columns in COLUMNS if set(columns) <= set(names)), None)
    if known is None:
        accepted = " or ".join(",".join(columns) for columns in COLUMNS)
        raise Refused(f"{path}: the columns are {','.join(names)}; they have to be {accepted}.")
    for row in reader:
        try:
            yield _row(row, known)
        except (AttributeError, ValueError):  # a short row has None
            given = ",".join(str(row[name]) for name in known)
            detail = f"{given!r} is not a time and two whole numbers of tokens."
            raise Refused(f"{path}: line {reader.line_num}: {detail}") from None


def _row(row: Mapping[str, str], columns: tuple[str, str, str]) -> tuple[float, int, int]:
    at, *tokens = (row[name].strip() for name in columns)
    inputs, outputs = (int(text) for text in tokens)
    if min(inputs, outputs) < 0:
        raise ValueError
    return _seconds(at), inputs, outputs


def _seconds(text: str) -> float:
    """A number of seconds, or an instant; where it says no offset, in UTC."""
    try:
        seconds = float(text)
    except ValueError:
        instant = datetime.fromisoformat(text)
        utc = instant if instant.tzinfo else datetime.fromisoformat(f"{text}+00:00")
        return utc.timestamp()
    if not -1e12 < seconds < 1e12:  # NaN too
        raise ValueError
    return seconds
