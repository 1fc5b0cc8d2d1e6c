"""`Idempotency-Key`: a POST that may be sent again without being done again."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import cast

from flask import Flask, Response, current_app, request
from werkzeug.exceptions import BadRequest

from advisor.service.idempotency import Claim, KeptAnswer, KeyClaimed, Once
from advisor.web.answers import database
from advisor.web.authentication import client_name

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
LONGEST = 255
PATTERN = f"^[\\x21-\\x7e]{{1,{LONGEST}}}$"
KEPT_HEADERS = ("Content-Type", "ETag", "Location")


def register(app: Flask, hours: int) -> None:
    """Keep the answers of `app` for so many hours."""
    app.extensions["advisor-idempotency"] = timedelta(hours=hours)


def repeatable(view: Callable[..., Response]) -> Callable[..., Response]:
    """A view that gives its first answer again to the same request under the same key.

    Errors are not kept: they have changed nothing.
    """

    @wraps(view)
    def wrapper(*args: object, **kwargs: object) -> Response:
        if HEADER not in request.headers:
            return view(*args, **kwargs)
        once = _once(request.headers[HEADER])
        kept = once.answered()
        if kept is not None:
            return _again(kept)
        try:
            with once.doing() as keep:
                response = view(*args, **kwargs)
                headers = {k: response.headers[k] for k in KEPT_HEADERS if k in response.headers}
                keep(response.status_code, headers, response.get_data(as_text=True))
        except KeyClaimed:
            return _again(once.first_answer())
        return response

    return wrapper


def _once(key: str) -> Once:
    if not re.fullmatch(PATTERN, key):
        raise BadRequest(f"{HEADER} has 1 to {LONGEST} printable ASCII characters, no spaces.")
    # The body was read as JSON before, and kept.
    asked = f"{request.method} {request.full_path}\n".encode() + request.get_data()
    claim = Claim(client_name() or "", key, hashlib.sha256(asked).hexdigest())
    lifetime = cast(timedelta, current_app.extensions["advisor-idempotency"])
    return Once(database(), claim, lifetime)


def _again(kept: KeptAnswer) -> Response:
    response = Response(kept.body, kept.status, kept.headers)
    response.headers[REPLAYED] = "true"
    return response
