"""How requests are read: strict JSON bodies, and query parameters given at most once."""

from __future__ import annotations

from typing import Any, NoReturn

from flask import Request
from marshmallow import RAISE, Schema, ValidationError
from webargs.flaskparser import FlaskParser
from werkzeug.exceptions import BadRequest, LengthRequired, UnsupportedMediaType

from advisor.core.errors import FieldError, InvalidInput
from advisor.schemas.faults import echo, field_errors
from advisor.web import strict_json


def body_of(req: Request, *accepted: str) -> tuple[str, bytes]:
    """The media type, one of the accepted, and the bytes of a body in UTF-8.

    415 for another type, 411 without Content-Length (a chunked body past the limit would otherwise
    be cut silently), 413 past the limit.
    """
    charset = req.mimetype_params.get("charset", "utf-8").lower()
    if req.mimetype not in accepted or charset not in ("utf-8", "utf8"):
        choices = " or ".join(accepted)
        raise UnsupportedMediaType(f"The body has to be sent as {choices}, in UTF-8.")
    if req.content_length is None:
        raise LengthRequired("The request needs a Content-Length header.")
    return req.mimetype, req.get_data()


class StrictParser(FlaskParser):
    """Reads arguments for flask-smorest. What cannot be read is 4xx, never 5xx: what `body_of`
    refuses, 400 for malformed JSON, 422 for what the schema refuses.
    """

    DEFAULT_UNKNOWN_BY_LOCATION = {"json": RAISE, "query": RAISE}

    def load_json(self, req: Request, _: Schema) -> Any:
        """The parsed body."""
        try:
            return strict_json.parse(body_of(req, "application/json")[1])
        except strict_json.MalformedJson as error:
            raise BadRequest(str(error)) from None

    def load_querystring(self, req: Request, _: Schema) -> Any:
        """The query parameters, none of them repeated."""
        repeated = [name for name, values in req.args.lists() if len(values) > 1]
        if repeated:
            detail = "The parameter is given more than once."
            raise InvalidInput(*(FieldError(f"/{echo(name)}", detail) for name in repeated[:20]))
        return req.args.to_dict()

    def handle_error(self, error: ValidationError, *_: Any, **__: Any) -> NoReturn:
        """Tell the schema's faults by their pointers, the place they came from left out."""
        (messages,) = error.messages_dict.values()
        raise InvalidInput(*field_errors(ValidationError(messages))) from None
