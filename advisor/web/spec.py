"""OpenAPI 3.1 from the code: fields describe themselves, operations are declared once."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from http import HTTPStatus
from typing import Any, cast

import yaml
from apispec.ext.marshmallow import MarshmallowPlugin
from apispec.ext.marshmallow.openapi import OpenAPIConverter
from flask import Flask
from flask_smorest import Api, Blueprint
from flask_smorest.utils import prepare_response
from marshmallow import Schema, missing

import advisor
from advisor.schemas.base import Answer, Closed
from advisor.schemas.common import NoQuery, ProblemAnswer
from advisor.schemas.fields import ApiField, JsonSchema
from advisor.web import problems
from advisor.web.authentication import Scope, needing
from advisor.web.idempotency import HEADER, LONGEST, PATTERN, REPLAYED, repeatable
from advisor.web.reading import StrictParser

DESCRIPTION = """\
Plans the serving of large language models: which accelerators, how many replicas, how split, and
what latency, throughput and cost follow.

Units stand in the names of fields. Money goes in as a decimal string or a JSON number and comes out
as a decimal string. Unknown fields and query parameters are refused. Errors are
`application/problem+json` (RFC 9457).

Where the service is told to require API keys, send one as `Authorization: Bearer`. A key of scope
`write` may also do what `read` may, and one of `admin` everything. Where requests are limited,
`RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset` (seconds) say how many are left.
"""
API_KEY = "api_key"
CLIENT_ERRORS = (
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.TOO_MANY_REQUESTS,
)
READ_ERRORS = (HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.SERVICE_UNAVAILABLE)
BODY_ERRORS = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.LENGTH_REQUIRED,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
)
ETAG = {"ETag": {"description": "Version of what was read.", "schema": {"type": "string"}}}
LOCATION = {"Location": {"description": "Path of the new item.", "schema": {"type": "string"}}}
IF_MATCH = {
    "in": "header",
    "name": "If-Match",
    "required": True,
    "description": "ETag of the version that is to be changed.",
    "schema": {"type": "string"},
    "example": '"1"',
}
IF_NONE_MATCH = {
    "in": "header",
    "name": "If-None-Match",
    "required": False,
    "description": "ETag already held: 304 when it is still the current one.",
    "schema": {"type": "string"},
}
IDEMPOTENCY_KEY = {
    "in": "header",
    "name": HEADER,
    "required": False,
    "description": "Any text of the client's own, so that the request may be sent again: it is "
    "done once, and the answer is given again. 422 with another request under the same key.",
    "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST, "pattern": PATTERN},
}
REPLAYED_HEADER = {
    REPLAYED: {
        "description": "`true`: the answer was given before, to the same request.",
        "schema": {"type": "string"},
    }
}


class Converter(OpenAPIConverter):
    """Schemas to JSON Schema 2020-12."""

    def field2property(self, field: Any) -> JsonSchema:
        """A field that describes itself, with its description, default and null."""
        if not isinstance(field, ApiField):
            raise TypeError(f"{type(field).__name__} cannot describe itself")
        schema = field.json_schema(self)
        if field.allow_none:
            schema = _nullable(schema)
        if "description" in field.metadata:
            schema["description"] = field.metadata["description"]
        default = field.load_default
        useful = default is not None or field.allow_none
        if default is not missing and not callable(default) and useful:
            schema["default"] = default
        return schema

    def schema2jsonschema(self, schema: Any) -> JsonSchema:
        """An object: closed when it is a request's, with every field required in an answer."""
        instance = schema() if isinstance(schema, type) else schema
        document: JsonSchema = {"description": _first_paragraph(type(instance))}
        document |= self.fields2jsonschema(instance.fields)  # type: ignore[no-untyped-call]
        if isinstance(instance, Closed):
            document["additionalProperties"] = False
            document |= instance.json_schema_rules
        elif isinstance(instance, Answer):
            document["required"] = sorted(
                field.data_key or name
                for name, field in instance.fields.items()
                if not field.metadata["optional"]
            )
        return document


class Plugin(MarshmallowPlugin):
    """The marshmallow plugin of apispec with our converter."""

    Converter = Converter


class ServiceApi(Api):
    """flask-smorest's API with our errors in place of its own."""

    DEFAULT_ERROR_RESPONSE_NAME = "AnyOtherError"

    def _register_error_handlers(self) -> None:
        """`advisor.web.problems` answers errors, for every route."""

    def _register_pagination_header(self) -> None:
        """Pages are described by our own schemas."""

    def _register_responses(self) -> None:
        described = [*problems.TITLES.values(), self.DEFAULT_ERROR_RESPONSE_NAME]
        for title in described:
            response = {"description": f"{title}.", "schema": ProblemAnswer}
            prepare_response(response, self.spec, problems.MEDIA_TYPE)
            self.spec.components.response(_component(title), response, lazy=True)


