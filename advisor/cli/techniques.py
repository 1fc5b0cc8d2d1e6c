"""`advisor techniques`: the catalogue, and advice on a plan."""

from __future__ import annotations

import json
from typing import Any, BinaryIO

import click
from rich.console import Group

from advisor.cli import ask
from advisor.cli.tables import Figures, Indented, console, heading
from advisor.core.techniques.catalogue import FAMILIES, Technique, catalogue


@click.group(invoke_without_command=True)
@click.option(
    "--family", metavar="WORD", type=click.Choice(FAMILIES), help=f"{' or '.join(FAMILIES)}."
)
@click.option("--json", "as_json", is_flag=True, help="Print the list as the API gives it.")
@click.pass_context
def techniques(ctx: click.Context, family: str | None, as_json: bool) -> None:
    """List optimization techniques; `advice` tells which would help a plan."""
    if ctx.invoked_subcommand is not None:
        return
    found = [each for each in catalogue().values() if family in (None, each.family)]
    if as_json:
        click.echo(json.dumps({"items": [each.as_dict() for each in found]}, indent=2))
    else:
        console().print(Group(*(part for each in found for part in _shown(each))))


def _shown(each: Technique) -> list[Any]:
    return [
        heading(f"{each.name} ({each.family})"),
        Indented(each.changes),
        Indented(f"Price: {each.price}"),
        Indented(f"Helps: {each.helps}"),
        Indented(f"Hurts: {each.hurts}"),
    ]


@techniques.command()
@click.option(
    "--request", "request_file", type=click.File("rb"), metavar="FILE|-", required=True,
    help="A plan request as POST /v1/plans takes it, or a body of POST /v1/techniques/advice.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the answer as the API gives it.")
def advice(request_file: BinaryIO, as_json: bool) -> None:
    """Try every technique on a plan, and rank them by their effect on its objective.

    \b
    advisor techniques advice --request plan.json
    """
    document = ask.parsed(request_file.read(), "--request")
    if isinstance(document, dict) and not {"plan", "plan_id"} & document.keys():
        document = {"plan": document}
    answer = ask.advice(document)
    if as_json:
        click.echo(json.dumps(answer, indent=2, allow_nan=False))
        return
    console().print(Group(*_report(answer)))


def _report(answer: dict[str, Any]) -> list[Any]:
    applying = [each for each in answer["techniques"] if each["applies"]]
    others = [each for each in answer["techniques"] if not each["applies"]]
    rows = [
        (
            each["title"], ", ".join(f"{k} {v}" for k, v in each["setting"].items()),
            each["verdict"], _number(each["effect"]["value_before"]),
            _number(each["effect"]["value_after"]),
        )
        for each in applying
    ]  # fmt: skip
    headers = ("technique", "setting", "effect", f"{answer['measure']}, before", "after")
    parts: list[Any] = [Figures(headers, rows, texts=3), ""]
    parts += [Indented(each) for each in answer["explanation"]]
    parts += [Indented(each["text"]) for each in answer["combinations"]]
    parts += ["", heading("Do not apply")] if others else []
    parts += [Indented(each["text"]) for each in others]
    parts += ["", heading("Not computed")] if answer["not_computable"] else []
    return parts + [
        Indented(f"{catalogue()[each['technique']].title}: {each['detail']}")
        for each in answer["not_computable"]
    ]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.5g}"
