"""Whether the service lives, whether it can work, and how it fares."""

from __future__ import annotations

from http import HTTPStatus

from flask import Response

import advisor
from advisor.schemas.service import LiveAnswer, ReadyAnswer
from advisor.web.answers import database, json_answer
from advisor.web.observability import metrics_text
from advisor.web.problems import problem
from advisor.web.spec import Resource

blp = Resource("service", __name__, description="The service itself.")


@blp.route("/healthz")
@blp.operation("get_health", "Is the process alive?", LiveAnswer, scope="open")
def health() -> Response:
    """Asks nothing of the database."""
    return json_answer({"status": "ok", "version": advisor.__version__})


@blp.route("/readyz")
@blp.operation("get_readiness", "Can the service work?", ReadyAnswer, scope="open")
def readiness() -> Response:
    """200 when the database answers and has been migrated, else 503."""
    if database().is_ready():
        return json_answer({"status": "ready"})
    detail = "The database lacks migrations of this version."
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, headers={"Retry-After": "5"})


@blp.route("/metrics")
@blp.operation("get_metrics", "Metrics for Prometheus", None, texts=("text/plain",), scope="open")
def metrics() -> Response:
    """Counts and durations of requests by route, and the queue of sweeps, in Prometheus' text
    format."""
    text, content_type = metrics_text(database())
    return Response(text, content_type=content_type)
