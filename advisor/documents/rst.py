"""Prose of reStructuredText: literals, code, quotes, directives that nobody knows are left out."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from docutils import nodes
from docutils.core import publish_doctree

from advisor.documents.prose import Prose

_SETTINGS: dict[str, Any] = {
    "report_level": 5,
    "halt_level": 5,
    "warning_stream": "",
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "_disable_config": True,
    "input_encoding": "unicode",
    "smart_quotes": False,
    "syntax_highlight": "none",
}
"""Reads nothing but the text, and reports nothing: what cannot be read is left out."""
_LEFT_OUT = (
    nodes.literal_block, nodes.doctest_block, nodes.block_quote, nodes.comment, nodes.raw,
    nodes.system_message, nodes.math_block,
)  # fmt: skip
_LONGEST_PARAGRAPH = 5000
_INNER_SPACE = re.compile(r"(?<=\S)[ \t]++")
_OBJECTS = (nodes.literal, nodes.math, nodes.problematic, nodes.image, nodes.title_reference)


def prose_of(text: str) -> str:
    """The prose of a reStructuredText, every character where it stood.

    Raises `RecursionError` for what is nested too deep for the parser, and `ValueError` for a
    paragraph of a length at which its time would grow with the square.
    """
    if any(len(paragraph) > _LONGEST_PARAGRAPH for paragraph in _paragraphs(text)):
        raise ValueError(f"A paragraph has more than {_LONGEST_PARAGRAPH} characters.")
    prose = Prose(text)
    # The parser puts spaces for tabs, as many as there are columns: here one for one.
    text = _INNER_SPACE.sub(lambda found: " " * len(found[0]), text)
    lines = _Lines(text)
    for block, is_prose in _blocks(publish_doctree(text, settings_overrides=_SETTINGS)):
        raw = (block.rawsource if is_prose else "") or block.astext()
        in_cell = isinstance(block.parent, nodes.entry)
        spans = lines.find(raw.split("\n"), in_cell=in_cell)
        if not is_prose:
            continue
        for start, end in spans:
            prose.show(start, end)
        if not in_cell:
            # A sentence runs on over the end of a line.
            for (_, ended), (begun, _) in pairwise(spans):
                prose.clear(ended, begun)
        _hide_objects(prose, text, block, spans)
    return str(prose)


def _paragraphs(text: str) -> list[str]:
    """What stands between blank lines, lines of tables left aside."""
    return re.split(r"\n[ \t\r]*+\n", re.sub(r"(?m)^[ \t]*+[|+=][^\r\n]*+", "", text))


def _blocks(node: nodes.Node, *, prose: bool = True) -> Iterator[tuple[nodes.TextElement, bool]]:
    """The paragraphs, titles and terms in their order, and whether each is prose.

    What is none is found all the same, so that the same words later on are not taken for it.
    """
    for child in node.children:
        if isinstance(node, nodes.system_message) and isinstance(child, nodes.paragraph):
            # The parser's own words, which stand nowhere.
            continue
        is_prose = prose and not isinstance(child, _LEFT_OUT)
        if isinstance(child, nodes.TextElement):
            yield child, is_prose
        else:
            yield from _blocks(child, prose=is_prose)


class _Lines:
    """The lines of the text, in which blocks are found one after the other."""

    def __init__(self, text: str) -> None:
        self._text = text
        spans = (found.span() for found in re.finditer(r"[^\r\n]*+", text))
        self._spans = [span for span in spans if span[0] < span[1]]
        self._next = self._end = 0

    def find(self, block: Sequence[str], *, in_cell: bool) -> list[tuple[int, int]]:
        """Where the lines of a block stand: the first place after the last block.

        The parser takes indents and marks away, so that a line of a block is the end of one of the
        text's or, in a table, a part of it: another cell may follow on the same lines.
        """
        wanted = [line.strip() for line in block if line.strip()]
        first = self._with(wanted[0], self._next) if wanted else None
        while first is not None:
            found = self._from(first, wanted)
            if found:
                self._next = first if in_cell else first + len(found)
                self._end = found[0][1]
                return found
            first = self._with(wanted[0], first + 1)
        return []

    def _with(self, line: str, first: int) -> int | None:
        """The number of the first line from `first` on, and not too far, that holds `line`."""
        last = min(self._next + _FARTHEST, len(self._spans)) - 1
        if first > last:
            return None
        at = self._text.find(line, self._spans[first][0], self._spans[last][1])
        return None if at < 0 else bisect_right(self._spans, at, key=lambda span: span[0]) - 1

    def _from(self, first: int, wanted: Sequence[str]) -> list[tuple[int, int]]:
        found = []
        for line, (start, end) in zip(
            wanted, self._spans[first : first + len(wanted)], strict=False
        ):
            at = self._text.find(line, max(start, self._end), end)
            if at < 0:
                return []
            found.append((at, at + len(line)))
        return found if len(found) == len(wanted) else []


_FARTHEST = 400
"""Lines that a block may lie behind the one before: code and tables stand between."""


def _hide_objects(
    prose: Prose, text: str, block: nodes.TextElement, spans: Sequence[tuple[int, int]]
) -> None:  # fmt: skip
    if not spans:
        return
    at, end = spans[0][0], spans[-1][1]
    for child in block.children:
        raw = child.rawsource if isinstance(child, nodes.Element) else ""
        start = text.find(raw, at, end) if raw else -1
        if start < 0:
            continue
        if isinstance(child, _OBJECTS):
            prose.hide(start, start + len(raw))
        elif isinstance(child, nodes.reference):
            # The target in angle brackets is none of the sentence.
            target = text.find("<", start, start + len(raw))
            if target >= 0:
                prose.hide(target, start + len(raw))
        at = start + len(raw)