class Resource(Blueprint):
    """The routes of one resource."""

    ARGUMENTS_PARSER = StrictParser()

    def operation(
        self,
        operation_id: str,
        summary: str,
        answer: type[Schema] | None,
        *,
        status: int = HTTPStatus.OK,
        query: type[Closed] = NoQuery,
        body: type[Closed] | None = None,
        examples: Mapping[str, Any] | None = None,
        errors: tuple[HTTPStatus, ...] = (),
        headers: Mapping[str, Any] | None = None,
        parameters: tuple[Mapping[str, Any], ...] = (),
        texts: tuple[str, ...] = (),
        scope: Scope | None = None,
        sent_again: bool = False,
        content: tuple[str, ...] = (),
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Declare a view: what it takes is checked, what it answers is described.

        The view gets the loaded query (unless it takes none) and the loaded body, in that order,
        before its path parameters by name. The API key needs the `scope`: unless given, `write`
        for an operation with a body or a version to change, else `read`. One with a body and no
        version to change, or with `sent_again`, may be sent again under an `Idempotency-Key`; not
        one that also answers otherwise than in JSON, for only text is kept. `content`: media types
        of a body that the view reads itself; `texts`: of an answer that is no JSON.
        """
        has_body = body is not None or bool(content)
        changes = has_body or IF_MATCH in parameters
        posts = sent_again or (has_body and IF_MATCH not in parameters and not texts)
        if posts:
            parameters = (*parameters, IDEMPOTENCY_KEY)
            headers = {**(headers or {}), **REPLAYED_HEADER}
        needed: Scope = scope or ("write" if changes else "read")
        statuses = {
            *errors,
            *READ_ERRORS,
            *(BODY_ERRORS if has_body else ()),
            *(CLIENT_ERRORS if needed != "open" else ()),
        }

        def decorate(view: Callable[..., Any]) -> Callable[..., Any]:
            described: Any = self.response(status, answer, headers=headers)
            described = described(repeatable(view) if posts else view)
            if texts:
                found = {HTTPStatus(status): {"content": _text_content(texts)}}
                described = self.doc(responses=found)(described)
            for error in sorted(statuses):
                described = self.alt_response(error, _component(problems.title(error)))(described)
            if IF_NONE_MATCH in parameters:
                described = self.alt_response(HTTPStatus.NOT_MODIFIED)(described)
            described = self.doc(
                operationId=operation_id,
                summary=summary,
                description=inspect.getdoc(view),
                security=[{API_KEY: [needed]}] if needed != "open" else [],
            )(described)
            if content:
                taken = {"required": True, "content": _text_content(content)}
                described = self.doc(requestBody=taken)(described)
            if body is not None:
                described = self.arguments(body(), examples=_named(examples))(described)
            if query is not NoQuery:
                described = self.arguments(query(), location="query")(described)
            else:
                described = self.ARGUMENTS_PARSER.use_args(query(), location="query")(
                    _without_query(described)
                )
            if parameters:
                arguments = described._apidoc.setdefault("arguments", {})
                arguments.setdefault("parameters", []).extend(parameters)
            return needing(needed, cast("Callable[..., Any]", described))

        return decorate


def make_api(app: Flask) -> ServiceApi:
    """The API of `app`, to register resources with."""
    api = ServiceApi(
        app,
        spec_kwargs={
            "title": "Inference Advisor",
            "version": advisor.__version__,
            "openapi_version": "3.1.0",
            "marshmallow_plugin": Plugin(schema_name_resolver=_schema_name),
            "info": {"description": DESCRIPTION},
            "servers": [{"url": "/"}],
        },
    )
    api.spec.components.security_scheme(
        API_KEY,
        {
            "type": "http",
            "scheme": "bearer",
            "description": "An API key from `advisor keys create`; each operation names its scope.",
        },
    )
    return api


def spec_document(app: Flask) -> dict[str, Any]:
    """The OpenAPI document of `app`."""
    api = app.extensions["flask-smorest"]["apis"][""]["ext_obj"]
    # Through text: one object in two places would become a YAML alias.
    document: dict[str, Any] = json.loads(json.dumps(api.spec.to_dict()))
    return document


def spec_yaml(app: Flask) -> str:
    """The OpenAPI document as it lies in `openapi.yaml`."""
    return yaml.safe_dump(spec_document(app), sort_keys=False, allow_unicode=True, width=100)


def _component(title: str) -> str:
    return title.replace(" ", "")


def _schema_name(schema: Any) -> str:
    cls = schema if isinstance(schema, type) else type(schema)
    return cls.__name__.removesuffix("Body")


def _nullable(schema: JsonSchema) -> JsonSchema:
    if "anyOf" in schema:
        return schema | {"anyOf": [*schema["anyOf"], {"type": "null"}]}
    if "type" not in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    schema = schema | {"type": [schema["type"], "null"]}
    return schema | {"enum": [*schema["enum"], None]} if "enum" in schema else schema


def _first_paragraph(cls: type) -> str:
    paragraph = (inspect.getdoc(cls) or "").split("\n\n")[0]
    return " ".join(paragraph.split())


def _named(examples: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: {"value": value} for name, value in (examples or {}).items()}


def _text_content(media_types: Iterable[str]) -> dict[str, Any]:
    return {media_type: {"schema": {"type": "string"}} for media_type in media_types}


def _without_query(view: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(view)
    def wrapper(_query: object, *args: Any, **kwargs: Any) -> Any:
        return view(*args, **kwargs)

    return wrapper
