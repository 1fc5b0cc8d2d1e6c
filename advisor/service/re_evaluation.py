"""Plans and allocations made again, once profiles or coefficients have changed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from advisor.service import plans
from advisor.service.database import Database

COMPARED = ("recommended", "reason")
MOST_DIFFERENCES = 200


def re_evaluate(database: Database, plan_id: str, load: plans.Loader) -> dict[str, Any]:
    """Make a plan again from its request, keep it, and say what is different.

    `load` reads a request as it was sent. Raises `NotFound`, and InvalidInput with pointers into
    that request where it cannot be answered any more.
    """
    stored = plans.read(database, plan_id)
    then = json.loads(stored.answer)
    now = json.loads(plans.create(database, load(stored.request)).answer)
    found = [each for name in COMPARED for each in differences(then[name], now[name], f"/{name}")]
    return beside(then, now, found) | {"differences": found[:MOST_DIFFERENCES]}


def beside(
    then: Mapping[str, Any], now: Mapping[str, Any], found: list[dict[str, Any]]
) -> dict[str, Any]:
    """Two answers to one request, what they were made with, and the differences found."""
    return {
        "then": _evaluation(then),
        "now": _evaluation(now),
        "same": not found,
        "profiles": _profiles(then, now),
        "differences": found,
    }


def _evaluation(answer: Mapping[str, Any]) -> dict[str, Any]:
    names = ("id", "created_at", "planner_version", "coefficients_version")
    return {name: answer.get(name) for name in names}


def _profiles(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[dict[str, Any]]:
    before = {each["pointer"]: each["version"] for each in then.get("profiles", ())}
    return [
        {
            "pointer": each["pointer"],
            "name": each["name"],
            "version_then": before.get(each["pointer"]),
            "version_now": each["version"],
        }
        for each in now["profiles"]
    ]


def differences(then: Any, now: Any, pointer: str) -> Iterator[dict[str, Any]]:
    """Where two JSON values differ, as far down as both have something."""
    if isinstance(then, dict) and isinstance(now, dict):
        for key in then | now:
            yield from differences(then.get(key), now.get(key), f"{pointer}/{key}")
    elif isinstance(then, list) and isinstance(now, list):
        longest = max(len(then), len(now))
        padded = (each + [None] * (longest - len(each)) for each in (then, now))
        for index, (before, after) in enumerate(zip(*padded, strict=True)):
            yield from differences(before, after, f"{pointer}/{index}")
    elif then != now:
        yield {"pointer": pointer, "then": then, "now": now}
