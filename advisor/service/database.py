"""The database as use cases see it: a place to read from and to write to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any

from advisor.store.engine import make_engine, session_factory, unit_of_work
from advisor.store.migrate import current_is_head
from advisor.store.tracing import trace_statements


class Database:
    """Connections to one database; they are made when first used."""

    def __init__(self, url: str, *, pool_size: int = 16, timeout_ms: int = 2000) -> None:
        self._engine = make_engine(url, pool_size=pool_size, timeout_ms=timeout_ms)
        self._sessions = session_factory(self._engine)
        self._shared: ContextVar[_Shared | None] = ContextVar("shared transaction", default=None)

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """A transaction that only reads."""
        shared = self._shared.get()
        if shared is not None and shared.session is not None:
            yield shared.session
            return
        with unit_of_work(self._sessions, read_only=True) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """A transaction, committed at the end of the block, rolled back when it raises."""
        shared = self._shared.get()
        if shared is not None:
            yield shared.begun()
            return
        with unit_of_work(self._sessions) as session:
            yield session

    @contextmanager
    def one_transaction(self, first: Callable[[Any], None]) -> Iterator[Callable[[], Any]]:
        """A block in which all that is written is one transaction, whoever writes it.

        It begins, by `first`, where something is first written or what is yielded is called for it,
        and is committed at the end of the block, or rolled back when that raises.
        """
        with ExitStack() as stack:
            shared = _Shared(lambda: stack.enter_context(unit_of_work(self._sessions)), first)
            token = self._shared.set(shared)
            stack.callback(self._shared.reset, token)
            yield shared.begun

    @property
    def is_embedded(self) -> bool:
        """Whether it is a file of this machine, SQLite's, and no server that others share."""
        return self._engine.dialect.name == "sqlite"

    def trace(self, provider: Any) -> None:
        """Let an OpenTelemetry `provider` have a span of every statement."""
        trace_statements(self._engine, provider)

    def is_ready(self) -> bool:
        """Whether the database answers and has this code's schema."""
        return current_is_head(self._engine)

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()


class _Shared:
    """A transaction that begins when it is first needed."""

    def __init__(self, begin: Callable[[], Any], first: Callable[[Any], None]) -> None:
        self.session: Any = None
        self._begin, self._first = begin, first

    def begun(self) -> Any:
        if self.session is None:
            self.session = self._begin()
            self._first(self.session)
        return self.session
