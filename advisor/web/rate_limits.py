"""How many requests a client may send: counted by its key, or by its address without one."""

from __future__ import annotations

import math
import time
from typing import cast

from flask import Flask, Response, current_app, request
from flask_limiter import Limiter
from flask_limiter.errors import RateLimitExceeded
from werkzeug.middleware.proxy_fix import ProxyFix

from advisor.config import Settings
from advisor.web.authentication import client_name, needed_scope
from advisor.web.problems import problem

WINDOW_S = 60
STORAGE_WAIT_S = 0.2
"""Longest wait for the counts' own server; past it each process counts by itself for a while."""


def register(app: Flask, settings: Settings) -> None:
    """Limit the requests of each client of `app`, once `identify_clients` has told who it is."""
    if settings.trusted_proxies:
        app.wsgi_app = ProxyFix(  # type: ignore[method-assign]
            app.wsgi_app, x_for=settings.trusted_proxies, x_proto=0, x_host=0
        )
    if not settings.rate_limit_per_minute:
        return
    in_memory = settings.rate_limit_storage.startswith("memory:")
    wait = {} if in_memory else dict.fromkeys(
        ("socket_timeout", "socket_connect_timeout"), STORAGE_WAIT_S
    )  # fmt: skip
    limit = f"{settings.rate_limit_per_minute} per {WINDOW_S} second"
    limiter = Limiter(
        _client,
        app=app,
        application_limits=[limit],
        strategy="moving-window",
        storage_uri=settings.rate_limit_storage,
        storage_options=wait,  # type: ignore[arg-type]
        in_memory_fallback=[] if in_memory else [limit],
        key_prefix="advisor",
    )
    limiter.request_filter(_is_open)
    app.extensions["advisor-limiter"] = limiter
    app.after_request(_add_headers)
    app.register_error_handler(RateLimitExceeded, _exceeded)


def _client() -> str:
    name = client_name()
    return f"address {request.remote_addr}" if name is None else f"key {name}"


def _is_open() -> bool:
    """Probes and the docs are not counted."""
    return needed_scope() == "open"


def _add_headers(response: Response) -> Response:
    current = cast(Limiter, current_app.extensions["advisor-limiter"]).current_limit
    if current is not None:
        reset_s = min(WINDOW_S, max(1, math.ceil(current.reset_at - time.time())))
        response.headers["RateLimit-Policy"] = f"{current.limit.amount};w={WINDOW_S}"
        response.headers["RateLimit-Limit"] = str(current.limit.amount)
        response.headers["RateLimit-Remaining"] = str(max(0, current.remaining))
        response.headers["RateLimit-Reset"] = str(reset_s)
        if current.breached:
            response.headers["Retry-After"] = str(reset_s)
    return response


def _exceeded(error: RateLimitExceeded) -> Response:
    amount = error.limit.limit.amount
    detail = f"There were more than {amount} requests in {WINDOW_S} s. Try again later."
    return problem(429, detail)
