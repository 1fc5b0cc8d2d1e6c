"""One line of JSON per request, an id that ties them together, and Prometheus metrics."""

from __future__ import annotations

import logging
import os
import re
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import structlog
from flask import Flask, Response, g, request
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Histogram,
    generate_latest,
    multiprocess,
)
from prometheus_client import REGISTRY as PROCESS_REGISTRY
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from advisor.service import sweeps
from advisor.service.database import Database
from advisor.service.keys import without_keys
from advisor.store.errors import DatabaseUnavailable

REQUEST_ID = "X-Request-ID"
_ACCEPTED_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "PATCH")

log = structlog.get_logger("advisor.access")
requests_total = Counter(
    "advisor_requests_total", "Requests answered.", ["method", "route", "status"]
)
request_seconds = Histogram(
    "advisor_request_seconds", "Time from reading a request to its answer.", ["method", "route"]
)


def configure_logging(level: str) -> None:
    """Write JSON lines to standard output, from `level` upwards."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _json_without_keys,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level)),
        logger_factory=_standard_output,
        cache_logger_on_first_use=False,
    )


def _json_without_keys(*event: Any) -> str:
    # A client may have put its key where it does not belong, such as in a path.
    return without_keys(str(structlog.processors.JSONRenderer()(*event)))


def _standard_output(*_: object) -> structlog.WriteLogger:
    # Looked up for each logger: a test, or a supervisor, may have replaced the stream. A line is
    # written in one piece, so that those of several threads and workers do not mix.
    return structlog.WriteLogger(sys.stdout)


def register(app: Flask) -> None:
    """Number, time, count and log every request of `app`."""
    app.before_request(_begin)
    app.after_request(_end)


def metrics_text(database: Database) -> tuple[bytes, str]:
    """The metrics of this process, or of all workers when they share a directory, and those of the
    queue, which are missing while the database is away."""
    registry = PROCESS_REGISTRY
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry) + _queue_text(database), CONTENT_TYPE_LATEST


def _queue_text(database: Database) -> bytes:
    try:
        left, waited_s = sweeps.queue(database)
    except DatabaseUnavailable:
        return b""
    registry = CollectorRegistry()
    registry.register(_Queue(left, waited_s))
    return generate_latest(registry)


@dataclass(frozen=True)
class _Queue(Collector):
    """Figures of the database, which the files of workers must not hold: they are no counters."""

    left: int
    waited_s: float

    def collect(self) -> Iterator[Metric]:
        """The two gauges."""
        for name, doc, value in (
            ("items", "Questions of sweeps that wait for an answer.", self.left),
            ("age_seconds", "How long the oldest sweep has waited that nobody has begun.",
             self.waited_s),
        ):  # fmt: skip
            yield GaugeMetricFamily(f"advisor_sweep_queue_{name}", doc, value)


def _begin() -> None:
    g.began = time.perf_counter()
    given = request.headers.get(REQUEST_ID, "")
    g.request_id = given if _ACCEPTED_ID.fullmatch(given) else uuid.uuid4().hex
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(request_id=g.request_id)


def _end(response: Response) -> Response:
    seconds = time.perf_counter() - g.began
    route = request.url_rule.rule if request.url_rule else "unmatched"
    method = request.method if request.method in _METHODS else "other"
    requests_total.labels(method, route, response.status_code).inc()
    request_seconds.labels(method, route).observe(seconds)
    response.headers[REQUEST_ID] = g.request_id
    log.info(
        "request",
        method=method,
        route=route,
        path=request.path[:200],
        status=response.status_code,
        duration_ms=round(1000 * seconds, 2),
        bytes=response.calculate_content_length(),
    )
    return response
