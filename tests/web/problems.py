"""What every error answer has to look like."""

from __future__ import annotations

import json
from typing import Any

from werkzeug.test import TestResponse

from advisor.web.problems import TITLES

MEMBERS = ["type", "title", "status", "detail", "instance", "errors"]


def problem(response: TestResponse, status: int) -> dict[str, Any]:
    """The problem document of an error answer, once its shape is checked."""
    assert response.status_code == status, response.get_data(as_text=True)
    assert response.content_type == "application/problem+json"
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["X-Request-ID"]
    document: dict[str, Any] = json.loads(response.data)
    assert list(document)[: len(MEMBERS)] == MEMBERS
    assert document["status"] == status
    assert document["title"] == TITLES[status]
    assert document["detail"].strip()
    assert "Traceback" not in response.get_data(as_text=True)
    assert "<html" not in response.get_data(as_text=True)
    for error in document["errors"]:
        assert set(error) <= {"pointer", "detail", "given", "allowed", "nearest"}
        assert error["pointer"] == "" or error["pointer"].startswith("/")
    return document


def only_error(response: TestResponse, pointer: str, status: int = 422) -> dict[str, Any]:
    """The one field error of an answer, which has to be at `pointer`."""
    (error,) = problem(response, status)["errors"]
    assert error["pointer"] == pointer
    assert isinstance(error, dict)
    return error
