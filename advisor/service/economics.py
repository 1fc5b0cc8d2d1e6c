"""Economic questions, with what every computed answer carries."""

from __future__ import annotations

from typing import Any

import advisor
from advisor.core.economics.break_even import BreakEvenInputs
from advisor.core.economics.break_even import break_even as compute


def break_even(inputs: BreakEvenInputs) -> dict[str, Any]:
    """Whether, and after how many calls, a model pays for its training."""
    return compute(inputs).as_dict() | {
        "inputs": inputs.as_dict(),
        "assumptions": [
            {"code": code, "detail": detail}
            for code, detail in (
                ("steady_prices", "Price and serving cost per call stay as they are."),
                ("every_call_paid", "Every call that is counted is served and paid for."),
            )
        ],
        "warnings": [],
        "planner_version": advisor.__version__,
    }
