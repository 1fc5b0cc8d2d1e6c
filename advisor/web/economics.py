"""`/v1/economics`."""

from __future__ import annotations

from flask import Response

from advisor.core.economics.break_even import BreakEvenInputs
from advisor.schemas.economics import BreakEvenAnswer, BreakEvenBody
from advisor.service import economics
from advisor.web import examples
from advisor.web.answers import json_answer
from advisor.web.spec import Resource

blp = Resource(
    "economics",
    __name__,
    url_prefix="/v1/economics",
    description="What a model costs and brings in.",
)


@blp.route("/break-even", methods=["POST"])
@blp.operation(
    "compute_break_even", "After how many calls does a model pay?", BreakEvenAnswer,
    body=BreakEvenBody, examples=examples.BREAK_EVEN,
)  # fmt: skip
def break_even(inputs: BreakEvenInputs) -> Response:
    """The founding condition: training cost <= price per call x calls; exact to the last digit."""
    return json_answer(economics.break_even(inputs))
