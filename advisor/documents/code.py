"""Prose of source code: its comments and, in Python, its docstrings."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from advisor.core.terminology.text import line_starts
from advisor.documents.prose import Prose

_MARKS = re.compile(r"[#/*!;<>%|-]{1,8}")
"""What opens or continues a comment at the beginning of its lines."""
_ONE_LINE_ON = re.compile(r"(?:\r\n|\r|\n)[ \t]*+(?=[#/;%-])")
_GUESSES = (
    ("c++", re.compile(r"^[ \t]{0,80}(?://|/\*|#include)|;[ \t]{0,8}//", re.MULTILINE)),
    (
        "python",
        re.compile(r"^[ \t]{0,80}(?:#|def |class |import |from |\"\"\")|[ \t]# ", re.MULTILINE),
    ),
    ("sql", re.compile(r"^[ \t]{0,80}-- ", re.MULTILINE)),
)
_READ = re.compile(r"Token\.(?:Comment(?!\.Preproc)|Literal\.String\.Doc)")
"""Kinds of tokens that are prose."""
_STRING = re.compile(r"Token\.Literal\.String")
_COMMENTS = (
    ("/* a\nb */", r"/\*(?s:.*?)(?:\*/|\Z)"),
    ("<!-- a\nb -->", r"<!--(?s:.*?)(?:-->|\Z)"),
    ("--[[ a\nb ]]", r"--\[\[(?s:.*?)(?:\]\]|\Z)"),
    ("{- a\nb -}", r"\{-(?s:.*?)(?:-\}|\Z)"),
    ("(* a\nb *)", r"\(\*(?s:.*?)(?:\*\)|\Z)"),
    ("// a b\n", r"(?<!:)//[^\r\n]*+"),
    ("# a b\n", r"(?<![^\s;])#[^\r\n]*+"),
    ("-- a b\n", r"(?<![^\s;])--[^\r\n]*+"),
    ("; a b\n", r";[^\r\n]*+"),
    ("% a b\n", r"(?<!\\)%[^\r\n]*+"),
    ("! a b\n", r"![^\r\n]*+"),
    ("' a b\n", r"'[^\r\n]*+"),
)
"""A sample of each kind of comment, and what finds it. The first that fits is taken."""
_STRINGS = (
    ('"""a\nb"""', r'"""(?s:.*?)(?:"""|\Z)'),
    ('"a"', r'"(?:[^"\\\r\n]|\\.)*+"?+'),
    ("'a'", r"'(?:[^'\\\r\n]|\\.){0,100}+'"),  # one alone may be no string: Rust's lifetimes
    ("`a`", r"`(?:[^`\\]|\\(?s:.))*+(?:`|\Z)"),
)
"""Of strings likewise: what looks like a comment inside them is none."""
_GUESSED_FROM = 20_000


def is_language(name: str) -> bool:
    """Whether source code in that language can be read."""
    try:
        get_lexer_by_name(name)
    except ClassNotFound:
        return False
    return True


def prose_of(text: str, language: str | None = None) -> str:
    """The comments of source code, every character where it stood.

    Without a language it is guessed by how lines begin: like C, like Python, or like SQL.
    """
    name = language or _guessed(text)
    prose = Prose(text)
    for start, end in _python_spans(text) if name == "python" else _spans(name, text):
        _show(prose, text, start, end)
    return str(prose)


def _guessed(text: str) -> str:
    sample = text[:_GUESSED_FROM]
    counts = {name: len(found.findall(sample)) for name, found in _GUESSES}
    return max(counts, key=counts.__getitem__)


def _show(prose: Prose, text: str, start: int, end: int) -> None:
    """Show a comment; the marks at the beginning of its lines count as space."""
    prose.show(start, end)
    for line in re.finditer(r"[^\r\n]++", text[start:end]):
        first = len(line[0]) - len(line[0].lstrip())
        marks = _MARKS.match(line[0], first)
        # A hyphen before a space is an item of a list.
        if marks and not line[0].startswith("- ", first):
            prose.clear(start + line.start() + marks.start(), start + line.start() + marks.end())
    following = _ONE_LINE_ON.match(text, end)
    if following:
        # The next line goes on with the same comment.
        prose.show(end, following.end())


def _python_spans(text: str) -> Iterator[tuple[int, int]]:
    """Comments and docstrings as Python's own tokenizer finds them, up to what it cannot read."""
    starts = line_starts(text)
    fresh = True
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            span = tuple(starts[line - 1] + column for line, column in (token.start, token.end))
            if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and fresh):
                yield span[0], span[1]
            if token.type not in (tokenize.COMMENT, tokenize.NL):
                fresh = token.type in _BEFORE_DOCSTRINGS
    except (tokenize.TokenError, IndentationError, IndexError):
        return


_BEFORE_DOCSTRINGS = frozenset(
    {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}
)


def _spans(name: str, text: str) -> Iterator[tuple[int, int]]:
    for found in _scanner(name).finditer(text):
        if found.lastgroup == "comment":
            yield found.span()


@cache
def _scanner(name: str) -> re.Pattern[str]:
    """What finds comments and strings of a language: those that its lexer takes for such.

    The lexer is asked with samples only. On whole files its time grows with the square of the
    length, in many languages already on blank lines; this stays linear on any text.
    """
    lexer = get_lexer_by_name(name, startinline=True)
    comments = [found for sample, found in _COMMENTS if _kind(lexer, sample, _READ)]
    strings = [found for sample, found in _STRINGS if _kind(lexer, sample, _STRING)]
    marks = [f"(?P<comment>{'|'.join(comments)})"] if comments else []
    return re.compile("|".join([*marks, *strings]) or "(?!)", re.MULTILINE)


def _kind(lexer: Lexer, sample: str, wanted: re.Pattern[str]) -> bool:
    """Whether the lexer takes the whole of a sample for what is wanted."""
    tokens = lexer.get_tokens_unprocessed(sample)
    return all(wanted.match(str(kind)) or not value.strip() for _, kind, value in tokens)
