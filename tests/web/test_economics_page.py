"""docs/economics.md is asked: what it shows is what the service answers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.test_readme import close, shortened

PAGE = (Path(__file__).parents[2] / "docs" / "economics.md").read_text(encoding="utf-8")
_PARTS = re.compile(r"`POST (/v1/\S+)`:|^```json\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def cases() -> list[tuple[str, str, dict[str, Any]]]:
    """Each question of the page with the route named last before it, and the answer shown."""
    found, route, blocks = [], "", []
    for part in _PARTS.finditer(PAGE):
        route = part[1] or route
        blocks += [part[2]] if part[2] else []
        if len(blocks) == 2:
            found.append((route, blocks[0], json.loads(blocks[1])))
            blocks = []
    assert not blocks
    return found


CASES = cases()


@pytest.mark.parametrize(
    "case", CASES, ids=[f"{n}-{route[14:]}" for n, (route, *_) in enumerate(CASES)]
)
def test_what_the_page_shows_is_what_is_answered(shared_client: FlaskClient, case: Any):
    route, question, shown = case
    response = shared_client.post(route, data=question, content_type="application/json")
    assert response.status_code == 200, response.get_data(as_text=True)
    answer = shortened(response.get_json(), shown)
    assert close(shown, answer), answer


def test_the_picture_shows_the_moments_that_are_answered():
    # It is drawn by docs/economics_plot.py, which needs a library that tests do not have.
    picture = (Path(__file__).parents[2] / "docs" / "economics.svg").read_text(encoding="utf-8")
    shown = {f"{answer['months']:.1f} months" for *_, answer in CASES if "npv" in answer}
    steady = {f"{answer['months']:.1f} months" for *_, answer in CASES if "whole_months" in answer}
    assert len(shown | steady) == 2
    assert shown | steady <= set(re.findall(r">([0-9.]+ months)<", picture))


def test_the_page_asks_more_than_a_few_questions():
    assert len(CASES) >= 8
