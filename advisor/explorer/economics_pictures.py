"""The pictures of economics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.charts.chart import Chart
from advisor.explorer import parts

Answer = Mapping[str, Any]


def break_even_pictures(answer: Answer, swung: Answer | None) -> list[Any]:
    """Break-even over volume and time, and the tornado."""
    del answer, swung
    return _shown([])


def self_host_pictures(answer: Answer) -> list[Any]:
    """Cost of an API and of own replicas by volume."""
    del answer
    return _shown([])


def _shown(charts: list[Chart | None]) -> list[Any]:
    found = [parts.picture(each) for each in charts if each is not None]
    return [parts.panel("Pictures", *found, kind="panel pictures")] if found else []
