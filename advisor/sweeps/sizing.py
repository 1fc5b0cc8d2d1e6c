"""How many questions are taken at once."""

from __future__ import annotations

import math

FIRST_ITEMS = 8
"""Before anything was measured: at some 20 ms a question soon over, at 1 s not long."""
AIM_S = 4.0
"""What a chunk should take [s]: long beside taking and storing it (some 10 ms), short beside what
anyone waits for progress, or for what a killed worker had begun."""
MOST_ITEMS = 1_000
SHARES = 8
"""Of what is left no chunk is more than one of so many parts, so that those who answer it end
nearly at once, and a sweep of a few seconds is more than one chunk."""


def chunk_items(done: int, spent_s: float, left: int) -> int:
    """Questions of the next chunk: as many as take `AIM_S` by what `done` ones took, but of those
    that are `left` only a share, or the last few."""
    wanted = FIRST_ITEMS if done == 0 or spent_s <= 0 else int(AIM_S * done / spent_s)
    share = max(math.ceil(left / SHARES), FIRST_ITEMS)
    return min(max(wanted, 1), share, MOST_ITEMS, left)
