"""`/v1/model-profiles`."""

from __future__ import annotations

from advisor.schemas.models import (
    ModelProfileAnswer,
    ModelProfileBody,
    ModelProfilePage,
    ModelProfileQuery,
)
from advisor.service.profiles import MODELS
from advisor.web import examples
from advisor.web.profiles import ProfileRoutes, add_routes
from advisor.web.spec import Resource

blp = Resource(
    "model profiles", __name__, url_prefix="/v1/model-profiles",
    description="Models by their shape, and what follows from it.",
)  # fmt: skip


add_routes(
    blp,
    ProfileRoutes(
        kind=MODELS,
        noun="model profile",
        body=ModelProfileBody,
        answer=ModelProfileAnswer,
        page=ModelProfilePage,
        query=ModelProfileQuery,
        filters=("family",),
        examples=examples.MODELS,
    ),
)
