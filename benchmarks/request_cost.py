"""CPU of `POST /v1/plans` in process, against a bare Flask echo of the same answer.

One model on one device, every TP and replica count, 20 candidates answered, the plan stored.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from flask import Flask, Response, jsonify, request
from flask.testing import FlaskClient

from advisor.config import Settings
from advisor.service import catalogue
from advisor.service.database import Database
from advisor.store.migrate import upgrade
from advisor.web.app import create_app
from benchmarks.timing import least_cpu_ms

GATE = 6.0
ROUNDS = 60
ASK = {
    "model": "meta-llama-3.1-70b",
    "hardware": ["h200-sxm-141gb"],
    "workload": {"request_rate_per_s": 4, "input_tokens": 1000, "output_tokens": 250},
    "slo": {"ttft_p95_ms": 1000, "tpot_p95_ms": 50},
    "precision": {"weights": ["fp8"], "kv_cache": ["fp8"]},
    "max_candidates": 20,
}


def main() -> None:
    """Print both times and their ratio; the gate is a target, and is printed beside it."""
    with tempfile.TemporaryDirectory() as folder:
        client = _service(Path(folder) / "advisor.sqlite3")
        answer = client.post("/v1/plans", json=ASK)
        assert answer.status_code == 201, answer.text
        echo = _echo()
        spent = least_cpu_ms(lambda: client.post("/v1/plans", json=ASK), ROUNDS)
        bare = least_cpu_ms(lambda: echo.post("/", json=answer.json), ROUNDS)
    shown, size = len(answer.json["candidates"]), len(answer.data) / 1024  # type: ignore[index]
    print(f"POST /v1/plans, {shown} candidates answered and stored, {size:.0f} KiB")
    print(
        f"  least CPU of {ROUNDS}: {spent:.2f} ms; a bare echo of that answer {bare:.2f} ms: "
        f"{spent / bare:.1f} times (target: at most {GATE:.0f})"
    )


def _service(path: Path) -> FlaskClient:
    url = f"sqlite:///{path}"
    database = Database(url)
    upgrade(url)
    catalogue.load(database)
    database.close()
    return create_app(Settings(database_url=url, log_level="ERROR")).test_client()


def _echo() -> FlaskClient:
    app = Flask("echo")

    @app.post("/")
    def echo() -> Response:
        return jsonify(request.get_json())

    return app.test_client()


if __name__ == "__main__":
    main()
