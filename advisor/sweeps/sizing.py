"""How many questions are taken at once."""

from __future__ import annotations

FIRST_ITEMS = 8
"""Before anything was measured: at some 20 ms a question soon over, at 1 s not long."""
AIM_S = 4.0
"""What a chunk should take [s]: long beside taking and storing it (some 10 ms), short beside what
anyone waits for progress, or for what a killed worker had begun."""
MOST_ITEMS = 1_000


def chunk_items(done: int, spent_s: float, left: int) -> int:
    """Questions of the next chunk: as many as take `AIM_S` by what `done` ones took, at most those
    that are `left`."""
    wanted = FIRST_ITEMS if done == 0 or spent_s <= 0 else int(AIM_S * done / spent_s)
    return min(max(wanted, 1), MOST_ITEMS, left)
