"""What use cases raise beyond the core's and the store's errors."""

from __future__ import annotations

from collections.abc import Iterable

from advisor.core.errors import nearest_name
from advisor.store.errors import NotFound

MOST_COMPARED = 5_000
"""Names that an unknown one is compared with; more would take longer than the answer is worth."""


class UnknownName(NotFound):
    """No item is called `name`; `nearest` is one with a similar name, if there is any."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(name)
        self.nearest = nearest_name(name, list(known)[:MOST_COMPARED]) or None
