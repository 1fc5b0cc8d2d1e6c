"""`/v1/economics/.../charts`: what an economic question answers, in pictures."""

from __future__ import annotations

import csv
import json
import random
from typing import Any
from xml.etree import ElementTree

import pytest
from flask.testing import FlaskClient

from advisor.charts.catalogue import OF_BREAK_EVEN, OF_ECONOMICS, OF_SELF_HOST, OF_SENSITIVITY
from tests.contract.test_openapi import OPERATIONS, assert_described
from tests.web.bodies import POSTS, leaves, with_leaf
from tests.web.problems import only_error, problem
from tests.web.test_economics_extremes import BY_NAME, values

OPERATION = {"break-even": "draw_break_even", "self-host-vs-api": "draw_self_host_vs_api",
             "sensitivity": "draw_sensitivity"}  # fmt: skip
CHARTS = {"break-even": OF_BREAK_EVEN, "self-host-vs-api": OF_SELF_HOST,
          "sensitivity": OF_SENSITIVITY}  # fmt: skip
EACH = [(question, name) for question, makers in CHARTS.items() for name in makers]
each_chart = pytest.mark.parametrize(("question", "name"), EACH, ids=[name for _, name in EACH])
STEADY = {"training_cost": 5_000_000, "price_per_call": "0.01", "calls_per_month": 100_000_000}


def body(question: str) -> dict[str, Any]:
    more = {"calls_per_month": 152_187_500} if question == "break-even" else {}
    return POSTS[f"/v1/economics/{question}"] | more


def at(question: str, name: str) -> str:
    return f"/v1/economics/{question}/charts/{name}"


@each_chart
def test_a_chart_shows_what_the_question_answers(
    shared_client: FlaskClient, question: str, name: str
):
    answer = shared_client.post(f"/v1/economics/{question}", json=body(question)).get_json()
    expected = OF_ECONOMICS[name](answer)
    assert expected is not None
    shown = shared_client.post(at(question, name), json=body(question))
    assert_described(shown.get_json(), OPERATIONS[OPERATION[question]][2], 200)
    assert shown.get_json() == json.loads(json.dumps(expected.as_dict()))
    table = shared_client.post(
        at(question, name), json=body(question), headers={"Accept": "text/csv"}
    )
    head, *rows = csv.reader(table.text.splitlines())
    assert head == [column.name for column in expected.table.columns]
    assert len(rows) == len(expected.table.rows) > 0


@each_chart
def test_a_chart_is_drawn_as_accept_says(shared_client: FlaskClient, question: str, name: str):
    for accept, begin in (("image/svg+xml", b"<svg"), ("image/png", b"\x89PNG")):
        drawn = shared_client.post(
            at(question, name), json=body(question), headers={"Accept": accept}
        )
        assert (drawn.status_code, drawn.mimetype) == (200, accept)
        assert drawn.data.startswith(begin)
        assert "Accept" in drawn.vary


def test_another_form_is_a_406_that_names_those_there_are(shared_client: FlaskClient):
    refused = shared_client.post(
        at("break-even", "break_even"), json=STEADY, headers={"Accept": "text/html"}
    )
    (error,) = problem(refused, 406)["errors"]
    assert error["allowed"] == ["application/json", "text/csv", "image/svg+xml", "image/png"]


def test_an_unknown_chart_is_404_with_the_nearest(shared_client: FlaskClient):
    found = shared_client.post(at("break-even", "break_even_over_tim"), json=STEADY)
    assert only_error(found, "/name", status=404)["nearest"] == "break_even_over_time"
    problem(shared_client.post(at("break-even", "tornado"), json=STEADY), 404)


def test_what_the_answer_has_not_is_404_with_the_reason(shared_client: FlaskClient):
    alone = {key: value for key, value in STEADY.items() if key != "calls_per_month"}
    missing = shared_client.post(at("break-even", "break_even_over_time"), json=alone)
    assert "Without calls_per_month" in problem(missing, 404)["detail"]
    lost = STEADY | {"serving_cost_per_call": "0.5", "swing": 0.1}
    never = shared_client.post(at("sensitivity", "tornado"), json=lost)
    assert "gives a break-even" in problem(never, 404)["detail"]


def test_what_is_refused_is_refused_as_the_question_is(shared_client: FlaskClient):
    wrong = STEADY | {"price_per_call": "-1"}
    only_error(shared_client.post(at("break-even", "break_even"), json=wrong), "/price_per_call")


@pytest.mark.parametrize("seed", [*range(6), 80, 171])  # 80, 171: prices of 55 digits
@each_chart
def test_numbers_at_their_bounds_are_drawn_or_refused(
    shared_client: FlaskClient, question: str, name: str, seed: int
):
    draw, asked = random.Random(f"{name}{seed}"), body(question)
    paths = [path for path, _ in leaves(asked) if path[-1] in BY_NAME]
    for path in draw.sample(paths, draw.randint(1, len(paths))):
        asked = with_leaf(asked, path, draw.choice(values(str(path[-1]))))
    drawn = shared_client.post(at(question, name), json=asked, headers={"Accept": "image/svg+xml"})
    assert drawn.status_code in (200, 404, 422), (asked, drawn.text[:500])
    if drawn.status_code == 200:
        assert ElementTree.fromstring(drawn.text).tag.endswith("svg")
