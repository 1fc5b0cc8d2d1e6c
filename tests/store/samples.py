"""Small documents with what the store reads of them, and a way to do things at once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def hardware(name: str, vendor: str = "nvidia", **fields: Any) -> dict[str, Any]:
    return {"name": name, "vendor": vendor, "memory_gib": 79.2} | fields


def model(name: str, *aliases: str, family: str = "llama", **fields: Any) -> dict[str, Any]:
    return {"name": name, "aliases": list(aliases), "architecture": {"family": family}} | fields


def outcomes_at_once(number: int, act: Callable[[int], object]) -> Counter[str]:
    """Run `act(0)`, `act(1)`, ... from threads that set off together, and count how each ended:
    `done`, or the name of the exception."""
    ready = threading.Barrier(number)

    def run(index: int) -> str:
        ready.wait()
        try:
            act(index)
        except Exception as error:
            return type(error).__name__
        return "done"

    with ThreadPoolExecutor(number) as pool:
        return Counter(pool.map(run, range(number)))
