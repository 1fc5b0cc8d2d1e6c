"""`/v1/plans/{plan_id}/charts`: a plan in pictures."""

from __future__ import annotations

import csv
import io
from http import HTTPStatus

from flask import Response, request

from advisor import plots
from advisor.charts.chart import Chart, Table
from advisor.schemas.charts import MEDIA_TYPES, ChartAnswer, ChartsAnswer
from advisor.schemas.plans import loaded_plan
from advisor.service import charts
from advisor.web.answers import content_answer, database, held, json_answer
from advisor.web.problems import NotAcceptable
from advisor.web.security import STYLED_IMAGE
from advisor.web.spec import ETAG, IF_NONE_MATCH, Resource

JSON = "application/json"
CSV, SVG, PNG = MEDIA_TYPES
PICTURES = {SVG: "svg", PNG: "png"}

blp = Resource("charts", __name__, url_prefix="/v1/plans", description="Plans in pictures.")


@blp.route("/<plan_id>/charts")
@blp.operation(
    "list_charts", "List the charts of a plan", ChartsAnswer,
    headers=ETAG, errors=(HTTPStatus.NOT_FOUND,), parameters=(IF_NONE_MATCH,),
)  # fmt: skip
def list_all(plan_id: str) -> Response:
    """Each with a sentence that says what it shows; and which the plan has not, with the reason."""
    made, missing = charts.of_plan(database(), plan_id, loaded_plan)
    return json_answer(
        {
            "charts": [{n: getattr(one, n) for n in ("name", "title", "summary")} for one in made],
            "not_available": [{"name": n, "reason": reason} for n, reason in missing.items()],
        }
    )


@blp.route("/<plan_id>/charts/<name>")
@blp.operation(
    "get_chart", "Read a chart of a plan", ChartAnswer, texts=MEDIA_TYPES,
    headers=ETAG, errors=(HTTPStatus.NOT_FOUND, HTTPStatus.NOT_ACCEPTABLE),
    parameters=(IF_NONE_MATCH,),
)  # fmt: skip
def read(plan_id: str, name: str) -> Response:
    """By `Accept`: as data (JSON, unless another is asked for), its table as CSV, or drawn as SVG
    or PNG. Pictures need the extra `plots`; 406 names what there is."""
    media_type = _accepted()
    return _as(charts.one_of_plan(database(), plan_id, name, loaded_plan), media_type)


def _accepted() -> str:
    """The media type that the request likes best. Raises `NotAcceptable`."""
    drawn = list(PICTURES) if plots.available() else []
    offered = [JSON, CSV, *drawn]
    accepted = request.accept_mimetypes
    found = accepted.best_match(offered) if accepted else JSON
    if found is None:
        picture = not drawn and accepted.best_match(list(PICTURES)) is not None
        reason = "This service has no matplotlib to draw pictures with. " if picture else ""
        raise NotAcceptable(f"{reason}A chart is served as {' or '.join(offered)}.", offered)
    return found


def _as(chart: Chart, media_type: str) -> Response:
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
