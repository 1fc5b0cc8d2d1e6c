"""The command line, `advisor`.

Flask, SQLAlchemy and gunicorn are imported inside the commands that need them, so that planning
starts fast and needs no database.
"""

from __future__ import annotations

import click

import advisor
from advisor.cli.allocate import allocate
from advisor.cli.calibrate import calibrate
from advisor.cli.catalog import catalog
from advisor.cli.database import db
from advisor.cli.faults import Commands
from advisor.cli.keys import keys
from advisor.cli.lint import lint
from advisor.cli.openapi import openapi
from advisor.cli.plan import plan
from advisor.cli.serve import serve
from advisor.cli.sweep import sweep
from advisor.cli.techniques import techniques
from advisor.cli.worker import worker


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(advisor.__version__, message="advisor %(version)s")
def main() -> None:
    """Plan the serving of large language models.

    Settings of the service and its database are environment variables named ADVISOR_...; planning
    needs neither.
    """


for command in (
    plan,
    allocate,
    sweep,
    techniques,
    serve,
    worker,
    catalog,
    db,
    keys,
    openapi,
    calibrate,
    lint,
):
    main.add_command(command)
