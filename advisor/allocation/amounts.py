"""What accelerators of an entry cost and draw, in the form of the answer."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from advisor.allocation.problem import W_PER_KW
from advisor.allocation.request import Entry
from advisor.core.answer import money, rounded
from advisor.core.economics.figures import exact


def cost(entry: Entry, accelerators: int) -> Fraction:
    """So many accelerators of an entry for an hour, exactly."""
    return Fraction(entry.price_per_hour) * accelerators


def amount(value: Fraction) -> str:
    """An exact amount as a plain decimal string."""
    return money(exact(value))


def power_kw(entry: Entry, accelerators: int) -> float | None:
    """At TDP; None where the hardware has none."""
    tdp_w = entry.hardware.tdp_w
    return None if tdp_w is None else rounded(tdp_w * accelerators / W_PER_KW)


def totals(inventory: Sequence[Entry], used: Sequence[int]) -> dict[str, Any]:
    """So many accelerators of each entry, all together."""
    pairs = list(zip(inventory, used, strict=True))
    powers = [power_kw(entry, count) for entry, count in pairs if count]
    return {
        "accelerators": sum(used),
        "cost_per_hour": amount(sum((cost(*pair) for pair in pairs), Fraction(0))),
        "power_kw": None if None in powers else rounded(sum(p for p in powers if p is not None)),
    }


def figure(value: float | None) -> float | None:
    """A number as it is answered."""
    return None if value is None else rounded(value)
