"""A chart as an answer: data, its table or a picture, by `Accept`."""

from __future__ import annotations

import csv
import io
from http import HTTPStatus

from flask import Response, request

from advisor import plots
from advisor.charts.chart import Chart, Table
from advisor.schemas.charts import MEDIA_TYPES
from advisor.web.answers import content_answer, held, json_answer
from advisor.web.problems import NotAcceptable
from advisor.web.security import STYLED_IMAGE

JSON = "application/json"
CSV, SVG, PNG = MEDIA_TYPES
PICTURES = {SVG: "svg", PNG: "png"}


def accepted() -> str:
    """The media type that the request likes best. Raises `NotAcceptable`."""
    drawn = list(PICTURES) if plots.available() else []
    offered = [JSON, CSV, *drawn]
    wanted = request.accept_mimetypes
    found = wanted.best_match(offered) if wanted else JSON
    if found is None:
        picture = not drawn and wanted.best_match(list(PICTURES)) is not None
        reason = "This service has no matplotlib to draw pictures with. " if picture else ""
        raise NotAcceptable(f"{reason}A chart is served as {' or '.join(offered)}.", offered)
    return found


def chart_answer(chart: Chart, media_type: str) -> Response:
    """The chart as one of the media types that `accepted` gives."""
    if media_type == JSON:
        answer = json_answer(chart.as_dict())
    elif media_type == CSV:
        answer = content_answer(_csv(chart.table), "text/csv; charset=utf-8")
    else:
        answer = _picture(chart, media_type)
    if media_type == SVG:
        answer.headers["Content-Security-Policy"] = STYLED_IMAGE
    answer.vary.add("Accept")
    return answer


def _picture(chart: Chart, media_type: str) -> Response:
    """The chart drawn, unless the client holds that very picture."""
    form = PICTURES[media_type]
    tag = plots.tag(chart, form)
    known = held(tag)
    if known is not None:
        return content_answer(b"", media_type, HTTPStatus.NOT_MODIFIED, etag=known)
    return content_answer(plots.draw(chart, form), media_type, etag=tag)


def _csv(table: Table) -> str:
    target = io.StringIO(newline="")
    csv.writer(target).writerows(table.lines())
    return target.getvalue()
