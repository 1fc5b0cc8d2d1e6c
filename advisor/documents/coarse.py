"""Prose of a marked-up text by its lines alone: for what is too much, or too deep, for a parser.

Code and quotations that stand on lines of their own are left out, and so are code inside a line,
tags and addresses of links. Markup of other kinds is taken for prose.
"""

from __future__ import annotations

import re

from advisor.core.terminology.text import OBJECT, PARAGRAPH_BREAK

_BLOCKS = {
    "markdown": re.compile(
        r"^ {0,3}(?P<fence>```|~~~)(?s:.*?)(?:^ {0,3}(?P=fence)|\Z)|^(?: {0,3}>| {4}|\t)[^\n]*+",
        re.MULTILINE,
    ),
    "rst": re.compile(r"^(?:[ \t]|\.\. )[^\n]*+", re.MULTILINE),
    "html": re.compile(
        r"<(?P<tag>script|style|pre|code|blockquote|q|textarea)(?![\w-])(?s:.*?)(?:</(?P=tag)|\Z)"
        r"|<!--(?s:.*?)(?:-->|\Z)",
        re.IGNORECASE,
    ),
}
_INLINE = {
    "markdown": re.compile(r"`[^`\n]{1,400}`|\]\([^()\s]{0,400}\)|</?[a-zA-Z][^<>\n]{0,400}>"),
    "rst": re.compile(r"``[^`\n]{1,400}``|:[a-z]{1,20}:`[^`\n]{1,400}`|<[^<>\n]{1,400}>`"),
    "html": re.compile(r"</?[a-zA-Z][^<>]{0,4000}>"),
}


def prose_of(text: str, text_format: str) -> str | None:
    """The prose of a Markdown, reStructuredText or HTML text, every character where it stood; None
    of one in another format, all of which counts."""
    if text_format not in _BLOCKS:
        return None
    text = _BLOCKS[text_format].sub(_parted, text)
    return _INLINE[text_format].sub(lambda found: OBJECT * len(found[0]), text)


def _parted(found: re.Match[str]) -> str:
    return PARAGRAPH_BREAK * len(found[0])
