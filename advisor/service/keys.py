"""API keys: made, rotated and revoked by operators, and recognised in requests.

A key is 256 random bits, so its digest can be a fast one: there is nothing to guess.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from advisor.service.clock import now
from advisor.service.database import Database
from advisor.store import keys
from advisor.store.errors import NameTaken, NotFound
from advisor.store.keys import StoredKey

SCOPES = ("read", "write", "admin")
"""What a key may do, each with all before it."""

PREFIX = "advisor_"
"""So that people, and programs that look for leaked secrets, see what it is."""

_PATTERN = re.compile(PREFIX + "[A-Za-z0-9_-]{43}")
_PURPOSE = b"inference-advisor api key "


def without_keys(text: str) -> str:
    """The text with every API key in it cut short, for logs."""
    return _PATTERN.sub(f"{PREFIX}...", text)


@dataclass(frozen=True, slots=True)
class Client:
    """Who sent a request: the name and the scope of the key that came with it."""

    name: str
    scope: str

    def may(self, scope: str) -> bool:
        """Whether the key reaches as far as `scope`."""
        return SCOPES.index(self.scope) >= SCOPES.index(scope)


class Keys:
    """The API keys in a database, as far as they were made under one `pepper`."""

    def __init__(self, database: Database, pepper: str) -> None:
        self._database = database
        self._secret = _PURPOSE + pepper.encode()

    def create(self, name: str, scope: str, lasts: timedelta | None = None) -> str:
        """A new key, which only the answer ever shows. NameTaken where a key of `name` works."""
        moment = now()
        with self._database.writing() as session:
            if keys.working(session, name, moment):
                raise NameTaken(name)
            return self._add(session, name, scope, moment, lasts)

    def rotate(self, name: str, overlap: timedelta, lasts: timedelta | None = None) -> str:
        """A new key of the same scope; the present ones work for `overlap` more. `NotFound`
        where no key of `name` works."""
        moment = now()
        with self._database.writing() as session:
            present = keys.working(session, name, moment)
            if not present:
                raise NotFound(name)
            keys.end(session, name, moment + overlap)
            return self._add(session, name, present[-1].scope, moment, lasts)

    def revoke(self, name: str) -> int:
        """Let no key of `name` work any more; how many did. `NotFound` where none did."""
        with self._database.writing() as session:
            count = keys.end(session, name, now())
        if not count:
            raise NotFound(name)
        return count

    def listed(self) -> Sequence[StoredKey]:
        """Every key there ever was, by name and age."""
        with self._database.reading() as session:
            return keys.all_keys(session)

    def client(self, key: str) -> Client | None:
        """Who holds this key, if it works."""
        if not _PATTERN.fullmatch(key):
            return None
        with self._database.reading() as session:
            stored = keys.find(session, self._digest(key))
        if stored is None or not stored.works(now()):
            return None
        return Client(stored.name, stored.scope)

    def _add(
        self, session: Any, name: str, scope: str, moment: datetime, lasts: timedelta | None
    ) -> str:
        key = PREFIX + secrets.token_urlsafe(32)
        ends_at = None if lasts is None else moment + lasts
        keys.add(session, StoredKey(self._digest(key), name, scope, moment, ends_at))
        return key

    def _digest(self, key: str) -> str:
        return hmac.new(self._secret, key.encode(), hashlib.sha256).hexdigest()
