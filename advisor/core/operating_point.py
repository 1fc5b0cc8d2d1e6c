"""Where a plan's steps lie under the roofline of its accelerator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from advisor.core.answer import rounded
from advisor.core.batching import step_arguments
from advisor.core.evaluation import Evaluator
from advisor.core.units import GB, TERA

_PHASES = ("decode", "prefill")


def roofline(found: Evaluator, candidate: Mapping[str, Any]) -> dict[str, Any]:
    """The accelerator's peak [TFLOPS, dense, in the plan's arithmetic], its memory bandwidth [GB/s]
    and where both take as long (`ridge`, FLOP a byte); and of a decode step and one with prompts,
    at the plan's mean batch, the FLOP, the bytes and the time of one accelerator, what it computes
    in a second and for a byte."""
    layout = found.layouts[0]
    peak = layout.hardware.peak_flop_s(candidate["precision"]["compute"])
    bandwidth = layout.hardware.memory_bytes_s
    batch = max(candidate["load"]["concurrency_per_replica"] or 1.0, 1.0)
    n = np.array([[batch]])
    arguments = step_arguments(found.steps, found.request.workload, n, found.batched_tokens)
    points = []
    for phase, one in zip(_PHASES, arguments, strict=True):
        flop, moved = (each.item() for each in found.steps.work(*one))
        seconds = found.steps.times(*one).total.item()
        points.append(
            {
                "phase": phase,
                "batch": rounded(batch),
                "flop": rounded(flop),
                "bytes": rounded(moved),
                "seconds": rounded(seconds),
                "flop_per_byte": rounded(flop / moved),
                "tflops": rounded(flop / seconds / TERA),
            }
        )
    return {
        "arithmetic": candidate["precision"]["compute"],
        "peak_tflops": rounded(peak / TERA),
        "bandwidth_gb_s": rounded(bandwidth / GB),
        "ridge_flop_per_byte": rounded(peak / bandwidth),
        "points": points,
    }
