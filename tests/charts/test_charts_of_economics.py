"""Charts of economics, against the answers and sums of one's own."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from advisor.charts.catalogue import OF_ECONOMICS, charts
from advisor.charts.chart import Chart
from advisor.charts.words import scaled, spoken

STEADY = {
    "training_cost": "5576000", "price_per_call": "0.005", "serving_cost_per_call": "0.002",
    "calls_per_month": 304375000, "fixed_cost_per_month": "200000",
}  # fmt: skip
DECLINING = STEADY | {
    "price_decline_per_month": 0.03, "cost_decline_per_month": 0.02, "annual_discount_rate": 0.15,
    "horizon_months": 24,
}  # fmt: skip
OWN = {
    "input_tokens": 1000, "output_tokens": 250, "input_per_mtok": "0.03", "output_per_mtok": "0.18",
    "replica_cost_per_month": "2204.6", "replica_capacity_requests_per_month": 44481528,
}  # fmt: skip


def ask(client: FlaskClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
    response = client.post(f"/v1/economics/{path}", json=body)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.get_json()
    return found


def drawn(answer: dict[str, Any]) -> dict[str, Chart]:
    return {one.name: one for one in charts(answer, OF_ECONOMICS)}


def at(x: Any, y: Any, where: float) -> float:
    """A line's value between its points."""
    points = list(zip(x, y, strict=True))
    before = max(p for p in points if p[0] <= where)
    after = min(p for p in points if p[0] >= where)
    share = (where - before[0]) / (after[0] - before[0]) if after != before else 0.0
    return float(before[1] + share * (after[1] - before[1]))


@pytest.mark.parametrize("body", [STEADY, DECLINING], ids=["steady", "declining"])
def test_by_months_the_line_begins_at_what_was_spent_and_is_0_at_payback(
    shared_client: FlaskClient, body: dict[str, Any]
):
    answer = ask(shared_client, "break-even", body)
    made = drawn(answer)["break_even_over_time"]
    first = made.series[0]
    assert made.y.unit == "million USD"
    assert first.y[0] == pytest.approx(-5.576)
    assert at(first.x, first.y, answer["months"]) == pytest.approx(0, abs=0.01)
    if body is DECLINING:
        assert first.x[-1] == 24
        assert first.y[-1] == pytest.approx(float(answer["npv"]) / 1e6)
        undiscounted = made.series[1]
        paid = answer["months_undiscounted"]
        assert at(undiscounted.x, undiscounted.y, paid) == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize("body", [STEADY, DECLINING], ids=["steady", "declining"])
def test_by_calls_the_line_is_0_at_the_calls_that_are_answered(
    shared_client: FlaskClient, body: dict[str, Any]
):
    answer = ask(shared_client, "break-even", body)
    made = drawn(answer)["break_even"]
    needed = answer["break_even_calls"] / 1e9
    assert made.x.unit == "billion calls"
    assert at(made.series[0].x, made.series[0].y, needed) == pytest.approx(0, abs=0.01)
    assert needed in [pytest.approx(line.value) for line in made.lines]


def test_without_a_rate_of_calls_there_are_no_months_and_a_call_brings_its_contribution(
    shared_client: FlaskClient,
):
    plain = {"training_cost": "5000000", "price_per_call": "0.01", "serving_cost_per_call": "0.004"}
    made = drawn(ask(shared_client, "break-even", plain))
    assert set(made) == {"break_even"}
    for calls, net in made["break_even"].table.rows:
        assert net == pytest.approx(0.006 * float(calls or 0) - 5e6)
    never = drawn(ask(shared_client, "break-even", plain | {"serving_cost_per_call": "0.02"}))
    assert [line.axis for line in never["break_even"].lines] == ["y"]
    assert "not recovered" in never["break_even"].summary


def test_the_steps_of_replicas_are_their_bills_and_the_stretches_those_answered(
    shared_client: FlaskClient,
):
    more = {"overhead_per_month": "500", "min_replicas": 2, "peak_to_mean": 2}
    body = OWN | more | {"output_per_mtok": "0.6"}
    answer = ask(shared_client, "self-host-vs-api", body)
    made = drawn(answer)["self_host_vs_api"]
    api, own, won = made.series
    assert at(api.x, api.y, 40.0) == pytest.approx(40 * 0.00018 * 1000)
    capacity = 44.481528 / 2
    bills = [(2204.6 * k + 500) / 1000 for k in (2, 3, 4)]
    assert own.x[1:3] == pytest.approx((2 * capacity, 3 * capacity))
    assert own.y[:3] == pytest.approx(tuple(bills))
    wins = [each for each in answer["intervals"] if each["winner"] == "self_host"]
    starts = list(won.x[::3])
    assert starts == pytest.approx([each["from"] / 1e6 for each in wins][: len(starts)])
    assert [row[2] for row in made.table.rows] == [each["winner"] for each in answer["intervals"]]


def test_an_api_below_the_floor_has_no_stretch(shared_client: FlaskClient):
    answer = ask(shared_client, "self-host-vs-api", OWN | {"output_per_mtok": "0.01"})
    made = drawn(answer)["self_host_vs_api"]
    assert [one.name for one in made.series] == ["API", "own replicas"]


def test_the_tornado_has_a_place_for_each_input_and_both_its_ends(shared_client: FlaskClient):
    answer = ask(shared_client, "sensitivity", STEADY | {"swing": 0.2})
    made = drawn(answer)["tornado"]
    assert made.y.categories[-1] == answer["matters_most"].replace("_", " ")
    shown = {
        (made.y.categories[int(y or 0)], one.name.split()[0]): x
        for one in made.series
        for x, y in zip(one.x, one.y, strict=True)
    }
    assert shown == {
        (bar["input"].replace("_", " "), words): bar[end]["at"]
        for bar in answer["tornado"]
        for end, words in (("low", "lowered"), ("high", "raised"))
    }
    open_ended = ask(shared_client, "sensitivity", STEADY | {"swing": 0.5})
    assert any("No break-even" in note for note in drawn(open_ended)["tornado"].notes)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, "0"), (0.00007443648, "0.00007444"), (1.2345e-61, "1.234e-61"), (950, "950"),
        (5_576_000, "5.576 million"), (-2.5e12, "-2.5 trillion"), (3e45, "3e+45"),
    ],
)  # fmt: skip
def test_a_figure_is_said_in_few_digits_whatever_its_size(value: float, said: str):
    assert spoken(value) == said


def test_axes_of_huge_figures_have_short_numbers():
    for largest in (3e14, 2e15, 3.8e54, 1e300):
        factor, unit = scaled(largest, "USD")
        assert 2 <= largest / factor < 2000
        assert unit is not None
        assert unit.endswith(" USD")
    assert scaled(3.8e54, "USD")[1] == "1e54 USD"
