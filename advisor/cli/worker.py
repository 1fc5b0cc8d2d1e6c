"""`advisor worker`."""

from __future__ import annotations

import asyncio
import logging

import click

from advisor.cli.database import opened
from advisor.config import Settings


@click.command()
def worker() -> None:
    """Answer the sweeps of a service on PostgreSQL, with one core, until it is told to end.

    Start as many as there are cores to spare, on any number of machines: each takes part in
    whatever sweeps ADVISOR_DATABASE_URL has. SIGTERM ends one after the chunk it is at, some
    seconds.
    """
    from prometheus_client import start_http_server

    from advisor.jobs.queue import Work
    from advisor.jobs.worker import Worker
    from advisor.schemas.sweeps import loaded_sweep
    from advisor.service import sweeps
    from advisor.service.sweep_work import Worker as SweepWorker
    from advisor.store.engine import libpq_url
    from advisor.web.observability import configure_logging

    settings = Settings.from_environment()
    try:
        conninfo = libpq_url(settings.database_url)
    except ValueError:
        detail = "Workers share a PostgreSQL database. On SQLite the service answers sweeps itself."
        raise click.ClickException(detail) from None
    configure_logging(settings.log_level)
    logging.basicConfig(handlers=[_IntoOurs(logging.WARNING)], force=True)
    if settings.worker_metrics_port:
        start_http_server(settings.worker_metrics_port, settings.host)
    with opened(settings) as database:
        work = Work(
            advance=SweepWorker(database, loaded_sweep).advance,
            untaken=lambda sweep_id: sweeps.untaken(database, sweep_id),
            open_sweeps=lambda: sweeps.open_sweeps(database),
        )
        asyncio.run(Worker(conninfo, work, database.is_ready).run())


class _IntoOurs(logging.Handler):
    """Writes what libraries log as lines of our own."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        import structlog

        structlog.get_logger(record.name).log(
            record.levelno, record.getMessage(), exc_info=record.exc_info
        )
