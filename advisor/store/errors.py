"""What the store raises: facts for the caller to word."""

from __future__ import annotations


class StoreError(Exception):
    """A request that the store cannot carry out."""


class NameTaken(StoreError):
    """A name or an alias is in use; `name` is the item that holds it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class NotFound(StoreError):
    """No item is called `name` (a profile's name or alias, or an id)."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class StaleVersion(StoreError):
    """The item has changed since the caller read it and stands at `current_version`."""

    def __init__(self, current_version: int) -> None:
        super().__init__(current_version)
        self.current_version = current_version


class BadCursor(StoreError):
    """The cursor was not given out for this list and these filters."""


class DatabaseUnavailable(StoreError):
    """The database is down, full, locked or too slow: the same request may succeed later."""
