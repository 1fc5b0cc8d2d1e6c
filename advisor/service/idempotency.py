"""Requests that may be sent again: what was answered once is answered again, and done once.

The answer is kept in the transaction that does what was asked: both are there or neither is,
whenever the process ends. Of several requests under one key at once the first to write wins; the
others undo what they did and give its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from advisor.service.clock import now
from advisor.service.database import Database
from advisor.store import idempotency
from advisor.store.errors import DatabaseUnavailable
from advisor.store.idempotency import Claim, KeptAnswer, KeyClaimed

Keep = Callable[[int, dict[str, str], str], None]


class KeyReused(Exception):
    """The key came with another request before."""


@dataclass(frozen=True)
class Once:
    """One request that a client has given a key."""

    database: Database
    claim: Claim
    lifetime: timedelta

    def answered(self) -> KeptAnswer | None:
        """The answer to this request where it was given before. Raises `KeyReused`."""
        with self.database.reading() as session:
            since = now() - self.lifetime
            kept = idempotency.find(session, self.claim.client, self.claim.key, since)
        if kept is not None and kept.digest != self.claim.digest:
            raise KeyReused
        return kept

    def first_answer(self) -> KeptAnswer:
        """The answer of the request that came first, once `KeyClaimed` was raised."""
        kept = self.answered()
        if kept is None:
            # It was removed within the instant between.
            raise DatabaseUnavailable
        return kept

    @contextmanager
    def doing(self) -> Iterator[Keep]:
        """A block that does what was asked, and keeps its answer by what it is given.

        Raises `KeyClaimed` where another request was first; nothing is changed then.
        """
        with self.database.one_transaction(self._claim) as transaction:

            def keep(status: int, headers: dict[str, str], body: str) -> None:
                answer = KeptAnswer(self.claim.digest, status, headers, body)
                idempotency.keep(transaction(), self.claim, answer)

            yield keep

    def _claim(self, session: Any) -> None:
        moment = now()
        idempotency.claim(session, self.claim, moment, moment - self.lifetime)


__all__ = ["Claim", "KeptAnswer", "KeyClaimed", "KeyReused", "Once"]
