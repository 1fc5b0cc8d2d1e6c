"""Optimization techniques: the catalogue, and advice on a plan that is stored or given."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from advisor.core.comparison import in_short
from advisor.core.errors import FieldError, InvalidInput
from advisor.core.techniques.advice import advice
from advisor.core.techniques.catalogue import catalogue
from advisor.core.techniques.subject import Given
from advisor.service import plans
from advisor.service.database import Database
from advisor.service.errors import UnknownName
from advisor.service.lookup import resolve_model
from advisor.store.paging import page_of_names

Loader = Callable[[Mapping[str, Any]], Mapping[str, Any]]

_COMPARED = ("hardware", "replicas", "tensor_parallel", "pipeline_parallel", "expert_parallel")


def page(limit: int, cursor: str | None, family: str | None) -> tuple[list[dict[str, Any]], Any]:
    """At most `limit` techniques by name, and the cursor of the next page. Raises `BadCursor`."""
    known = {n: t for n, t in catalogue().items() if family is None or t.family == family}
    names, following = page_of_names(known, limit, cursor)
    return [known[name].as_dict() for name in names], following


def read(name: str) -> dict[str, Any]:
    """One technique. Raises `UnknownName`."""
    if name not in catalogue():
        raise UnknownName(name, catalogue())
    return catalogue()[name].as_dict()


def advise(database: Database, body: Mapping[str, Any], load: Loader) -> dict[str, Any]:
    """Advice on a plan; `body` is a loaded `AdviceBody`, `load` reads a stored request.

    InvalidInput for unknown names, and for a plan that cannot be made (any more).
    """
    stored = None if body["plan_id"] is None else plans.named(database, body["plan_id"])
    smaller = body["distilled_model"]
    given = Given(
        None if smaller is None else resolve_model(database, smaller, "/distilled_model"),
        body["speculative"],
        body["prefix_cache_hit"],
    )
    try:
        _, request = plans.asked(database, body["plan"] if stored is None else load(stored.request))
        answer = advice(request, given, body["techniques"], body["objective"])
    except InvalidInput as refused:
        raise refused.under("/plan") if stored is None else _gone(stored.id, refused) from None
    answer["inputs"]["plan_id"] = body["plan_id"]
    if stored is not None and answer["objective"] == request.objective:
        then = json.loads(stored.answer)["recommended"]
        answer["warnings"] += _changed(then, answer["before"])
    return answer


def _gone(plan_id: str, refused: InvalidInput) -> InvalidInput:
    detail = f"This plan cannot be made any more. {refused.errors[0].detail}"
    return InvalidInput(FieldError("/plan_id", detail, given=plan_id))


def _changed(then: dict[str, Any] | None, now: dict[str, Any] | None) -> list[dict[str, str]]:
    """A warning where the plan made anew is another than the one kept."""
    if then is None or now is None or all(then[k] == now["pools"][0][k] for k in _COMPARED):
        return []
    detail = (
        f"The plan that was kept, {in_short(then)}, is made anew as {in_short(now['pools'][0])}: "
        "its profiles, or how plans are computed and compared, are others."
    )
    return [{"code": "plan_made_anew", "detail": detail}]
