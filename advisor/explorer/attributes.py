"""Attributes of elements that Python has no names for."""

from __future__ import annotations

from typing import Any


def attributes(**given: str) -> Any:
    """`data_name="x"` as the attribute `data-name`, `aria_label="y"` as `aria-label`."""
    return {name.replace("_", "-"): value for name, value in given.items()}
