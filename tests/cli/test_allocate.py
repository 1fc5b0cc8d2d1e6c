"""`advisor allocate`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from advisor.web import examples
from tests.cli.conftest import Run

FLEET: dict[str, Any] = examples.ALLOCATIONS["what to serve with too little"]
OF_THE_SERVICE = ("id", "created_at", "profiles", "coefficients_version")
TIMES = ("planning_time_s", "solving_time_s")


def without_times(answer: dict[str, Any]) -> dict[str, Any]:
    kept = {k: v for k, v in answer["solver"].items() if k not in TIMES}
    return {k: v for k, v in answer.items() if k not in OF_THE_SERVICE} | {"solver": kept}


def test_the_answer_is_that_of_the_api(advisor: Run, shared_client: FlaskClient, tmp_path: Path):
    path = tmp_path / "fleet.json"
    path.write_text(json.dumps(FLEET))
    result = advisor("allocate", "--request", str(path), "--json")
    assert result.exit_code == 0
    expected = shared_client.post("/v1/fleets/allocations", json=FLEET).get_json()
    assert without_times(json.loads(result.stdout)) == without_times(expected)


@pytest.mark.parametrize("columns", [60, 100, 160])
def test_pools_what_is_left_and_what_would_be_otherwise_are_printed(advisor: Run, columns: int):
    result = advisor("allocate", "--request", "-", stdin=json.dumps(FLEET), columns=columns)
    assert result.exit_code == 0
    shown = " ".join(result.stdout.split())
    for words in (
        "3 demands on 1 entries", "TP1 bf16", "Not served: batch.", "one more accelerator of",
        "would serve chat", "Assumptions",
    ):  # fmt: skip
        assert words in shown
    assert max(map(len, result.stdout.splitlines())) <= columns


def test_the_fleet_of_the_documents_is_allocated(advisor: Run):
    page = (Path(__file__).parents[2] / "docs/fleets.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```json\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    result = advisor("allocate", "--request", "-", "--json", stdin=shown)
    assert result.exit_code == 0
    answer = json.loads(result.stdout)
    assert [each["demand"] for each in answer["allocation"]] == ["chat", "reports"]
    pools = [pool for each in answer["allocation"] for pool in each["pools"]]
    assert {pool["inventory"] for pool in pools} == {"own"}


def test_what_cannot_be_served_ends_with_1_and_the_conflict(advisor: Run):
    demands = [{k: v for k, v in each.items() if k != "weight"} for each in FLEET["demands"]]
    result = advisor("allocate", "--request", "-", stdin=json.dumps(FLEET | {"demands": demands}))
    assert result.exit_code == 1
    assert "cannot all be" in " ".join(result.stdout.split())


def test_bad_input_ends_with_2_and_its_place(advisor: Run):
    wrong = FLEET | {"inventory": [{"hardware": "h100-sxm-80g", "accelerators": 1}]}
    result = advisor("allocate", "--request", "-", stdin=json.dumps(wrong))
    assert result.exit_code == 2
    assert "/inventory/0/hardware: " in result.stderr
    assert "nearest: h100-sxm-80gb" in result.stderr


def test_without_the_solver_it_says_what_to_install(advisor: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    result = advisor("allocate", "--request", "-", stdin=json.dumps(FLEET))
    assert result.exit_code == 1
    assert "pip install 'inference-advisor[fleet]'" in result.stderr
