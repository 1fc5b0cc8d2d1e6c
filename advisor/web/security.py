"""Headers that keep browsers from doing more with an answer than showing it, and allow the pages of
listed origins to read it."""

from __future__ import annotations

from flask import Flask, Response, request
from flask_cors import CORS
from werkzeug.exceptions import RequestURITooLarge

LONGEST_URI = 4096
NOTHING_ALLOWED = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
STYLED_IMAGE = NOTHING_ALLOWED + "; style-src 'unsafe-inline'"
"""Of an SVG, which carries its own styles and no script."""
REQUEST_HEADERS = (
    "Authorization", "Content-Type", "If-Match", "If-None-Match", "Idempotency-Key", "X-Request-ID",
)  # fmt: skip
ANSWER_HEADERS = (
    "ETag", "Location", "Idempotency-Replayed", "X-Request-ID", "Retry-After", "WWW-Authenticate",
    "RateLimit-Limit", "RateLimit-Policy", "RateLimit-Remaining", "RateLimit-Reset",
)  # fmt: skip
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE")
PREFLIGHT_S = 600
"""How long a browser remembers what a page may send."""


def register(app: Flask, origins: str) -> None:
    """Refuse overlong addresses, add the headers to every answer of `app`, and let pages of the
    `origins`, separated by commas, send requests and read the answers."""
    app.before_request(_refuse_overlong_uri)
    app.after_request(_add_headers)
    if origins:
        CORS(
            app, origins=origins.split(","), methods=METHODS, allow_headers=REQUEST_HEADERS,
            expose_headers=ANSWER_HEADERS, max_age=PREFLIGHT_S,
        )  # fmt: skip


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
