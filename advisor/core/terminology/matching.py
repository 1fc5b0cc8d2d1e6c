"""Finds the phrase in a text: sentences, phrases and positions, each in time linear in the text.

Every repetition in a pattern is bounded or possessive, so no text makes matching slow.
Offsets are code points, as Python indexes strings.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)} | {ord("’"): "'"}

_SENTENCE_END = re.compile(
    r"""(?<!e\.g)(?<!i\.e)(?<!\bvs)(?<!\bcf)(?<!\betc)(?<!approx)[.!?]["')\]]*+\s++
      | [。！？]
      | \n[ \t\r]*+\n                   # a blank line
      | \n(?=[ \t]*+(?:[-*+\#|>]|\d{1,3}[.)])[ \t|\#])   # a list item, heading, table row, quote
    """,
    re.VERBOSE,
)

_JOINT = r"[-\u2010-\u2013\s]{0,6}"
_PHRASE = re.compile(
    rf"""(?<![a-z0-9_])
    (?:
      (?P<head>memory|mem|vram|hbm) {_JOINT}
      (?:(?P<qualifier>bandwidth|bw|capacity|size|space|footprint|latency) {_JOINT})?
      (?:
        (?P<term>bound(?:ed)?)
      | (?P<partner>(?:and|or)\s[a-z]{{2,12}}[-\s])(?:bound|limited)
      | limited | constrained | intensive | bottleneck(?:s|ed)? | wall
      )
      (?![a-z0-9_%]|[-.][a-z0-9])   # part of a longer name, or a profiler's metric
    | limitée?s?\spar\sla\smémoire (?![a-z0-9_])
    | (?P<german>speichergebunden(?:e[mnrs]?)?) (?![a-z0-9_])
    )
    | (?:内存|显存)(?:受限|瓶颈|密集)
    """,
    re.VERBOSE,
)
_MATHEMATICAL = {"lower", "upper", "tight", "tighter", "worst-case", "asymptotic"}
_NOUN_OR_SET_LIMIT = re.compile(r"\s(?:of|to|check)")
"""After a spaced "memory bound" or "memory limited": "of 4 GB", "to 4 GB", "checks"."""


def lowered(text: str) -> str:
    """`text` with ASCII lower-cased and curly apostrophes straightened; every offset stays."""
    return text.translate(_LOWER)


@dataclass(frozen=True)
class Span:
    """Code points `start` up to, not including, `end`."""

    start: int
    end: int


@dataclass(frozen=True)
class Phrase(Span):
    """A phrase found. `qualifier` is the resource named inside it ("memory-bandwidth-bound"), and
    `term_of_art` says that it is used of computing only ("memory-bound", not "memory wall")."""

    qualifier: str | None
    term_of_art: bool


class Lines:
    """Line and column, both from 1, of an offset; LF, CRLF and CR end lines."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(found.end() for found in re.finditer(r"\r\n|\r|\n", self._text))]

    def position(self, offset: int) -> tuple[int, int]:
        """(line, column) of the code point at `offset`."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


def sentences(text: str) -> Iterator[Span]:
    """The sentences of lower-cased `text` in order, without gaps."""
    start = 0
    for found in _SENTENCE_END.finditer(text):
        yield Span(start, found.end())
        start = found.end()
    yield Span(start, len(text))


def phrases(original: str, text: str, sentence: Span) -> Iterator[Phrase]:
    """The phrases in one sentence of `text`, which is `original` lower-cased."""
    for found in _PHRASE.finditer(text, sentence.start, sentence.end):
        if not _is_identifier(original, found) and not _has_other_sense(text, found):
            term_of_art = bool(found["term"] or found["partner"] or found["german"])
            yield Phrase(found.start(), found.end(), found["qualifier"], term_of_art)


def _is_identifier(original: str, found: re.Match[str]) -> bool:
    """Whether the phrase is a name in code, an option or part of an address: `memoryBound`."""
    head_end = found.end("head")
    joined = head_end > 0 and original[head_end : head_end + 1].isalpha()
    if joined and original[head_end].isupper() and original[head_end - 1].islower():
        return True
    before = original[max(0, found.start() - 100) : found.start()]
    word_so_far = re.split(r"\s", before)[-1]
    return "://" in word_so_far or word_so_far.startswith(("--", "/", "$", "@"))


def _has_other_sense(text: str, found: re.Match[str]) -> bool:
    """Whether the words around make it a mathematical bound, a set limit or a bounds check."""
    before = text[max(0, found.start() - 20) : found.start()]
    if before.endswith("in-") or before.rstrip("- ").split(" ")[-1] in _MATHEMATICAL:
        return True
    return "-" not in found[0] and bool(_NOUN_OR_SET_LIMIT.match(text, found.end()))
