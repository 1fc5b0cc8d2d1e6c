"""Units: the suffixes that names carry, and the factors between them.

`_gib` 2**30 bytes; `_gb_s` 1e9 bytes a second; `_tflops` 1e12 dense floating-point operations a
second; `_ms` milliseconds; `_s` seconds; `_us` microseconds. Inside the core every quantity
without a suffix is SI: bytes, seconds, FLOP.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

GIB = 2.0**30
GB = 1e9
TERA = 1e12
MS_PER_S = 1e3


class Estimate(NamedTuple):
    """A quantity that is not known exactly: the range it lies in, and what is expected."""

    low: float
    value: float
    high: float


def plain(value: float) -> str:
    """A figure for people, all its digits and no exponent (1048576, 0.05)."""
    return np.format_float_positional(value, trim="-")


def rounded_plain(value: float) -> str:
    """A computed figure for people: four significant digits and no exponent (12710, 0.03867)."""
    return plain(float(f"{value:.4g}"))
