from __future__ import annotations

import gzip
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from advisor.config import BadSetting
from advisor.service.keys import Keys
from tests.web.fixtures import running_app

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = f"00-{TRACE}-00f067aa0ba902b7-01"


@contextmanager
def collector() -> Iterator[tuple[str, list[Any]]]:
    """The address of an OTLP collector, and the spans that it has got."""
    spans: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            got = ExportTraceServiceRequest.FromString(body)
            spans.extend(s for r in got.resource_spans for c in r.scope_spans for s in c.spans)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1/traces", spans
        finally:
            server.shutdown()
            thread.join()


def test_a_request_is_a_span_of_its_callers_trace_with_its_statements_in_it(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
):
    with collector() as (endpoint, spans):
        settings = {"tracing_endpoint": endpoint, "authentication": "required"}
        for app in running_app(sqlite_url, **settings):
            key = Keys(app.extensions["advisor-database"], "").create("ci", "read")
            client = app.test_client()
            client.get("/healthz")
            headers = {"traceparent": CALLER, "Authorization": f"Bearer {key}"}
            assert client.get("/v1/plans?limit=3", headers=headers).status_code == 200
            app.extensions["advisor-tracing"].shutdown()
    ours = [each for each in spans if each.trace_id.hex() == TRACE]
    (request,) = [each for each in ours if each.parent_span_id.hex() == "00f067aa0ba902b7"]
    assert request.name == "GET /v1/plans"
    statements = [each for each in ours if each.parent_span_id == request.span_id]
    assert any("SELECT" in str(each.attributes) for each in statements)
    assert not any("healthz" in str(each) for each in spans)
    assert key not in str(spans)
    logged = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["trace_id"] for line in logged if line["path"] == "/v1/plans"] == [TRACE]


def test_without_a_collector_nothing_of_it_is_loaded(sqlite_url: str):
    for app in running_app(sqlite_url):
        assert "advisor-tracing" not in app.extensions


def test_a_collector_without_the_libraries_stops_the_start(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(BadSetting, match=r"ADVISOR_TRACING_ENDPOINT.*\[tracing\]"):
        next(running_app(sqlite_url, tracing_endpoint="http://127.0.0.1:1/v1/traces"))
