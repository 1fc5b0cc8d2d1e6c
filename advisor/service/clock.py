"""Instants: now, and as answers write them."""

from __future__ import annotations

import datetime


def now() -> datetime.datetime:
    """This instant, in UTC."""
    return datetime.datetime.now(datetime.UTC)


def rfc3339(moment: datetime.datetime) -> str:
    """An instant as RFC 3339 text in UTC."""
    return moment.astimezone(datetime.UTC).isoformat().replace("+00:00", "Z")
