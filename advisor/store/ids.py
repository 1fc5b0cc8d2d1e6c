"""Identifiers of stored answers."""

from __future__ import annotations

import secrets
import time

from advisor.store.errors import NotFound


def new_id() -> str:
    """32 hexadecimal digits that sort by time: 12 of milliseconds since 1970, 20 of chance.

    The primary key is thereby also the order of the list, and new rows go to the end of its index.
    """
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(10)}"


def refuse_impossible(text: str) -> None:
    """What no id looks like is not asked for: a database may refuse the text itself. Raises
    `NotFound`."""
    if not (text.isascii() and text.isalnum()):
        raise NotFound(text)
