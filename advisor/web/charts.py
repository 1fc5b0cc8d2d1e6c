"""`/v1/plans/{plan_id}/charts`: a plan in pictures."""

from __future__ import annotations

from http import HTTPStatus

from flask import Response

from advisor.schemas.charts import MEDIA_TYPES, ChartAnswer, ChartsAnswer
from advisor.schemas.plans import loaded_plan
from advisor.service import charts
from advisor.web.answers import database, json_answer
from advisor.web.chart_answers import accepted, chart_answer
from advisor.web.spec import ETAG, IF_NONE_MATCH, Resource

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
    media_type = accepted()
    return chart_answer(charts.one_of_plan(database(), plan_id, name, loaded_plan), media_type)
