"""Economic questions through HTTP, and what their answers warn of."""

from __future__ import annotations

from typing import Any

from flask.testing import FlaskClient


def post(client: FlaskClient, path: str, **body: Any) -> dict[str, Any]:
    response = client.post(f"/v1/economics/{path}", json=body)
    assert response.status_code == 200, response.get_data(as_text=True)
    return dict(response.get_json())


def codes(answer: dict[str, Any]) -> list[str]:
    return [warning["code"] for warning in answer["warnings"]]
