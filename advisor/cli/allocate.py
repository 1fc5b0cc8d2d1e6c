"""`advisor allocate`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO

import click
from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from advisor.allocation.allocate import Progress as Told
from advisor.allocation.program import PACKAGE, SolverMissing
from advisor.cli import ask
from advisor.cli.plan_report import ABSENT
from advisor.cli.tables import Figures, Indented, console, heading

Answer = Mapping[str, Any]


@click.command(no_args_is_help=True)
@click.option(
    "--request", "request_file", type=click.File("rb"), metavar="FILE|-", required=True,
    help="Demands and an inventory as JSON, as POST /v1/fleets/allocations takes them.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the answer as the API gives it.")
@click.pass_context
def allocate(ctx: click.Context, request_file: BinaryIO, as_json: bool) -> None:
    """Choose which devices of an inventory serve which of many demands.

    Exit status: 0 with an allocation, 1 without one, 2 for bad input.

    \b
    advisor allocate --request fleet.json
    """
    document = ask.parsed(request_file.read(), "--request")
    try:
        with _progress() as told:
            answer = ask.allocation(document, told)
    except SolverMissing:
        raise click.ClickException(f"It needs a solver: pip install '{PACKAGE}'.") from None
    if as_json:
        click.echo(json.dumps(answer, indent=2, allow_nan=False))
    else:
        console().print(Group(*_report(answer)))
    if answer["totals"] is None:
        ctx.exit(1)


@contextmanager
def _progress() -> Iterator[Told]:
    """A bar on standard error, where that is a terminal."""
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    terminal = Console(stderr=True)
    with Progress(
        *columns, console=terminal, transient=True, disable=not terminal.is_terminal
    ) as p:
        task = p.add_task("planning", total=None)

        def told(what: str, done: int, of: int) -> None:
            p.update(task, description=what, completed=done, total=of)

        yield told


def _report(answer: Answer) -> Iterator[RenderableType]:
    inputs = answer["inputs"]
    yield heading(
        f"{len(inputs['demands'])} demands on {len(inputs['inventory'])} entries of an inventory, "
        f"objective {answer['objective']}: {answer['status']}"
    )
    if answer["allocation"]:
        yield ""
        yield _pools(answer)
    yield ""
    yield from (Indented(line) for line in answer["explanation"])
    for each in answer["unserved"]:
        yield Indented(f"Not served: {each['demand']}. {each['detail']}")
    yield ""
    yield _inventory(answer)
    if answer["one_more"]:
        yield from _alternatives(answer)
    for title in ("warnings", "assumptions"):
        if answer[title]:
            yield ""
            yield heading(title.capitalize())
            yield from (Indented(each["detail"]) for each in answer[title])


def _pools(answer: Answer) -> Figures:
    rows = [
        (
            each["demand"], pool["inventory"], _layout(pool), str(pool["replicas"]),
            str(pool["accelerators"]), f"{pool['share_of_rate']:.0%}",
            _number(pool["load"]["utilization"]),
            _number(pool["latency"]["ttft_ms"]["p95"]), _number(pool["latency"]["tpot_ms"]["p95"]),
            pool["cost_per_hour"],
        )
        for each in answer["allocation"]
        for pool in each["pools"]
    ]  # fmt: skip
    headers = (
        "demand", "entry", "layout", "replicas", "devices", "of rate", "utilization",
        "TTFT p95 ms", "TPOT p95 ms", f"{answer['currency']}/h",
    )  # fmt: skip
    return Figures(headers, rows, texts=3)


def _layout(pool: Answer) -> str:
    degrees = {"TP": "tensor_parallel", "PP": "pipeline_parallel", "EP": "expert_parallel"}
    split = " ".join(
        f"{short}{pool[name]}" for short, name in degrees.items() if pool[name] > 1 or short == "TP"
    )
    return f"{split} {pool['precision']['weights']}"


def _inventory(answer: Answer) -> Figures:
    rows = [
        (
            each["name"], each["tenure"], str(each["accelerators_used"]),
            str(each["accelerators_free"]), each["cost_per_hour"], each["idle_cost_per_hour"],
        )
        for each in answer["inventory"]
    ]  # fmt: skip
    money = f"{answer['currency']}/h"
    headers = ("entry", "tenure", "used", "free", money, f"idle, {money}")
    return Figures(headers, rows, texts=2)


def _alternatives(answer: Answer) -> Iterator[RenderableType]:
    ways = [
        (f"one more {each['unit']} of {each['inventory']}", each) for each in answer["one_more"]
    ]
    ways += [(f"{each['hardware']} alone", each) for each in answer["single_hardware"]]
    rows = [
        (way, each["status"], _number(each["objective_value"]), _number(each["difference"]),
         ", ".join(each["unserved"]) or ABSENT)
        for way, each in ways
    ]  # fmt: skip
    headers = ("instead, with", "status", answer["measure"], "difference", "not served")
    yield ""
    yield Figures(headers, rows, texts=2)


def _number(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.4g}"
