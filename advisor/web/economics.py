"""`/v1/economics`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from flask import Response

from advisor.charts.catalogue import OF_BREAK_EVEN, OF_SELF_HOST, OF_SENSITIVITY, Maker
from advisor.schemas.charts import MEDIA_TYPES, ChartAnswer
from advisor.schemas.economics.break_even import (
    BreakEvenAnswer,
    BreakEvenBody,
    SensitivityAnswer,
    SensitivityBody,
)
from advisor.schemas.economics.serving import (
    RequestPriceAnswer,
    RequestPriceBody,
    SelfHostAnswer,
    SelfHostBody,
    ServingCostAnswer,
    ServingCostBody,
)
from advisor.schemas.economics.training import (
    InferenceAwareSizeAnswer,
    InferenceAwareSizeBody,
    OwnershipAnswer,
    OwnershipBody,
    TrainingCostAnswer,
    TrainingCostBody,
)
from advisor.schemas.plans import loaded_plan
from advisor.service import charts
from advisor.service.economics import break_even as break_even_service
from advisor.service.economics import self_host, serving, training
from advisor.web import economics_examples as examples
from advisor.web.answers import database, json_answer
from advisor.web.chart_answers import accepted, chart_answer
from advisor.web.spec import Resource

CHART_ERRORS = (HTTPStatus.NOT_FOUND, HTTPStatus.NOT_ACCEPTABLE)

blp = Resource(
    "economics",
    __name__,
    url_prefix="/v1/economics",
    description="What a model costs and brings in.",
)


@blp.route("/break-even", methods=["POST"])
@blp.operation(
    "compute_break_even", "When does a model pay?", BreakEvenAnswer,
    body=BreakEvenBody, examples=examples.BREAK_EVEN, scope="read",
)  # fmt: skip
def break_even(body: dict[str, Any]) -> Response:
    """The founding condition, training cost <= price per call x calls, exact to the last digit;
    with serving cost, fees, fixed cost, growth, decline and discounting where they are given."""
    return json_answer(break_even_service.break_even(database(), body))


@blp.route("/break-even/charts/<name>", methods=["POST"])
@blp.operation(
    "draw_break_even", "Draw when a model pays", ChartAnswer, texts=MEDIA_TYPES,
    errors=CHART_ERRORS, body=BreakEvenBody, examples=examples.BREAK_EVEN, scope="read",
)  # fmt: skip
def break_even_chart(body: dict[str, Any], name: str) -> Response:
    """`break_even`, by calls sold, or `break_even_over_time`, by months. By `Accept`: as data, CSV,
    SVG or PNG, as the charts of a plan."""
    return _chart(OF_BREAK_EVEN, name, lambda: break_even_service.break_even(database(), body))


@blp.route("/sensitivity", methods=["POST"])
@blp.operation(
    "compute_sensitivity", "Which input of break-even matters most?", SensitivityAnswer,
    body=SensitivityBody, examples=examples.SENSITIVITY, scope="read",
)  # fmt: skip
def sensitivity(body: dict[str, Any]) -> Response:
    """Each input of a break-even question is lowered and raised, one at a time."""
    return json_answer(break_even_service.sensitivity(database(), body))


@blp.route("/sensitivity/charts/<name>", methods=["POST"])
@blp.operation(
    "draw_sensitivity", "Draw which input matters most", ChartAnswer, texts=MEDIA_TYPES,
    errors=CHART_ERRORS, body=SensitivityBody, examples=examples.SENSITIVITY, scope="read",
)  # fmt: skip
def sensitivity_chart(body: dict[str, Any], name: str) -> Response:
    """`tornado`: break-even with each input lowered and raised. By `Accept`, likewise."""
    return _chart(OF_SENSITIVITY, name, lambda: break_even_service.sensitivity(database(), body))


@blp.route("/request-price", methods=["POST"])
@blp.operation(
    "compute_request_price", "What does a request cost at token prices?", RequestPriceAnswer,
    body=RequestPriceBody, examples=examples.REQUEST_PRICE, scope="read",
)  # fmt: skip
def request_price(body: dict[str, Any]) -> Response:
    """Cached and reasoning tokens and a batch discount counted."""
    return json_answer(serving.price_of_request(body))


@blp.route("/serving-cost", methods=["POST"])
@blp.operation(
    "compute_serving_cost", "What does it cost to serve a token?", ServingCostAnswer,
    body=ServingCostBody, examples=examples.SERVING_COST, scope="read",
)  # fmt: skip
def serving_cost(body: dict[str, Any]) -> Response:
    """The bill of a plan, or of accelerators of one's own, over what they serve: utilization
    divides the tokens wherever idle hours are billed."""
    return json_answer(serving.cost_of_serving(database(), body))


@blp.route("/self-host-vs-api", methods=["POST"])
@blp.operation(
    "compare_self_host_with_api", "At which volumes is self-hosting cheaper?", SelfHostAnswer,
    body=SelfHostBody, examples=examples.SELF_HOST, scope="read",
)  # fmt: skip
def self_host_vs_api(body: dict[str, Any]) -> Response:
    """Replicas come whole, so there are intervals and not one threshold."""
    return json_answer(self_host.self_host_or_api(database(), body, loaded_plan))


@blp.route("/self-host-vs-api/charts/<name>", methods=["POST"])
@blp.operation(
    "draw_self_host_vs_api", "Draw at which volumes self-hosting is cheaper", ChartAnswer,
    texts=MEDIA_TYPES, errors=CHART_ERRORS, body=SelfHostBody, examples=examples.SELF_HOST,
    scope="read",
)  # fmt: skip
def self_host_chart(body: dict[str, Any], name: str) -> Response:
    """`self_host_vs_api`: both bills of a month by volume. By `Accept`, likewise."""
    return _chart(
        OF_SELF_HOST, name, lambda: self_host.self_host_or_api(database(), body, loaded_plan)
    )


@blp.route("/training-cost", methods=["POST"])
@blp.operation(
    "compute_training_cost", "What does training cost?", TrainingCostAnswer,
    body=TrainingCostBody, examples=examples.TRAINING_COST, scope="read",
)  # fmt: skip
def training_cost(body: dict[str, Any]) -> Response:
    """6 FLOP per active parameter and token, at a measured utilization or from known hours."""
    return json_answer(training.cost_of_training(database(), body))


@blp.route("/ownership", methods=["POST"])
@blp.operation(
    "compute_ownership", "What does an owned accelerator cost an hour?", OwnershipAnswer,
    body=OwnershipBody, examples=examples.OWNERSHIP, scope="read",
)  # fmt: skip
def ownership(body: dict[str, Any]) -> Response:
    """Capital and power, and the use from which owning is cheaper than renting."""
    return json_answer(training.cost_of_owning(body))


@blp.route("/inference-aware-size", methods=["POST"])
@blp.operation(
    "compute_inference_aware_size", "Which size is cheapest to train and serve?",
    InferenceAwareSizeAnswer, body=InferenceAwareSizeBody, examples=examples.SIZE, scope="read",
)  # fmt: skip
def inference_aware_size(body: dict[str, Any]) -> Response:
    """A smaller model, trained for longer, of the same quality."""
    return json_answer(training.cheapest_size(body))


def _chart(
    makers: Mapping[str, Maker], name: str, ask: Callable[[], Mapping[str, Any]]
) -> Response:
    media_type = accepted()
    return chart_answer(charts.one_of_economics(makers, name, ask), media_type)
