"""What benchmarks stand in: a database with the catalogue, a process of their own."""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from advisor.service import catalogue
from advisor.service.database import Database
from advisor.store.migrate import upgrade


def catalogued(url: str) -> str:
    """The same address, once its database is migrated and has the catalogue."""
    upgrade(url)
    database = Database(url)
    catalogue.load(database)
    database.close()
    return url


def alone(call: Callable[..., Any], *arguments: Any) -> Any:
    """What a call gives in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(call, arguments)


def peak_mib(process: int | str = "self") -> float:
    """The most memory that a process has taken [MiB]."""
    status = Path(f"/proc/{process}/status").read_text()
    (peak_kib,) = re.findall(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return int(peak_kib) / 1024
