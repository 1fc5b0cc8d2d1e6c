"""`/v1/imports` and `/v1/exports`: profiles as JSON Lines or CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any

from flask import Response, request
from marshmallow import ValidationError
from werkzeug.exceptions import BadRequest

from advisor.core.errors import FieldError, InvalidInput
from advisor.schemas import tables
from advisor.schemas.base import Closed
from advisor.schemas.bulk import RESULTS, ExportQuery, ImportAnswer, ImportQuery
from advisor.schemas.faults import field_errors
from advisor.schemas.hardware import HardwareProfileBody
from advisor.schemas.models import ModelProfileBody
from advisor.service import bulk
from advisor.service.bulk import Item, Outcome
from advisor.service.profiles import HARDWARE, MODELS, ProfileKind
from advisor.web import strict_json
from advisor.web.answers import database, json_answer
from advisor.web.authentication import client_name
from advisor.web.reading import body_of
from advisor.web.spec import Resource

JSON_LINES, CSV = "application/jsonl", "text/csv"
MOST_ITEMS = 250
MOST_ERRORS = 20
"""Faults of one item that are listed."""

blp = Resource("bulk", __name__, url_prefix="/v1", description="Many profiles at once.")


def _add_routes(kind: ProfileKind, noun: str, schema: type[Closed]) -> None:
    path = f"{noun.replace(' ', '-')}s"
    name = f"{noun.replace(' ', '_')}s"
    known = tables.columns(schema)

    @blp.route(f"/imports/{path}", methods=["POST"], endpoint=f"import_{name}")
    @blp.operation(
        f"import_{name}", f"Store many {noun}s", ImportAnswer, status=HTTPStatus.MULTI_STATUS,
        query=ImportQuery, content=(JSON_LINES, CSV),
    )  # fmt: skip
    def take_in(query: dict[str, Any]) -> Response:
        """One profile a line (JSON Lines) or a row (CSV), 250 at most, each with its own result.

        CSV has the column names of an export; an empty cell is a field left out.
        """
        media_type, body = body_of(request, JSON_LINES, CSV)
        documents = _rows(body, known) if media_type == CSV else _lines(body)
        outcomes = bulk.store_all(
            database(),
            kind,
            [_item(line, found, schema) for line, found in _bounded(documents)],
            replace=query["existing"] == "replace",
            all_or_nothing=query["all_or_nothing"],
            client=client_name(),
        )
        return json_answer(_shown(outcomes), HTTPStatus.MULTI_STATUS)

    @blp.route(f"/exports/{path}", endpoint=f"export_{name}")
    @blp.operation(
        f"export_{name}", f"Read all {noun}s", None, query=ExportQuery,
        texts=(JSON_LINES, CSV),
    )  # fmt: skip
    def give_out(query: dict[str, Any]) -> Response:
        """Sorted by name, each as the body that would make it; with `format=csv` as CSV."""
        profiles = bulk.exported(database(), kind)
        # The first is read before anything is sent, so that a database that is down is a 503.
        first = [next(profiles, None)]
        whole = (each for part in (first, profiles) for each in part if each is not None)
        as_csv = query["format"] == "csv"
        text = _csv(whole, known) if as_csv else (json.dumps(each) + "\n" for each in whole)
        answer = Response(text, content_type=CSV if as_csv else JSON_LINES)
        file_name = f"{path}.{query['format']}"
        answer.headers["Content-Disposition"] = f'attachment; filename="{file_name}"'
        return answer


def _bounded(documents: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
    for count, each in enumerate(documents):
        if count == MOST_ITEMS:
            detail = f"At most {MOST_ITEMS} profiles are taken at once."
            raise InvalidInput(FieldError("", detail, allowed={"maximum_items": MOST_ITEMS}))
        yield each


def _lines(body: bytes) -> Iterator[tuple[int, Any]]:
    """The number and the value, or the fault, of each line that is not blank."""
    for number, line in enumerate(body.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            yield number, strict_json.parse(line)
        except strict_json.MalformedJson as error:
            yield number, error


def _rows(body: bytes, known: tables.Columns) -> Iterator[tuple[int, Any]]:
    """The number of the last line and the document, or the fault, of each row."""
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadRequest(f"The body is not UTF-8 (byte {error.start}).") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(reader, [])
        if len(set(header)) != len(header) or not header:
            raise BadRequest("The first line has to name each column once.")
        for row in reader:
            if not row:
                continue
            if len(row) > len(header):
                detail = f"The row has {len(row)} cells, the first line {len(header)}."
                yield reader.line_num, strict_json.MalformedJson(detail)
                continue
            cells = dict(zip(header, row, strict=False))
            yield reader.line_num, tables.document(cells, known, _json)
    except csv.Error as error:
        raise BadRequest(f"The body is not CSV: {error} (line {reader.line_num}).") from None


def _json(cell: str) -> Any:
    return strict_json.parse(cell.encode("utf-8", "replace"))


def _item(line: int, found: Any, schema: type[Closed]) -> Item:
    if isinstance(found, strict_json.MalformedJson):
        return Item(line, None, [FieldError("", str(found))], "malformed")
    try:
        return Item(line, schema().load(found))
    except ValidationError as error:
        return Item(line, None, field_errors(error))


def _shown(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    items = [
        {
            "line": each.line,
            "result": each.result,
            "status": RESULTS[each.result],
            "name": each.name,
            "version": each.version,
            "errors": [error.as_dict() for error in each.errors[:MOST_ERRORS]],
        }
        for each in outcomes
    ]
    stored = sum(each.stored for each in outcomes)
    return {"items": items, "stored": stored, "refused": len(items) - stored}


def _csv(documents: Iterable[Mapping[str, Any]], known: tables.Columns) -> Iterator[str]:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    writer.writerow(known)
    for document in documents:
        writer.writerow(tables.row(document, known))
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


_add_routes(HARDWARE, "hardware profile", HardwareProfileBody)
_add_routes(MODELS, "model profile", ModelProfileBody)
