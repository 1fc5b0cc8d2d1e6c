"""Charts of a plan written to files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from advisor import plots
from advisor.charts.catalogue import NEEDS_FIGURES, OF_A_PLAN, why_not
from advisor.cli import ask
from advisor.cli.faults import Refused
from advisor.core.errors import FieldError, InvalidInput, unknown_choice

DEFAULT = "pareto"


def asked_for(path: str | None, name: str | None) -> str | None:
    """The name of the chart to write to `path`, None without one; checked before anything is
    computed.

    Raises InvalidInput for an unknown name, and another ending than those of the formats; and
    `Refused` without matplotlib.
    """
    if path is None:
        if name is not None:
            raise click.UsageError("--chart says what --plot writes: give --plot FILE too.")
        return None
    errors = []
    if name is not None and name not in OF_A_PLAN:
        errors.append(unknown_choice("--chart", name, OF_A_PLAN, "Chart"))
    if _form(path) not in plots.FORMATS:
        allowed = [f".{form}" for form in plots.FORMATS]
        detail = "The ending of the file says what to write."
        errors.append(FieldError("--plot", detail, given=path, allowed=allowed))
    if errors:
        raise InvalidInput(*errors)
    if not plots.available():
        raise Refused(str(plots.PlotsMissing()))
    return name or DEFAULT


def write(path: str, name: str, document: Any, answer: ask.Document) -> None:
    """Draw a chart of the answer to a request. Raises `Refused` where the answer has not what it
    shows, and ClickException where the file cannot be written."""
    if name in NEEDS_FIGURES:
        answer = answer | {"figures": ask.figures(document, answer, NEEDS_FIGURES[name])}
    chart = OF_A_PLAN[name](answer)
    if chart is None:
        raise Refused(f"--chart: There is no chart {name!r} of this plan. {why_not(name, answer)}")
    try:
        Path(path).write_bytes(plots.draw(chart, _form(path)))
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}.") from None


def _form(path: str) -> str:
    return Path(path).suffix.lower().removeprefix(".")
