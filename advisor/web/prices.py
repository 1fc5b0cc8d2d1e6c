"""`/v1/prices`."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from flask import Response

from advisor.schemas.common import PageQuery
from advisor.schemas.economics.prices import AcceleratorPricePage, ApiPricePage
from advisor.service.economics import price_lists
from advisor.web.answers import page_answer
from advisor.web.spec import ETAG, IF_NONE_MATCH, Resource

blp = Resource(
    "prices", __name__, url_prefix="/v1/prices",
    description="Dated prices that economic questions may name.",
)  # fmt: skip


@blp.route("/apis")
@blp.operation(
    "list_api_prices", "List API prices", ApiPricePage, query=PageQuery,
    headers=ETAG, errors=(HTTPStatus.BAD_REQUEST,), parameters=(IF_NONE_MATCH,),
)  # fmt: skip
def list_api_prices(query: dict[str, Any]) -> Response:
    """What APIs charge for open models, by name."""
    page = price_lists.api_price_page(query["limit"], query["cursor"])
    return page_answer(*page, show=dict)


@blp.route("/accelerators")
@blp.operation(
    "list_accelerator_prices", "List prices of accelerator-hours", AcceleratorPricePage,
    query=PageQuery, headers=ETAG, errors=(HTTPStatus.BAD_REQUEST,), parameters=(IF_NONE_MATCH,),
)  # fmt: skip
def list_accelerator_prices(query: dict[str, Any]) -> Response:
    """On demand, spot, reserved and managed, beside the offers in the hardware profiles."""
    page = price_lists.accelerator_price_page(query["limit"], query["cursor"])
    return page_answer(*page, show=dict)
