"""`advisor serve`: everything from an empty directory to a running service."""

from __future__ import annotations

import errno
import os
import socket
import sys

import click

from advisor.cli import ask
from advisor.cli.catalog import load
from advisor.cli.database import migrated
from advisor.cli.plan_report import summary
from advisor.cli.tables import console
from advisor.config import Settings

SAMPLE = {
    "model": "meta-llama-3.1-70b",
    "hardware": ["h100-sxm-80gb", "h200-sxm-141gb"],
    "workload": {"request_rate_per_s": 4, "input_tokens": 1000, "output_tokens": 250},
    "slo": {"ttft_p95_ms": 1000, "tpot_p95_ms": 50},
    "precision": {"weights": ["fp8"], "kv_cache": ["fp8"]},
}
"""A question whose answer shows at the start what the service is for."""

SAMPLE_ROWS = 4
MOST_PORT = 65_535
EVERY_ADDRESS = ("", "0.0.0.0", "::")  # noqa: S104 - recognised, not chosen


@click.command()
@click.option("--no-sample", is_flag=True, help="Leave the sample plan out.")
def serve(no_sample: bool) -> None:
    """Migrate the database, load the catalogue, show a sample plan, and serve.

    ADVISOR_HOST and ADVISOR_PORT say where; Ctrl-C ends it.
    """
    from advisor.web.explorer import is_served

    settings = Settings.from_environment()
    has_pages = is_served(settings.explorer)
    _require_free(settings.host, settings.port)
    with migrated(settings) as database:
        for line in load(database):
            click.echo(f"Catalogue, {line}")
    if not no_sample:
        output = console()
        output.print("", summary(ask.answer(SAMPLE), SAMPLE_ROWS), "", sep="\n")
    if settings.requires_keys:
        click.echo("Requests need an API key: advisor keys create NAME")
    address = f"http://{_reachable(settings.host)}:{settings.port}"
    if has_pages:
        click.echo(f"Explorer: {address}/explorer/")
    click.echo(f"Documentation: {address}/docs")
    sys.stdout.flush()
    # In place of this process, so that signals reach the server and nothing else stays in memory.
    server = [sys.executable, "-m", "gunicorn", "--config", "python:advisor.gunicorn_conf"]
    os.execv(sys.executable, server)  # noqa: S606 - no shell is wanted


def _require_free(host: str, port: int) -> None:
    """Refuse an address that the server could not listen on."""
    try:
        (family, *_, address), *_ = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM)
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            # As the server does: what remains of connections that have ended is no obstacle.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            other = port + 1 if port < MOST_PORT else port - 1
            reason = f"Port {port} of {host} is in use. Choose another: ADVISOR_PORT={other}"
        else:
            reason = f"ADVISOR_HOST={host} ADVISOR_PORT={port}: {error.strerror}."
        raise click.ClickException(reason) from None


def _reachable(host: str) -> str:
    """The host as this machine's browser reaches it."""
    if host in EVERY_ADDRESS:
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
