"""Headers that keep browsers from doing more with an answer than showing it."""

from __future__ import annotations

from flask import Flask, Response, request
from werkzeug.exceptions import RequestURITooLarge

LONGEST_URI = 4096
NOTHING_ALLOWED = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


def register(app: Flask) -> None:
    """Refuse overlong addresses, and add the headers to every answer of `app`."""
    app.before_request(_refuse_overlong_uri)
    app.after_request(_add_headers)


def _refuse_overlong_uri() -> None:
    if len(request.path) + len(request.query_string) > LONGEST_URI:
        raise RequestURITooLarge(f"The address is longer than {LONGEST_URI} characters.")


def _add_headers(response: Response) -> Response:
    headers = response.headers
    headers.setdefault("Content-Security-Policy", NOTHING_ALLOWED)
    headers.setdefault("Cache-Control", "no-cache")
    headers["X-Content-Type-Options"] = "nosniff"
    headers["Referrer-Policy"] = "no-referrer"
    headers["X-Frame-Options"] = "DENY"
    headers["Cross-Origin-Resource-Policy"] = "same-origin"
    return response
