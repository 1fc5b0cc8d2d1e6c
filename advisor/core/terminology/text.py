"""A text's lines and sentences, in time linear in the text.

Every repetition in a pattern is bounded or possessive, so no text makes matching slow. Offsets are
code points, as Python indexes strings.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property

PARAGRAPH_BREAK = "\u2029"
"""What a reader of documents puts in place of a character that is no prose and parts sentences."""
OBJECT = "\ufffc"
"""What it puts in place of one that stands inside a sentence, as in a piece of code."""
FILLER = "\u2060"
"""What follows a character that is written with several, as `&#39;` is: it parts no word."""
LONGEST_SENTENCE = 600
"""Code points that are judged together; what is longer is cut at a space."""

LINE_END = re.compile(r"\r\n|\r|\n")

_LOWER = (
    {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
    | {code: code + 32 for code in range(0xC0, 0xDF) if code != 0xD7}
    | {ord("’"): "'"}
)
_SENTENCE_END = re.compile(
    r"""[.!?](?<!e\.g\.)(?<!i\.e\.)(?<!\bvs\.)(?<!\bcf\.)(?<!\betc\.)(?<!approx\.)(?<!\bfig\.)
        ["')\]*_]*+\s++
      | [。！？]
      | \u2029++
      | \n[ \t\r]*+\n                   # a blank line
      | \n(?=[ \t]*+(?:[-*+\#|>]|\d{1,3}[.)])[ \t|\#])   # a list item, heading, table row, quote
    """,
    re.VERBOSE,
)


def lowered(text: str) -> str:
    """`text` with Latin letters lower-cased and apostrophes straightened; every offset stays."""
    return text.translate(_LOWER)


def line_starts(text: str) -> list[int]:
    """Where each line starts; LF, CRLF and CR end lines."""
    return [0, *(found.end() for found in LINE_END.finditer(text))]


class Lines:
    """Line and column, both from 1, of an offset."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _starts(self) -> list[int]:
        return line_starts(self._text)

    def position(self, offset: int) -> tuple[int, int]:
        """(line, column) of the code point at `offset`."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


class Sentences:
    """The sentences of a lower-cased text, numbered from 0, without gaps between them."""

    def __init__(self, text: str) -> None:
        ends = [found.end() for found in _SENTENCE_END.finditer(text)]
        self._starts = [0]
        for end in [*ends, len(text)]:
            start = self._starts[-1]
            while end - start > LONGEST_SENTENCE:
                space = text.rfind(" ", start + LONGEST_SENTENCE // 2, start + LONGEST_SENTENCE)
                start = space if space > 0 else start + LONGEST_SENTENCE
                self._starts.append(start)
            if end < len(text):
                self._starts.append(end)
        self._length = len(text)

    def at(self, offset: int) -> int:
        """The number of the sentence in which a code point stands."""
        return bisect_right(self._starts, offset) - 1

    def start(self, number: int) -> int:
        """Where the sentence of that number starts."""
        return self._starts[number]

    def span(self, number: int) -> tuple[int, int] | None:
        """Where the sentence starts and ends; None when there is no such sentence."""
        if not 0 <= number < len(self._starts):
            return None
        following = self._starts[number + 1 : number + 2]
        return self._starts[number], following[0] if following else self._length
