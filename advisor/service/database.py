"""The database as use cases see it: a place to read from and to write to."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from advisor.store.engine import make_engine, session_factory, unit_of_work
from advisor.store.migrate import current_is_head


class Database:
    """Connections to one database; they are made when first used."""

    def __init__(self, url: str, *, pool_size: int = 16, timeout_ms: int = 2000) -> None:
        self._engine = make_engine(url, pool_size=pool_size, timeout_ms=timeout_ms)
        self._sessions = session_factory(self._engine)

    def reading(self) -> AbstractContextManager[Any]:
        """A transaction that only reads."""
        return unit_of_work(self._sessions, read_only=True)

    def writing(self) -> AbstractContextManager[Any]:
        """A transaction, committed at the end of the block, rolled back when it raises."""
        return unit_of_work(self._sessions)

    def is_ready(self) -> bool:
        """Whether the database answers and has this code's schema."""
        return current_is_head(self._engine)

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()
