"""docs/economics.md is asked: what it shows is what the service answers.

`python -m tests.web.test_economics_page` draws its pictures anew.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

import pytest
from flask.testing import FlaskClient

from advisor import plots
from advisor.charts.catalogue import OF_ECONOMICS, charts
from advisor.charts.chart import Chart
from advisor.store.migrate import upgrade
from tests.test_readme import close, shortened
from tests.web.fixtures import running_app

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "economics.md").read_text(encoding="utf-8")
SVG = "{http://www.w3.org/2000/svg}"
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


PICTURES = {"break_even_over_time": "break_even.svg", "self_host_vs_api": "self_host.svg"}
"""Charts that the page shows, each of the answer to one of its questions, by their files."""


def drawn(client: FlaskClient) -> dict[str, Chart]:
    """The chart of each picture: of several answers that have it, the last one."""
    answers = [
        client.post(route, data=question, content_type="application/json").get_json()
        for route, question, shown in CASES
        if "npv" in shown or "intervals" in shown
    ]
    made = [one for answer in answers for one in charts(answer, OF_ECONOMICS)]
    return {PICTURES[one.name]: one for one in made if one.name in PICTURES}


def test_the_pictures_show_what_is_answered(shared_client: FlaskClient):
    made = drawn(shared_client)
    assert set(made) == set(PICTURES.values())
    for name, chart in made.items():
        root = ElementTree.parse(DOCS / name).getroot()
        assert root.findtext(f"{SVG}desc") == chart.summary
        assert f"]({name})" in PAGE


def test_the_page_asks_more_than_a_few_questions():
    assert len(CASES) >= 8


def write() -> None:
    """Draw the pictures."""
    with TemporaryDirectory() as place:
        url = f"sqlite:///{place}/advisor.sqlite3"
        upgrade(url)
        for app in running_app(url):
            for name, chart in drawn(app.test_client()).items():
                (DOCS / name).write_bytes(plots.draw(chart, "svg"))


if __name__ == "__main__":
    write()
