"""The docs page and the OpenAPI document; every asset is served from here, none from outside."""

from __future__ import annotations

import json
from pathlib import Path

import flask_swagger_ui
from flask import Blueprint, Flask, Response, abort, current_app, redirect, send_from_directory
from werkzeug.wrappers import Response as AnyResponse

from advisor.web.answers import json_answer
from advisor.web.authentication import open_to_all
from advisor.web.spec import spec_document

OWN_ASSETS = Path(__file__).parent / "assets"
PAGE = OWN_ASSETS / "docs.html"
SWAGGER_UI = Path(flask_swagger_ui.__file__).parent / "dist"
ASSETS = {
    "start.js": OWN_ASSETS,
    "swagger-ui-bundle.js": SWAGGER_UI,
    "swagger-ui.css": SWAGGER_UI,
    "favicon-32x32.png": SWAGGER_UI,
}
ASSET_MAX_AGE_S = 3600
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
EXPLORER_MARK = "<!-- explorer -->"
EXPLORER_LINK = '<p><a href="explorer/">Explorer: ask without writing a request</a></p>'

blp = Blueprint("docs", __name__)


def register(app: Flask) -> None:
    """Serve the docs of `app`, whose operations are all registered by now."""
    app.extensions["advisor-openapi"] = json.dumps(spec_document(app))
    app.register_blueprint(blp)


@blp.route("/")
@open_to_all
def root() -> AnyResponse:
    """People who come without a path look for the docs."""
    return redirect("docs")


@blp.route("/openapi.json")
@open_to_all
def openapi() -> Response:
    """The OpenAPI document."""
    return json_answer(current_app.extensions["advisor-openapi"])


@blp.route("/docs")
@open_to_all
def page() -> Response:
    """The page that shows the operations and tries them."""
    headers = {"Content-Security-Policy": PAGE_POLICY}
    link = EXPLORER_LINK if "explorer" in current_app.blueprints else ""
    text = PAGE.read_text("utf-8").replace(EXPLORER_MARK, link)
    return Response(text, headers=headers, mimetype="text/html")


@blp.route("/docs/assets/<filename>")
@open_to_all
def asset(filename: str) -> Response:
    """A script or style of the page."""
    if filename not in ASSETS:
        abort(404)
    return send_from_directory(ASSETS[filename], filename, max_age=ASSET_MAX_AGE_S)
