"""A document of any of the formats, to prose; and the format of a file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePath

from pygments.lexers import get_lexer_for_filename
from pygments.util import ClassNotFound

from advisor.documents import coarse, code, html, markdown, rst

FORMATS = ("plain", "markdown", "rst", "html", "code")
_BY_SUFFIX = {
    ".txt": "plain", ".text": "plain",
    ".md": "markdown", ".markdown": "markdown", ".mdx": "markdown", ".qmd": "markdown",
    ".rst": "rst", ".rest": "rst",
    ".html": "html", ".htm": "html", ".xhtml": "html",
}  # fmt: skip
_NO_PROSE = frozenset(
    {".json", ".jsonl", ".lock", ".csv", ".tsv", ".svg", ".xml", ".ipynb", ".log", ".css", ".map"}
)
"""Text that is data, whatever language could be told of it."""


_EFFORT = {
    # Each takes 20 to 40 us in Markdown, 200 us in reStructuredText, 10 us in HTML and code
    # (CPython 3.11 on one core of a small server).
    "markdown": (25_000, re.compile(r"[*_`\[<&~!\\\r\n]")),
    "rst": (5_000, re.compile(r"[|*`\r\n]|_(?![a-zA-Z0-9])")),
    "html": (100_000, re.compile(r"[<&]")),
    "code": (100_000, re.compile(r"/[/*]|#|--|\n")),
}
"""How many marks and line ends a format's parser is given, and what counts as one: what takes it
about a second."""


class Unreadable(Exception):
    """A document that its parser gives up on."""


@dataclass(frozen=True)
class Read:
    """The prose of a document, None where all of it is, and why it was read coarsely, if it was."""

    prose: str | None
    coarse_because: str = ""


def read(text: str, text_format: str, language: str | None = None) -> Read:
    """A text in one of `FORMATS`, in time linear in its length.

    What its parser gives up on, or would take too long for, is read coarsely: see `coarse`.
    """
    try:
        _refuse_too_much(text, text_format)
        return Read(prose_of(text, text_format, language))
    except Unreadable as reason:
        return Read(coarse.prose_of(text, text_format), str(reason))


def _refuse_too_much(text: str, text_format: str) -> None:
    most, mark = _EFFORT.get(text_format, (0, None))
    if mark and sum(1 for _ in islice(mark.finditer(text), most + 1)) > most:
        raise Unreadable(f"It has more than {most} marks and lines.")


def prose_of(text: str, text_format: str, language: str | None = None) -> str | None:
    """The prose of a text in one of `FORMATS`, as long as the text; None where all of it is prose.

    `language` names that of code, and is guessed without. Raises `Unreadable`.
    """
    try:
        if text_format == "markdown":
            return markdown.prose_of(text)
        if text_format == "rst":
            return rst.prose_of(text)
        if text_format == "html":
            return html.prose_of(text)
        if text_format == "code":
            return code.prose_of(text, language)
    except RecursionError:
        raise Unreadable("It is nested too deep.") from None
    except ValueError as error:
        raise Unreadable(str(error)) from None
    return None


def format_of(path: PurePath) -> tuple[str, str | None] | None:
    """The format of a file by its name, with the language of code; None for what is not read."""
    suffix = path.suffix.lower()
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix], None
    if suffix in _NO_PROSE:
        return None
    try:
        lexer = get_lexer_for_filename(path.name)
    except ClassNotFound:
        return ("plain", None) if path.name.isupper() and not suffix else None
    aliases = lexer.aliases or [""]
    if aliases[0] in ("text", "output", ""):
        return None
    return "code", aliases[0]
