"""Who asks, by the API key in `Authorization: Bearer`, and whether they may."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar, cast

import structlog
from flask import Flask, current_app, g, request

from advisor.service.keys import Client, Keys

Scope = Literal["open", "read", "write", "admin"]
View = TypeVar("View", bound=Callable[..., Any])

REALM = 'Bearer realm="inference-advisor"'


class KeyMissing(Exception):
    """The request needs an API key; `given` tells that it came with one that does not work."""

    def __init__(self, *, given: bool) -> None:
        super().__init__()
        self.given = given


class ScopeTooSmall(Exception):
    """The request needs a key of a wider `scope`."""

    def __init__(self, scope: str) -> None:
        super().__init__(scope)
        self.scope = scope


def needing(scope: Scope, view: View) -> View:
    """Mark what a view needs; one without a mark needs `admin`."""
    view.needed_scope = scope  # type: ignore[attr-defined]
    return view


def open_to_all(view: View) -> View:
    """Mark a view that needs no key."""
    return needing("open", view)


def identify_clients(app: Flask, keys: Keys | None) -> None:
    """Learn who asks before each request of `app`. Without `keys`, everyone may do everything."""
    app.extensions["advisor-keys"] = keys
    app.before_request(_identify)


def authorise_clients(app: Flask) -> None:
    """Refuse what a request needs a key for and has none."""
    app.before_request(_authorise)


def client_name() -> str | None:
    """The name of the key that the present request came with."""
    return None if g.client is None else cast(Client, g.client).name


def needed_scope() -> Scope:
    """What the present request needs; what no view answers (404, 405) is open."""
    if request.method == "OPTIONS" or request.endpoint is None:
        return "open"
    view = current_app.view_functions[request.endpoint]
    return cast(Scope, getattr(view, "needed_scope", "admin"))


def _identify() -> None:
    g.client = None
    keys = current_app.extensions["advisor-keys"]
    given = request.authorization
    if keys is None or given is None or given.type != "bearer" or not given.token:
        return
    if needed_scope() == "open":
        # Keys are in the database: a probe that sends one must be answered while that is away.
        return
    g.client = cast(Keys, keys).client(given.token)
    if g.client is not None:
        structlog.contextvars.bind_contextvars(client=g.client.name)


def _authorise() -> None:
    scope = needed_scope()
    if scope == "open" or current_app.extensions["advisor-keys"] is None:
        return
    if g.client is None:
        raise KeyMissing(given=request.authorization is not None)
    if not g.client.may(scope):
        raise ScopeTooSmall(scope)
