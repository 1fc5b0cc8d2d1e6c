"""A document with everything but its prose blanked out, as long as it was before.

So every offset found in the prose is one in the document.
"""

from __future__ import annotations

from advisor.core.terminology.text import FILLER, OBJECT, PARAGRAPH_BREAK


class Prose:
    """A text of which nothing is prose until it is shown; what is shown can be hidden again."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._characters = [PARAGRAPH_BREAK] * len(text)

    def show(self, start: int, end: int) -> None:
        """What stands between two offsets is prose."""
        self._characters[start:end] = self._text[start:end]

    def hide(self, start: int, end: int, *, part: bool = True) -> None:
        """It is none: something inside a sentence, or else what parts two."""
        self._characters[start:end] = [OBJECT if part else PARAGRAPH_BREAK] * (end - start)

    def clear(self, start: int, end: int) -> None:
        """It is markup, which counts as space."""
        self._characters[start:end] = [" "] * (end - start)

    def write(self, start: int, end: int, character: str) -> None:
        """One character is written so: the rest of its place counts for nothing."""
        self._characters[start:end] = [character, *[FILLER] * (end - start - 1)]

    def __str__(self) -> str:
        return "".join(self._characters)
