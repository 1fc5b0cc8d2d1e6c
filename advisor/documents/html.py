"""Prose of HTML: code, quotes, scripts and attributes are left out."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser

from advisor.documents.prose import Prose

_STRAY = re.compile(r"<(?![a-zA-Z/!?][^<>]{0,4000}>)")
_DECLARATION = re.compile(r"<[!?][^<>]{0,4000}>")
_LEFT_OUT = frozenset(
    {"script", "style", "pre", "code", "kbd", "samp", "var", "tt", "blockquote", "q", "textarea",
     "template", "svg", "math", "cite"}
)  # fmt: skip
_INLINE = frozenset(
    {"a", "abbr", "b", "bdi", "bdo", "cite", "code", "del", "dfn", "em", "i", "ins", "kbd", "mark",
     "q", "s", "samp", "small", "span", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr"}
)  # fmt: skip
"""Elements that stand inside a sentence; any other parts two."""


def prose_of(text: str) -> str:
    """The prose of an HTML text, every character where it stood."""
    readable = _readable(text)
    reader = _Reader(readable)
    reader.feed(readable)
    reader.close()
    return reader.prose()


def _readable(text: str) -> str:
    """The text with comments, declarations and stray "<" blanked, character by character.

    On what is left unclosed the library's time grows with the square of the length.
    """
    return _DECLARATION.sub(_blank, _STRAY.sub(_blank, _without_comments(text)))


def _without_comments(text: str) -> str:
    parts, position = [], 0
    while (start := text.find("<!--", position)) >= 0:
        end = text.find("-->", start + 4)
        end = len(text) if end < 0 else end + 3
        parts += [text[position:start], re.sub(r"[^\n]", " ", text[start:end])]
        position = end
    return "".join([*parts, text[position:]])


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


class _Reader(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=False)
        self._text, self._prose = text, Prose(text)
        # The library counts lines by "\n" alone.
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]
        self._left_out: list[str] = []

    def prose(self) -> str:
        return str(self._prose)

    def _offset(self) -> int:
        line, column = self.getpos()
        return self._starts[line - 1] + column

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        start = self._offset()
        self._tag(tag, start, start + len(self.get_starttag_text() or ""))
        if tag in _LEFT_OUT:
            self._left_out.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        start = self._offset()
        self._tag(tag, start, start + len(self.get_starttag_text() or ""))

    def handle_endtag(self, tag: str) -> None:
        if tag in self._left_out:
            # What was left open inside ends with it.
            while self._left_out.pop() != tag:
                pass
        start = self._offset()
        self._tag(tag, start, start + len(tag) + 3)

    def handle_data(self, data: str) -> None:
        self._show(len(data))

    def handle_entityref(self, name: str) -> None:
        self._reference(f"&{name}")

    def handle_charref(self, name: str) -> None:
        self._reference(f"&#{name}")

    def _show(self, length: int) -> None:
        start = self._offset()
        if self._left_out:
            inside = all(tag in _INLINE for tag in self._left_out)
            self._prose.hide(start, start + length, part=inside)
        else:
            self._prose.show(start, start + length)

    def _reference(self, written: str) -> None:
        """A character reference stands for its character; the semicolon may be missing."""
        if self._left_out:
            return
        start = self._offset()
        end = start + len(written)
        end += self._text.startswith(";", end)
        meant = unescape(f"{written};")
        if len(meant) == 1:
            self._prose.write(start, end, meant)
        else:
            self._prose.clear(start, end)

    def _tag(self, tag: str, start: int, end: int) -> None:
        if tag in _INLINE and not self._left_out:
            self._prose.clear(start, end)
