"""Prose of Markdown: code, quotes, HTML and the targets of links are left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import unescape

from markdown_it import MarkdownIt, rules_inline
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from advisor.core.terminology.text import FILLER, LINE_END, line_starts
from advisor.documents.prose import Prose

_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(?s:.{0,20000}?)\n(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)")
_OBJECTS = {
    "backticks": rules_inline.backtick,
    "link": rules_inline.link,
    "image": rules_inline.image,
    "autolink": rules_inline.autolink,
    "html_inline": rules_inline.html_inline,
    "entity": rules_inline.entity,
}
"""Rules of the parser that find what is no prose inside a paragraph."""
Inline = Callable[[StateInline, bool], bool]
Span = tuple[int, int, str]
"""Where an object stands, and the character that it stands for, if it does: `FILLER` for none."""
_LETTERS = re.compile(
    r"</?(?:a|abbr|b|del|em|font|i|ins|mark|s|small|span|strong|u)(?![\w-])", re.IGNORECASE
)
"""Tags that change how letters look, and part no word."""
_CODE = re.compile(r"<(/?)(?:code|kbd|samp|tt|q|var)(?![\w-])", re.IGNORECASE)
_LONGEST_INLINE = 1000
"""Code points that are parsed together: on nested brackets the parser's time grows with the square
of the length."""


_MEANINGLESS = str.maketrans(dict.fromkeys("${}%^+", "x"))
_MEANINGLESS_OUTSIDE_TAGS = _MEANINGLESS | str.maketrans(dict.fromkeys(":@=>-", "x"))


def prose_of(text: str) -> str:
    """The prose of a Markdown text, every character where it stood.

    Raises `RecursionError` for what is nested too deep for the parser.
    """
    front = _FRONT_MATTER.match(text)
    matter = front[0] if front else ""
    # Blank lines keep the count of lines and mean nothing to the parser.
    readable = re.sub(r"[^\r\n]", " ", matter) + text[len(matter) :]
    parser, spans = _parser()
    lines = _line_spans(readable)
    prose = Prose(text)
    quotes = 0
    # How far the lines have been read: the cells of a table share one.
    cursors: dict[int, int] = {}
    for token in parser.parse(readable):
        quotes += token.nesting if token.type.startswith("blockquote") else 0
        if token.type == "inline" and not quotes and token.map:
            found = spans(token)
            _show(prose, readable, token, lines, cursors, found)
    return str(prose)


def _parser() -> tuple[MarkdownIt, Callable[[Token], list[Span]]]:
    """A parser of blocks, and one of what is inside a block that says where objects stand."""
    found: list[Span] = []
    inline = MarkdownIt("commonmark").enable(["strikethrough"])
    for name, rule in _OBJECTS.items():
        inline.inline.ruler.at(name, _recorded(name, rule, found))
    blocks = MarkdownIt("commonmark").enable(["table"]).disable(["inline"])

    def spans(token: Token) -> list[Span]:
        spans = []
        for start in range(0, len(token.content), _LONGEST_INLINE):
            found.clear()
            part = _closed(token.content[start : start + _LONGEST_INLINE])
            inline.inline.parse(part, inline, {}, [])
            spans += [(begun + start, ended + start, meant) for begun, ended, meant in found]
        return [*spans, *_between_tags(token.content, spans)]

    return blocks, spans


def _closed(part: str) -> str:
    """The part of a block with "x" for what costs the parser time and means nothing: brackets that
    none closes, which open no link, and marks that have a meaning in tags alone."""
    part = part.translate(_MEANINGLESS if "<" in part else _MEANINGLESS_OUTSIDE_TAGS)
    opened: list[int] = []
    characters = list(part)
    for found in re.finditer(r"[\[\]]", part):
        if found[0] == "[":
            opened.append(found.start())
        elif opened:
            opened.pop()
    for at in opened:
        characters[at] = "x"
    return "".join(characters)


def _recorded(name: str, rule: Inline, found: list[Span]) -> Inline:
    """The rule of the parser, which notes where what it takes stands in the block's content."""

    def record(state: StateInline, silent: bool) -> bool:
        start = state.pos
        taken = rule(state, silent)
        if taken and not silent:
            label = _label_end(state, start) if name == "link" else start
            meant = _meant(name, state.src[start : state.pos])
            found.append((label, state.pos, meant))
        return taken

    return record


def _meant(name: str, source: str) -> str:
    """The character that an object of the parser stands for; empty: it is an object to the reader
    too."""
    if name == "entity":
        meant = unescape(source)
        return meant if len(meant) == 1 else ""
    looks = name == "html_inline" and _LETTERS.match(source)
    return FILLER if name == "link" or looks else ""


def _between_tags(content: str, objects: Sequence[Span]) -> list[Span]:
    """What stands between the tags of code in HTML, up to the first that closes one."""
    found, opened = [], None
    for begun, ended, _ in objects:
        tag = _CODE.match(content, begun)
        if tag and not tag[1]:
            opened = ended if opened is None else opened
        elif tag and opened is not None:
            found.append((opened, begun, ""))
            opened = None
    return found


def _label_end(state: StateInline, start: int) -> int:
    """Where the text of a link ends, which is prose; what follows is its target."""
    return int(state.md.helpers.parseLinkLabel(state, start, True))


def _show(
    prose: Prose, text: str, token: Token, lines: Sequence[tuple[int, int]],
    cursors: dict[int, int], objects: Sequence[Span],
) -> None:  # fmt: skip
    """Show the lines of one block, and hide the objects in them.

    The content of a block is that of its lines without what indents or marks them, so that each of
    its lines stands at the end of one of the text's; cells of a table stand one after the other.
    """
    assert token.map is not None
    position, shown = 0, None
    for number, line in zip(
        range(token.map[0], token.map[1]), token.content.split("\n"), strict=False
    ):
        start, end = lines[number]
        at = text.find(line, cursors.get(number, start), end)
        if at < 0:
            # A bar that was escaped in a table: the cell is left out.
            position, shown = position + len(line) + 1, None
            continue
        cursors[number] = at + len(line)
        if shown is not None:
            # A sentence runs on over the end of a line.
            prose.clear(shown, at)
        shown = at + len(line)
        prose.show(at, at + len(line))
        for begun, ended, meant in objects:
            first, last = max(begun, position), min(ended, position + len(line))
            if first < last and meant:
                prose.write(at + first - position, at + last - position, meant)
            elif first < last:
                prose.hide(at + first - position, at + last - position)
        position += len(line) + 1


def _line_spans(text: str) -> list[tuple[int, int]]:
    """Start and end of each line, as the parser counts them."""
    ends = [*(found.start() for found in LINE_END.finditer(text)), len(text)]
    return list(zip(line_starts(text), ends, strict=True))
