"""Successful answers: JSON with an ETag, and what changes need to know of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, TypeVar, cast

from flask import Response, current_app, request

from advisor.core.terminology.vocabulary import Vocabulary
from advisor.service.database import Database
from advisor.store.errors import StaleVersion
from advisor.web.compression import SUFFIX
from advisor.web.problems import PreconditionMissing

T = TypeVar("T")
READS = ("GET", "HEAD")


def database() -> Database:
    """The database of the application that serves this request."""
    return cast(Database, current_app.extensions["advisor-database"])


def vocabulary() -> Vocabulary:
    """The rules of the checker that the application was started with."""
    return cast(Vocabulary, current_app.extensions["advisor-vocabulary"])


def json_answer(
    content: Mapping[str, Any] | str,
    status: int = HTTPStatus.OK,
    *,
    etag: str | None = None,
    location: str | None = None,
) -> Response:
    """`content` (a document, or its text) as JSON.

    The ETag is the version given, else a digest of the text. A GET with a matching `If-None-Match`
    is answered 304.
    """
    text = content if isinstance(content, str) else json.dumps(content, allow_nan=False)
    return content_answer(text + "\n", "application/json", status, etag=etag, location=location)


def content_answer(
    content: str | bytes,
    content_type: str,
    status: int = HTTPStatus.OK,
    *,
    etag: str | None = None,
    location: str | None = None,
) -> Response:
    """An answer of any type, with an ETag as `json_answer` gives it."""
    response = Response(content, status, content_type=content_type)
    if etag is not None:
        response.set_etag(etag)
    else:
        response.add_etag()
    if location is not None:
        response.headers["Location"] = location
    if request.method in READS:
        response.make_conditional(request)
    return response


def held(etag: str) -> str | None:
    """The tag by which a GET's `If-None-Match` names the version `etag`, compressed or not; None
    where it does not."""
    if request.method not in READS:
        return None
    tags = request.if_none_match
    return next((each for each in (etag, etag + SUFFIX) if tags.contains_weak(each)), None)


def page_answer(
    items: Iterable[T], next_cursor: str | None, show: Callable[[T], Mapping[str, Any]]
) -> Response:
    """One page of a list."""
    return json_answer({"items": [show(item) for item in items], "next_cursor": next_cursor})


def expected_version(current: Callable[[], int]) -> int:
    """The version that the request's `If-Match` names; `current` is asked for `*` and for tags that
    no version has.

    Raises `PreconditionMissing` without the header, and `StaleVersion`.
    """
    if "If-Match" not in request.headers:
        raise PreconditionMissing
    if request.if_match.star_tag:
        return current()
    # An empty tag is read as None.
    tags = [tag.removesuffix(SUFFIX) for tag in request.if_match.as_set() if tag]
    versions = [int(tag) for tag in tags if re.fullmatch("[0-9]{1,9}", tag)]
    now = current() if len(versions) != 1 else versions[0]
    if now not in versions:
        raise StaleVersion(now)
    return now
