"""The data files beside this module: rules, cues and scope words."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any


@cache
def table(filename: str) -> dict[str, Any]:
    """A data file of this package as parsed TOML."""
    return tomllib.loads(resources.files(__package__).joinpath(filename).read_text("utf-8"))
