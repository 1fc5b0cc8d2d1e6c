"""What use cases raise beyond the core's and the store's errors."""

from __future__ import annotations

from collections.abc import Iterable

from advisor.core.errors import nearest_name
from advisor.store.errors import NotFound


class UnknownName(NotFound):
    """No item is called `name`; `nearest` is one with a similar name, if there is any."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(name)
        self.nearest = nearest_name(name, known) or None
