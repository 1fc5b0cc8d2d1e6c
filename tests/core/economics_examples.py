"""Worked examples of economics, by id: each with its source, inputs and exact values.

Core and web tests share them; a figure agrees when it is within 1e-9 of the expected one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

_FILE = Path(__file__).parent / "data" / "economics_examples.json"
EXAMPLES: dict[str, dict[str, Any]] = {
    each["id"]: each for each in json.loads(_FILE.read_text(encoding="utf-8"))
}


def example(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Inputs and expected values of the one example whose id begins with `name`."""
    (found,) = [each for key, each in EXAMPLES.items() if key.startswith(name)]
    return found["inputs"], found["expected"]


def close(value: Any) -> Any:
    """`value` as a figure may be answered."""
    return pytest.approx(float(value), rel=1e-9, abs=0)
