"""Every error as `application/problem+json` (RFC 9457), whatever route or library it comes from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any

import structlog
from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from advisor.allocation.program import PACKAGE, SolverMissing
from advisor.core.errors import FieldError, InvalidInput
from advisor.schemas.faults import MOST_FAULTS, echo
from advisor.service.bulk import NotAllStored
from advisor.service.charts import NoChart
from advisor.service.errors import UnknownName
from advisor.service.idempotency import KeyReused
from advisor.store.errors import (
    BadCursor,
    DatabaseUnavailable,
    NameTaken,
    NotFound,
    StaleVersion,
)
from advisor.sweeps import formats
from advisor.sweeps.formats import MissingParquet
from advisor.web.authentication import REALM, KeyMissing, ScopeTooSmall

MEDIA_TYPE = "application/problem+json"
TITLES = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    409: "Conflict",
    411: "Length Required",
    412: "Precondition Failed",
    413: "Content Too Large",
    414: "URI Too Long",
    415: "Unsupported Media Type",
    422: "Unprocessable Content",
    428: "Precondition Required",
    429: "Too Many Requests",
    500: "Internal Server Error",
    501: "Not Implemented",
    503: "Service Unavailable",
}
"""Errors the service answers, as RFC 9110 and 6585 call them. `http.HTTPStatus` has other names
for some of them in other versions of Python."""
RETRY_AFTER_S = 2

log = structlog.get_logger("advisor.web")


class PreconditionMissing(Exception):
    """A change of a profile came without `If-Match`."""


class NotAcceptable(Exception):
    """No media type that is `offered` is one that the request accepts; the first argument says
    so."""

    def __init__(self, detail: str, offered: Sequence[str]) -> None:
        super().__init__(detail)
        self.detail, self.offered = detail, list(offered)


def problem(
    status: int,
    detail: str,
    errors: Iterable[FieldError] = (),
    headers: dict[str, str] | None = None,
    **members: Any,
) -> Response:
    """The answer of an error. `members` are further members of the problem document."""
    document = {
        "type": "about:blank",
        "title": title(status),
        "status": status,
        "detail": detail,
        "instance": echo(request.path),
        "errors": [error.as_dict() for error in errors],
        **members,
    }
    # Escaped to ASCII: what is repeated from the request may hold lone surrogates.
    body = json.dumps(document, allow_nan=False, default=str) + "\n"
    response = Response(body, status, content_type=MEDIA_TYPE)
    response.headers["Cache-Control"] = "no-store"
    response.headers.update(headers or {})
    return response


def title(status: int) -> str:
    """What an error is called."""
    return TITLES.get(status) or HTTPStatus(status).phrase


def register(app: Flask) -> None:
    """Turn every error of `app` into a problem."""
    app.register_error_handler(HTTPException, _http)
    app.register_error_handler(InvalidInput, _invalid)
    app.register_error_handler(NotAllStored, _not_all_stored)
    app.register_error_handler(NoChart, _no_chart)
    app.register_error_handler(NotFound, _not_found)
    app.register_error_handler(NotAcceptable, _not_acceptable)
    app.register_error_handler(NameTaken, _taken)
    app.register_error_handler(StaleVersion, _stale)
    app.register_error_handler(PreconditionMissing, _missing)
    app.register_error_handler(KeyReused, _key_reused)
    app.register_error_handler(KeyMissing, _key_missing)
    app.register_error_handler(ScopeTooSmall, _scope_too_small)
    app.register_error_handler(BadCursor, _bad_cursor)
    app.register_error_handler(DatabaseUnavailable, _unavailable)
    app.register_error_handler(SolverMissing, _no_solver)
    app.register_error_handler(MissingParquet, _no_parquet)
    app.register_error_handler(Exception, _bug)


def _http(error: HTTPException) -> Response | HTTPException:
    if error.code is None or error.code < HTTPStatus.BAD_REQUEST:
        return error  # a redirect
    kept = {k: v for k, v in error.get_headers() if k.lower() != "content-type"}
    return problem(error.code, error.description or title(error.code), headers=kept)


def _invalid(error: InvalidInput) -> Response:
    count = len(error.errors)
    detail = (
        "One field cannot be accepted." if count == 1 else f"{count} fields cannot be accepted."
    )
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, error.errors)


def _not_all_stored(refused: NotAllStored) -> Response:
    """Nothing was stored; each fault stands under the index of its item."""
    errors = [
        replace(error.under(f"/{index}"), detail=f"Line {each.line}: {error.detail}")
        for index, each in enumerate(refused.outcomes)
        for error in each.errors
    ]
    detail = f"Nothing was stored: {len(errors)} faults."
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, errors[:MOST_FAULTS])


def _not_found(error: NotFound) -> Response:
    name = echo(error.name)
    detail = f"There is no {name!r} here."
    nearest = error.nearest if isinstance(error, UnknownName) else None
    if nearest is None:
        return problem(HTTPStatus.NOT_FOUND, detail)
    detail = f"{detail} Is {nearest!r} meant?"
    return problem(
        HTTPStatus.NOT_FOUND, detail, [FieldError("/name", detail, given=name, nearest=nearest)]
    )


def _no_chart(error: NoChart) -> Response:
    return problem(
        HTTPStatus.NOT_FOUND, f"There is no chart {error.name!r} of this. {error.reason}"
    )


def _not_acceptable(error: NotAcceptable) -> Response:
    given = echo(request.headers.get("Accept", ""))
    field = FieldError("/accept", error.detail, given=given, allowed=error.offered)
    return problem(HTTPStatus.NOT_ACCEPTABLE, error.detail, [field], {"Vary": "Accept"})


def _taken(error: NameTaken) -> Response:
    collection = request.path.removesuffix(f"/{(request.view_args or {}).get('name')}")
    item = f"{collection}/{error.name}"
    detail = f"The name {error.name!r} is taken by {item}."
    return problem(HTTPStatus.CONFLICT, detail, item=item)


def _stale(error: StaleVersion) -> Response:
    detail = f'The profile has changed: its ETag is now "{error.current_version}".'
    headers = {"ETag": f'"{error.current_version}"'}
    return problem(HTTPStatus.PRECONDITION_FAILED, detail, headers=headers)


def _missing(_: PreconditionMissing) -> Response:
    detail = "Send the ETag of the profile that you have read as If-Match."
    return problem(HTTPStatus.PRECONDITION_REQUIRED, detail)


def _key_reused(_: KeyReused) -> Response:
    detail = "This Idempotency-Key came with another request before. Take a new one."
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail)


def _key_missing(error: KeyMissing) -> Response:
    if error.given:
        detail, challenge = "This API key does not work.", f'{REALM}, error="invalid_token"'
    else:
        detail, challenge = "Send an API key: `Authorization: Bearer KEY`.", REALM
    return problem(HTTPStatus.UNAUTHORIZED, detail, headers={"WWW-Authenticate": challenge})


def _scope_too_small(error: ScopeTooSmall) -> Response:
    detail = f"This needs an API key of scope {error.scope!r}."
    challenge = f'{REALM}, error="insufficient_scope", scope="{error.scope}"'
    return problem(HTTPStatus.FORBIDDEN, detail, headers={"WWW-Authenticate": challenge})


def _bad_cursor(_: BadCursor) -> Response:
    error = FieldError("/cursor", "This is no next_cursor of this list.")
    return problem(HTTPStatus.BAD_REQUEST, "The cursor cannot be read.", [error])


def _unavailable(_: DatabaseUnavailable) -> Response:
    headers = {"Retry-After": str(RETRY_AFTER_S)}
    detail = "The database does not answer. Try again shortly."
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, headers=headers)


def _no_solver(_: SolverMissing) -> Response:
    detail = f"The solver is not installed here: pip install '{PACKAGE}'."
    return problem(HTTPStatus.NOT_IMPLEMENTED, detail)


def _no_parquet(_: MissingParquet) -> Response:
    detail = f"Parquet cannot be written here: pip install '{formats.PACKAGE}'."
    return problem(HTTPStatus.NOT_IMPLEMENTED, detail)


def _bug(error: Exception) -> Response:
    log.error("unexpected error", exc_info=error)
    context = structlog.contextvars.get_contextvars()
    detail = f"The service failed. The log has the reason under request {context['request_id']}."
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, detail)
