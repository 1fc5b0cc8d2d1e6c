"""A bare Flask service that answers everything with the bytes of one file."""

from __future__ import annotations

import os
from pathlib import Path

from flask import Flask, Response, request

ANSWER = "ECHO_ANSWER"
"""The environment variable that names the file."""

app = Flask("echo")
_answer = Path(os.environ[ANSWER]).read_bytes() if ANSWER in os.environ else b""


@app.before_request
def echo() -> Response:
    """Reads the body and answers, whatever the path."""
    request.get_data()
    return Response(_answer, content_type="application/json")
