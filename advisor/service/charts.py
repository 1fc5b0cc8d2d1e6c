"""Charts of plans and of economic answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

from advisor.charts.catalogue import NEEDS_FIGURES, OF_A_PLAN, Maker, charts, why_not
from advisor.charts.chart import Chart
from advisor.core.errors import InvalidInput
from advisor.core.figures import PARTS, plan_figures
from advisor.service import plans
from advisor.service.database import Database
from advisor.service.errors import UnknownName
from advisor.service.plans import Loader
from advisor.store.errors import NotFound
from advisor.store.plans import StoredPlan


class NoChart(NotFound):
    """The answer has not what the chart `name` shows, for a reason in one sentence."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name)
        self.reason = reason


def of_question(database: Database, ask: Mapping[str, Any]) -> list[Chart]:
    """Every chart of the answer to a loaded plan request, which is not kept; raises as
    `plans.create`."""
    request, answer = plans.evaluate(database, ask)
    return charts(answer | {"figures": plan_figures(request, answer)}, OF_A_PLAN)


def of_plan(database: Database, plan_id: str, load: Loader) -> tuple[list[Chart], dict[str, str]]:
    """Every chart of a plan, and by the name of each other why there is none. Raises `NotFound`.

    `load` reads a request as it was sent.
    """
    stored = plans.read(database, plan_id)
    answer, reason = _with_figures(database, stored, load)
    found = {name: make(answer) for name, make in OF_A_PLAN.items()}
    missing = {
        name: _reason(name, answer, reason) for name, chart in found.items() if chart is None
    }
    return [chart for chart in found.values() if chart is not None], missing


def one_of_plan(database: Database, plan_id: str, name: str, load: Loader) -> Chart:
    """One chart of a plan. Raises `NotFound`, `UnknownName` with the nearest, and `NoChart`."""
    stored = plans.read(database, plan_id)
    if name not in OF_A_PLAN:
        raise UnknownName(name, OF_A_PLAN)
    answer, reason = json.loads(stored.answer), None
    if name in NEEDS_FIGURES:
        answer, reason = _with_figures(database, stored, load, NEEDS_FIGURES[name])
    chart = OF_A_PLAN[name](answer)
    if chart is None:
        raise NoChart(name, _reason(name, answer, reason))
    return chart


def one_of_economics(
    makers: Mapping[str, Maker], name: str, ask: Callable[[], Mapping[str, Any]]
) -> Chart:
    """One of the charts that `makers` make of what `ask` answers. Raises `UnknownName` with the
    nearest, `NoChart`, and what `ask` does."""
    if name not in makers:
        raise UnknownName(name, makers)
    answer = ask()
    chart = makers[name](answer)
    if chart is None:
        raise NoChart(name, why_not(name, answer))
    return chart


def _with_figures(
    database: Database, stored: StoredPlan, load: Loader, wanted: Collection[str] = tuple(PARTS)
) -> tuple[dict[str, Any], str | None]:
    """The plan's answer with the figures `wanted`, which it does not carry, or why they cannot be
    had."""
    answer: dict[str, Any] = json.loads(stored.answer)
    try:
        _, request = plans.asked(database, load(stored.request))
        return answer | {"figures": plan_figures(request, answer, wanted)}, None
    except InvalidInput as refused:
        return answer, f"The plan cannot be made any more as it was. {refused.errors[0].detail}"


def _reason(name: str, answer: Mapping[str, Any], not_made: str | None) -> str:
    return not_made if not_made is not None and name in NEEDS_FIGURES else why_not(name, answer)
