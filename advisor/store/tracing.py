"""Spans of statements, for OpenTelemetry (whose own module does not know SQLAlchemy 2.1)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine, event


def trace_statements(engine: Engine, provider: Any) -> None:
    """Let `provider` have a span of every statement of an engine, without the values in it."""
    from opentelemetry.trace import SpanKind, StatusCode

    tracer = provider.get_tracer("advisor.store")

    @event.listens_for(engine, "before_cursor_execute")
    def begin(
        _connection: Any, _cursor: Any, statement: str, _values: Any, context: Any, _many: bool
    ) -> None:
        attributes = {"db.system.name": engine.dialect.name, "db.query.text": statement}
        name = statement.split(maxsplit=1)[0]
        context.span = tracer.start_span(name, kind=SpanKind.CLIENT, attributes=attributes)

    @event.listens_for(engine, "after_cursor_execute")
    def end(
        _connection: Any, _cursor: Any, _statement: str, _values: Any, context: Any, _many: bool
    ) -> None:
        context.span.end()

    @event.listens_for(engine, "handle_error")
    def fail(failure: Any) -> None:
        span = getattr(failure.execution_context, "span", None)
        if span is not None:
            span.set_status(StatusCode.ERROR, type(failure.original_exception).__name__)
            span.end()
