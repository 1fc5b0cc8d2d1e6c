"""`/v1/hardware-profiles`."""

from __future__ import annotations

from advisor.schemas.hardware import (
    HardwareProfileAnswer,
    HardwareProfileBody,
    HardwareProfilePage,
    HardwareProfileQuery,
)
from advisor.service.profiles import HARDWARE
from advisor.web import examples
from advisor.web.profiles import ProfileRoutes, add_routes
from advisor.web.spec import Resource

blp = Resource(
    "hardware profiles", __name__, url_prefix="/v1/hardware-profiles",
    description="Accelerators, their memory, throughput, links and price.",
)  # fmt: skip


add_routes(
    blp,
    ProfileRoutes(
        kind=HARDWARE,
        noun="hardware profile",
        body=HardwareProfileBody,
        answer=HardwareProfileAnswer,
        page=HardwareProfilePage,
        query=HardwareProfileQuery,
        filters=("vendor",),
        examples=examples.HARDWARE,
    ),
)
