from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.web.bodies import ARCHITECTURE, HARDWARE, Path, leaves, pointer, with_leaf
from tests.web.problems import problem

FLAT_HARDWARE = {k: v for k, v in HARDWARE.items() if k not in ("sources", "uncertain_fields")}
PLAN: dict[str, Any] = {
    "model": ARCHITECTURE,
    "hardware": [FLAT_HARDWARE],
    "workload": {
        "request_rate_per_s": 4,
        "input_tokens": {"mean": 500, "p95": 1000},
        "output_tokens": {"mean": 50, "p95": 100},
        "arrival_cv": 1,
        "peak_to_mean": 1,
        "prefix_cache_hit": 0,
    },
    "slo": {"ttft_p95_ms": 1000, "e2e_mean_ms": 50_000},
    "limits": {
        "max_accelerators": 8,
        "tensor_parallel": [1, 2],
        "max_utilization": 0.9,
        "min_met_probability": 0.5,
    },
    "serving": {
        "memory_utilization": 0.9,
        "max_num_seqs": 256,
        "max_num_batched_tokens": 8192,
        "router_efficiency": 1,
    },
}
MIXED: dict[str, Any] = PLAN | {
    "workload": {
        "request_rate_per_s": 4,
        "classes": [
            {
                "weight": 2,
                "input_tokens": {"mean": 500, "p95": 1000},
                "output_tokens": {"mean": 50, "p95": 100},
                "slo": {"tpot_p95_ms": 50},
            },
            {
                "weight": 1,
                "input_tokens": {"values": [100, 2000], "weights": [3, 1]},
                "output_tokens": 5,
                "prefix_cache_hit": 0.5,
                "slo": {"ttft_p95_ms": 900},
            },
        ],
    }
}
BODIES = {"plain": PLAN, "mixed": MIXED}


def numbers(of: str) -> list[Path]:
    return [
        path
        for path, value in leaves(BODIES[of])
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]


CASES = [("plain", path) for path in numbers("plain")]
CASES += [("mixed", path) for path in numbers("mixed") if path[0] == "workload"]


def name(case: tuple[str, Path]) -> str:
    return case[0] + pointer(case[1])


def bound(shared_client: FlaskClient, of: str, path: Path, value: float) -> float | None:
    """The bound that is named when a number is refused."""
    response = shared_client.post("/v1/plans", json=with_leaf(BODIES[of], path, value))
    for error in problem(response, 422)["errors"]:
        if error["pointer"] == pointer(path) and isinstance(error.get("allowed"), dict):
            key = "minimum" if value < 0 else "maximum"
            return float(error["allowed"][key])
    return None


@pytest.mark.parametrize(("of", "path"), CASES, ids=map(name, CASES))
def test_a_plan_at_the_bounds_of_a_number_is_answered_in_plain_json_or_refused(
    shared_client: FlaskClient, of: str, path: Path
):
    body = BODIES[of]
    assert shared_client.post("/v1/plans", json=copy.deepcopy(body)).status_code == 201
    for outside in (-1, 1e200):
        extreme = bound(shared_client, of, path, outside)
        assert extreme is not None
        response = shared_client.post("/v1/plans", json=with_leaf(body, path, extreme))
        assert response.status_code in (201, 422), response.text
        if response.status_code == 422:
            assert problem(response, 422)["errors"]
            continue
        text = response.get_data(as_text=True)
        assert not any(word in text for word in ("NaN", "Infinity"))
        plan = json.loads(text)
        assert (plan["recommended"] is None) == (plan["reason"] is not None)


@pytest.mark.parametrize("of", BODIES)
@pytest.mark.parametrize("seed", range(12))
def test_several_numbers_at_their_bounds_at_once_are_never_an_error_of_ours(
    shared_client: FlaskClient, seed: int, of: str
):
    draw, body, paths = random.Random(seed), BODIES[of], numbers(of)
    for path in draw.sample(paths, draw.randint(2, len(paths))):
        extreme = bound(shared_client, of, path, draw.choice([-1, 1e200]))
        body = with_leaf(body, path, extreme)
    response = shared_client.post("/v1/plans", json=body)
    assert response.status_code in (201, 422), response.text
