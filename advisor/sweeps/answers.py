"""From a question to its row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from advisor.core.errors import InvalidInput
from advisor.core.hardware import HardwareProfile
from advisor.core.model import ModelProfile
from advisor.core.plans import plan
from advisor.core.workload import PlanRequest
from advisor.sweeps.grid import Ask
from advisor.sweeps.rows import Row, answered, refused

Named = str | Mapping[str, Any]


def answer(
    item: int,
    ask: Ask,
    model: Callable[[Named], ModelProfile],
    hardware: Callable[[Named], HardwareProfile],
) -> Row:
    """The row of the question of number `item`; `model` and `hardware` find its profiles, by name
    or as they were brought along."""
    try:
        devices = [hardware(each) for each in ask["hardware"]]
        return answered(item, plan(PlanRequest.from_mapping(ask, model(ask["model"]), devices)))
    except InvalidInput as error:
        return refused(item, ask, error.errors[0].pointer, error.errors[0].detail)
