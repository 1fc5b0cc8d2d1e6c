"""Traces for OpenTelemetry, where a collector is named; the libraries are an extra.

A span for each request, part of the caller's trace where the request names one (`traceparent`), and
in it one for each statement of the database.
"""

from __future__ import annotations

import structlog
from flask import Flask

import advisor
from advisor.config import BadSetting
from advisor.service.database import Database

UNTRACED = "healthz,readyz,metrics"
"""Addresses that are asked all the time."""


def register(app: Flask, endpoint: str, database: Database) -> None:
    """Send the traces of `app` to the OTLP collector at `endpoint`; without one, make none.

    What the libraries read from variables named `OTEL_...` holds besides: sampling, headers.
    """
    if not endpoint:
        return
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.instrumentation.flask import FlaskInstrumentor
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        detail = "its libraries are missing: pip install 'inference-advisor[tracing]'"
        raise BadSetting("ADVISOR_TRACING_ENDPOINT", detail) from None

    name = {"service.name": "inference-advisor", "service.version": advisor.__version__}
    provider = TracerProvider(resource=Resource.create(name))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    FlaskInstrumentor().instrument_app(  # type: ignore[no-untyped-call]
        app, tracer_provider=provider, excluded_urls=UNTRACED
    )
    database.trace(provider)
    app.extensions["advisor-tracing"] = provider

    @app.before_request
    def name_trace_in_log() -> None:
        context = trace.get_current_span().get_span_context()
        if context.is_valid:
            structlog.contextvars.bind_contextvars(trace_id=f"{context.trace_id:032x}")
