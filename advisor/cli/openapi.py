"""`advisor openapi`: the description of the API, as it lies in `openapi.yaml`."""

from __future__ import annotations

from difflib import unified_diff
from itertools import islice
from pathlib import Path

import click

from advisor.config import Settings

FILE = Path("openapi.yaml")
MOST_DIFFERENCES = 20


@click.command()
@click.option("--check", is_flag=True, help=f"Fail unless {FILE} here says the same.")
@click.option("--write", is_flag=True, help=f"Write it to {FILE} here.")
def openapi(check: bool, write: bool) -> None:
    """Print the OpenAPI document of the service as YAML."""
    if check and write:
        raise click.UsageError("--check and --write exclude each other.")
    from advisor.web.app import create_app
    from advisor.web.spec import spec_yaml

    text = spec_yaml(create_app(Settings()))
    if check:
        _compare(text)
    elif write:
        FILE.write_text(text, encoding="utf-8")
    else:
        click.echo(text, nl=False)


def _compare(text: str) -> None:
    written = FILE.read_text(encoding="utf-8") if FILE.is_file() else ""
    if written == text:
        return
    lines = unified_diff(
        written.splitlines(), text.splitlines(), str(FILE), "the service", "", "", 1, ""
    )
    click.echo("\n".join(islice(lines, MOST_DIFFERENCES)), err=True)
    raise click.ClickException(f"{FILE} is not what the service serves: advisor openapi --write")
