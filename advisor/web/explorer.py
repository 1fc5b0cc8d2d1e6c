"""`/explorer/`: the pages of `advisor.explorer`, under the rules of every other route.

The pages are an application of their own, made when somebody first asks for one, so a service on
whose pages nobody looks stays as small as it was. All that reaches it has gone through this module:
API keys, rate limits, the largest body, headers, logs and errors are those of the API.
"""

from __future__ import annotations

import importlib.util
from http import HTTPStatus
from io import BytesIO
from threading import Lock
from typing import Any, cast

from flask import Blueprint, Flask, Response, abort, current_app, redirect, request
from werkzeug.exceptions import BadRequest, HTTPException, NotFound
from werkzeug.wrappers import Response as AnyResponse

from advisor.config import BadSetting
from advisor.web import strict_json
from advisor.web.answers import database, vocabulary
from advisor.web.authentication import needing, open_to_all
from advisor.web.reading import body_of

ASKS = "_dash-update-component"
PAGE_POLICY = (
    "default-src 'none'; script-src 'self' {scripts}; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'none'"
)
"""Styles are not restricted to files: Dash and plotly write their own into the page."""

blp = Blueprint("explorer", __name__, url_prefix="/explorer")
_making = Lock()


def is_installed() -> bool:
    """Whether the libraries of the extra `explorer` are there."""
    return importlib.util.find_spec("dash") is not None


def is_served(wanted: str) -> bool:
    """Whether there are pages: `on`, `off`, or `auto`, where their libraries are installed.

    Raises BadSetting where they are to be on and the libraries are missing.
    """
    installed = is_installed()
    if wanted == "on" and not installed:
        detail = "its libraries are missing: pip install 'inference-advisor[explorer]'"
        raise BadSetting("ADVISOR_EXPLORER", detail)
    return wanted != "off" and installed


def register(app: Flask, wanted: str) -> None:
    """Serve the explorer with `app`, where `is_served`; raises as it does."""
    if is_served(wanted):
        app.extensions["advisor-explorer"] = None
        app.register_blueprint(blp)


@blp.route("")
@open_to_all
def without_slash() -> AnyResponse:
    """To the pages, by a relative address: Flask's own redirect goes to whatever host is named."""
    return redirect("explorer/")


@blp.route("/")
@blp.route("/<path:rest>")
@open_to_all
def show(rest: str = "") -> Response:
    """A page, or one of its scripts and styles. They say nothing but what is in the package."""
    if rest == ASKS:
        abort(405, response=None)
    response = _passed_on(rest, b"")
    if response.mimetype == "text/html":
        scripts = " ".join(_explorer().csp_hashes())
        response.headers["Content-Security-Policy"] = PAGE_POLICY.format(scripts=scripts)
    return response


@blp.route(f"/{ASKS}", methods=["POST"])
def ask() -> Response:
    """What a page asks for each change. It stores nothing, and computes what the API would."""
    return _passed_on(ASKS, body_of(request, "application/json")[1])


needing("read", ask)


def _explorer() -> Any:
    """The pages, made at the first call."""
    from advisor.explorer.app import make_explorer
    from advisor.explorer.pages import Services

    with _making:
        if current_app.extensions["advisor-explorer"] is None:
            needs_key = current_app.extensions["advisor-keys"] is not None
            services = Services(database(), vocabulary(), strict_json.parse, needs_key)
            current_app.extensions["advisor-explorer"] = make_explorer(services)
    return current_app.extensions["advisor-explorer"]


def _passed_on(rest: str, body: bytes) -> Response:
    """What the pages answer. Raises as every other route does, and BadRequest for what Dash cannot
    read."""
    from advisor.explorer.app import Failed

    inside = request.environ | {
        "SCRIPT_NAME": "/explorer", "PATH_INFO": f"/{rest}", "wsgi.input": BytesIO(body),
        "CONTENT_LENGTH": str(len(body)), "werkzeug.request": None,
    }  # fmt: skip
    try:
        found = Response.from_app(_explorer().server.wsgi_app, inside, buffered=True)
    except Failed as failed:
        raise failed.cause from None
    except HTTPException:
        raise
    except Exception:  # Dash raises whatever comes of an address or a body that is none of its own
        if request.method == "POST":
            raise BadRequest("This is no request of a page of the explorer.") from None
        raise NotFound from None
    if found.status_code >= HTTPStatus.BAD_REQUEST:
        abort(found.status_code)
    return cast(Response, found)
