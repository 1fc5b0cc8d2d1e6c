"""`advisor techniques`: the list, and the advice that the API gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from advisor.core.techniques.catalogue import catalogue
from tests.cli.conftest import Run

PLAN: dict[str, Any] = {
    "model": "meta-llama-3.1-8b",
    "hardware": ["h100-sxm-80gb"],
    "workload": {"request_rate_per_s": 4, "input_tokens": 1000, "output_tokens": 250},
    "limits": {"max_accelerators": 4},
}


def test_the_list_has_every_technique_of_a_family(advisor: Run):
    result = advisor("techniques", "--family", "service")
    assert result.exit_code == 0
    for name, technique in catalogue().items():
        assert (f"{name} (service)" in result.stdout) == (technique.family == "service")
    listed = json.loads(advisor("techniques", "--json").stdout)
    assert listed["items"] == [each.as_dict() for each in catalogue().values()]


@pytest.mark.parametrize("body", [PLAN, {"plan": PLAN, "objective": "latency"}])
def test_advice_is_that_of_the_api(
    advisor: Run, shared_client: FlaskClient, tmp_path: Path, body: dict[str, Any]
):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(body))
    result = advisor("techniques", "advice", "--request", str(path), "--json")
    assert result.exit_code == 0
    asked = body if "plan" in body else {"plan": body}
    expected = shared_client.post("/v1/techniques/advice", json=asked).get_json()
    assert json.loads(result.stdout) == expected


@pytest.mark.parametrize("columns", [60, 100, 160])
def test_advice_is_printed_with_its_figures_and_what_is_not_computed(advisor: Run, columns: int):
    asked = json.dumps({"plan": PLAN, "objective": "throughput"})
    result = advisor("techniques", "advice", "--request", "-", stdin=asked, columns=columns)
    assert result.exit_code == 0
    shown = " ".join(result.stdout.split())
    for words in ("Weight quantization", "helps", "Do not apply", "Not computed", "quality"):
        assert words in shown
    assert max(map(len, result.stdout.splitlines())) <= columns


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"plan_id": "abc"}, "/plan_id: A plan is kept by the service"),
        (PLAN | {"model": "meta-llama-3.1-8"}, "/plan/model: "),
        ({"plan": PLAN, "distilled_model": "llama-3.2-3b-instruc"}, "nearest: llama-3.2-3b"),
        ({"plan": PLAN, "techniques": ["no"]}, "/techniques/0: "),
        ([], "/: An object is expected."),
        (PLAN | {"serving": {"max_model_len": 5}}, "/plan/serving/max_model_len: "),
    ],
)
def test_what_cannot_be_advised_ends_with_2_and_its_place(advisor: Run, body: Any, words: str):
    result = advisor("techniques", "advice", "--request", "-", stdin=json.dumps(body))
    assert result.exit_code == 2
    assert words in result.stderr
