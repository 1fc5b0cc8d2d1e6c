from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.web.bodies import BODIES, POSTS, Path, leaves, pointer, with_leaf
from tests.web.problems import problem
from tests.web.test_strict_json import REFUSED

NUMBERS = [
    (of, path)
    for of, (_, body) in BODIES.items()
    for path, value in leaves(body)
    if isinstance(value, int | float) and not isinstance(value, bool)
]
TEXTS = [
    (of, path)
    for of, (_, body) in BODIES.items()
    for path, value in leaves(body)
    if isinstance(value, str)
]
OUTSIDE = ["1e308", "-1e308", "5e-324", "-0.0", "0", "-1", "1e-400", "9" * 300, "0.5", "1e15"]
NOT_NUMBERS = ["true", "false", '"7"', '"1e5"', '"NaN"', "[]", "{}", '""']
DECIMALS = {"training_cost", "price_per_call", "serving_cost_per_call"}


def name(case: tuple[str, Path]) -> str:
    return case[0].rsplit("/", 1)[1] + pointer(case[1])


def send(client: FlaskClient, of: str, path: Path, literal: str) -> Any:
    """Post a body with a JSON literal in one place."""
    route, whole = BODIES[of]
    marked = json.dumps(with_leaf(whole, path, "@here@"))
    body = marked.replace('"@here@"', literal)
    assert body != marked
    return client.post(route, data=body, content_type="application/json")


@pytest.mark.parametrize("route", POSTS)
@pytest.mark.parametrize("body", [body for body in REFUSED.values() if body])
def test_what_is_not_plain_json_is_400_on_every_route(
    shared_client: FlaskClient, route: str, body: bytes
):
    problem(shared_client.post(route, data=body, content_type="application/json"), 400)


@pytest.mark.parametrize(("of", "path"), NUMBERS, ids=map(name, NUMBERS))
def test_a_number_far_out_is_refused_by_its_pointer_or_computed_with(
    shared_client: FlaskClient, of: str, path: Path
):
    for literal in OUTSIDE:
        response = send(shared_client, of, path, literal)
        if response.status_code == 422:
            errors = problem(response, 422)["errors"]
            top = {error["pointer"].split("/")[1] for error in errors}
            assert top == {str(path[0])}, literal
        else:
            # The profiles are posted again and again under one name.
            assert response.status_code in (200, 201, 409), (literal, response.text)
            assert "Infinity" not in response.text
            assert "NaN" not in response.text


@pytest.mark.parametrize(("of", "path"), NUMBERS, ids=map(name, NUMBERS))
def test_what_is_no_number_is_refused_by_its_pointer(
    shared_client: FlaskClient, of: str, path: Path
):
    accepted = {'"7"'} if path[-1] in DECIMALS else set()
    for literal in NOT_NUMBERS:
        response = send(shared_client, of, path, literal)
        if literal in accepted:
            assert response.status_code == 200
            continue
        errors = problem(response, 422)["errors"]
        assert any(error["pointer"].startswith(pointer(path)) for error in errors), literal


@pytest.mark.parametrize(("of", "path"), TEXTS, ids=map(name, TEXTS))
def test_a_strange_text_is_refused_by_its_pointer_or_read_back_equal(
    shared_client: FlaskClient, of: str, path: Path
):
    for text in ["a\x00b", "\ud800", "x" * 10_240, "naïve 😀 \u202e\u0301", " ", "", "\x7f\n"]:
        response = send(shared_client, of, path, json.dumps(text))
        if response.status_code == 422:
            errors = problem(response, 422)["errors"]
            assert any(error["pointer"].startswith(f"/{path[0]}") for error in errors)
            assert len(response.data) < 5_000 or len(errors) > 1
        elif response.status_code != 409:
            assert response.status_code in (200, 201)
            document = response.get_json()
            for key in (() if path[0] in document else ("inputs",)) + path:
                document = document[key]
            assert document == text


@pytest.mark.parametrize(("of", "path"), TEXTS + NUMBERS, ids=map(name, TEXTS + NUMBERS))
def test_no_value_of_another_kind_is_a_5xx(shared_client: FlaskClient, of: str, path: Path):
    for literal in ["null", "[[]]", '[{"a": null}]', '{"": ""}', "1.5e3", '"é"']:
        response = send(shared_client, of, path, literal)
        assert response.status_code in (200, 201, 409, 422), (literal, response.text)
        if response.status_code == 422:
            problem(response, 422)


def test_ten_thousand_unknown_fields_are_refused_briefly(shared_client: FlaskClient):
    body = {f"field{i}": i for i in range(10_000)}
    response = shared_client.post("/v1/economics/break-even", json=body)
    assert len(problem(response, 422)["errors"]) == 100


def test_a_refused_text_is_repeated_in_part_only(shared_client: FlaskClient):
    response = shared_client.post(
        "/v1/plans", json=POSTS["/v1/plans"] | {"objective": "x" * 100_000, "y" * 100_000: 1}
    )
    problem(response, 422)
    assert len(response.data) < 5_000


def test_money_is_exact_whether_sent_as_number_or_as_text(shared_client: FlaskClient):
    digits = "0.123456789012345678901234567890"
    for literal in (digits, f'"{digits}"'):
        response = send(shared_client, "/v1/economics/break-even", ("price_per_call",), literal)
        answer = response.get_json()
        assert answer["inputs"]["price_per_call"] == digits.rstrip("0")
        expected = Fraction(digits) - Fraction("0.004")
        assert Fraction(answer["contribution_per_call"]) == expected


@pytest.mark.parametrize(
    "literal", ['"1e5"', '"-1"', '" 1"', '"1."', '".5"', '"0x1"', "1e31", "-0.01", "1e-61", '"١"']
)
def test_an_amount_in_another_notation_or_out_of_range_is_refused(
    shared_client: FlaskClient, literal: str
):
    response = send(shared_client, "/v1/economics/break-even", ("price_per_call",), literal)
    errors = problem(response, 422)["errors"]
    assert [error["pointer"] for error in errors] == ["/price_per_call"]
