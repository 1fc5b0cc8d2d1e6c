"""What is prose in each format, with every character where it stood."""

from __future__ import annotations

import time
from pathlib import PurePath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.terminology.check import check
from advisor.documents import coarse
from advisor.documents.reading import FORMATS, Unreadable, format_of, prose_of, read

CLAIM = "GPU decode is memory-bound"
MARKDOWN = f"""\
---
title: {CLAIM}
---
# 😀 {CLAIM} (1)

The *decode* on **GPUs** is **memory-bound** (2), as in [GPU memory-bound (3)](http://x "{CLAIM}").
Use `{CLAIM}` and ![{CLAIM}](image.png) there.

> {CLAIM}

```
{CLAIM}
```

    {CLAIM}

- {CLAIM} (4)
  1. {CLAIM} (5)

| GPU | {CLAIM} (6) |
|---|---|
| {CLAIM} (7) | {CLAIM} (8) |

<div>{CLAIM}</div>

<!-- {CLAIM} -->
"""
RST = f"""\
{CLAIM} (1)
===============================

On 😀 GPUs *decode* is **memory-bound** (2), ``{CLAIM}`` and :unknown:`{CLAIM}`.
See `GPU memory-bound (3) <http://x/{CLAIM}>`_.

.. note:: {CLAIM} (4)

.. code-block:: python

   # {CLAIM}

.. {CLAIM}

Like this::

   {CLAIM}

Quoted:

   {CLAIM}

- {CLAIM} (5)

+-----------------------------------+-----------------------------------+
| {CLAIM} (6)    | {CLAIM} (7)    |
+-----------------------------------+-----------------------------------+
"""
HTML = f"""\
<!DOCTYPE html><!-- {CLAIM} --><html><head><title>{CLAIM} (1)</title>
<script>"{CLAIM}"</script><style>/* {CLAIM} */</style></head>
<body title="{CLAIM}"><p>GPU&nbsp;decode 😀 is <b>memory-bound</b> (2), <code>{CLAIM}</code>.</p>
<pre>{CLAIM}</pre><blockquote><p>{CLAIM}</p></blockquote><q>{CLAIM}</q>
<ul><li>{CLAIM} (3)<li>{CLAIM} (4)</ul><p>{CLAIM} (5)</body></html>
"""
PYTHON = f'''\
"""{CLAIM} (1)."""
text = "{CLAIM}"  # 😀 {CLAIM} (2)
def memory_bound():
    """Says:

    {CLAIM} (3)
    """
    return "{CLAIM}"
'''
CUDA = f"""\
#include <{CLAIM}>
// 😀 {CLAIM} (1)
const char *text = "{CLAIM}"; /* {CLAIM} (2),
 * {CLAIM} (3) */
"""
SAMPLES = {
    "markdown": (MARKDOWN, 8), "rst": (RST, 7), "html": (HTML, 5), "code": (PYTHON, 3),
}  # fmt: skip


def numbers(text: str, text_format: str, language: str | None = None) -> list[int]:
    """The number that stands behind each finding; every finding is in its place."""
    prose = prose_of(text, text_format, language)
    assert prose is not None
    assert len(prose) == len(text)
    found = []
    for finding in check(text, prose=prose):
        assert text[finding.start : finding.end] == finding.match
        line = text.split("\n")[finding.line - 1]
        assert line[finding.column - 1 :].startswith(finding.match)
        after = text[finding.end : finding.end + 12]
        assert "(" in after, f"{text[finding.start - 30 : finding.end + 12]!r} is no prose"
        found.append(int(after[after.index("(") + 1]))
    return found


@pytest.mark.parametrize("text_format", SAMPLES)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_prose_is_checked_where_it_stands_and_nothing_else(text_format: str, line_end: str):
    text, count = SAMPLES[text_format]
    assert numbers(text.replace("\n", line_end), text_format) == list(range(1, count + 1))


@pytest.mark.parametrize("language", ["cuda", "c++", None])
def test_comments_of_other_languages_are_read(language: str | None):
    assert numbers(CUDA, "code", language) == [1, 2, 3]


def test_a_comment_that_goes_on_in_the_next_line_is_one_sentence():
    text = "# Decode on this GPU is memory-bound, as it is limited\n# by bandwidth alone.\nx = 1\n"
    (finding,) = check(text, prose=prose_of(text, "code", "python"))
    assert finding.sense == "bandwidth"


def of_wording(text: str, text_format: str) -> list[tuple[str, str]]:
    """Status and wording of each finding."""
    found = check(text, prose=prose_of(text, text_format))
    return [(finding.status, finding.match) for finding in found]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    ("text_format", "before", "after"),
    [
        ("plain", "", ""), ("markdown", "- ", "  "), ("markdown", "", ""), ("rst", "", ""),
        ("rst", "* ", "  "), ("html", "<p>", ""), ("code", "# ", "# "), ("code", "// ", "// "),
    ],
)  # fmt: skip
def test_a_sentence_runs_on_over_the_end_of_a_line(
    text_format: str, before: str, after: str, line_end: str
):
    if (before, line_end) == ("// ", "\r"):
        pytest.skip("the lexer of C ends no comment there")
    denied = f"{before}Decode on this GPU is not{line_end}{after}memory-bound.{line_end}"
    assert of_wording(denied, text_format) == [("denied", "memory-bound")]
    parted = f"{before}Decode on this GPU is memory-{line_end}{after}bound.{line_end}"
    if text_format != "code":
        ((status, match),) = of_wording(parted, text_format)
        assert (status, match) == ("needs_answer", f"memory-{line_end}{after}bound")


@pytest.mark.parametrize("text_format", ["markdown", "html"])
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("GPU decode isn&#39;t memory-bound.", [("denied", "memory-bound")]),
        ("GPU decode isn&rsquo;t memory-bound.", [("denied", "memory-bound")]),
        ("GPU decode &amp; co. is memory&#8209;bound.", [("needs_answer", "memory&#8209;bound")]),
        ("GPU decode is memory&nbsp;bound.", [("needs_answer", "memory&nbsp;bound")]),
        ("A GPU says <code>memory-bound</code> of <b>it</b>.", []),
    ],
)
def test_references_stand_for_their_characters(
    text_format: str, text: str, found: list[tuple[str, str]]
):
    assert of_wording(text, text_format) == found


def test_a_tab_inside_a_line_of_rst_is_a_space():
    assert of_wording("GPU\tdecode is\tmemory-bound.\n", "rst") == [
        ("needs_answer", "memory-bound")
    ]


@pytest.mark.parametrize("left_out", ["  {}\n", ".. {}\n", "So::\n\n  {}\n", ".. x::\n\n  {}\n"])
def test_prose_of_rst_is_not_mistaken_for_the_same_words_of_code_or_a_quote(left_out: str):
    text = f"{left_out}\n{{}}\n".format(CLAIM, CLAIM)
    (finding,) = check(text, prose=prose_of(text, "rst"))
    assert finding.start == text.rindex("memory-bound")


@pytest.mark.parametrize("text_format", FORMATS)
@given(text=st.text(alphabet="ab \n\r\t`*_[]()<>!#-|+=:.&;\"'/\\{}$~😀é\u2029", max_size=80))
def test_any_text_is_read_to_its_own_length_or_refused(text_format: str, text: str):
    try:
        prose = prose_of(text, text_format)
    except Unreadable:
        return
    assert prose is None or len(prose) == len(text)


def test_what_is_nested_too_deep_is_read_by_lines_with_the_reason():
    with pytest.raises(Unreadable, match="nested"):
        prose_of("- " * 2000, "rst")
    assert "nested" in read("- " * 2000, "rst").coarse_because


@pytest.mark.parametrize(
    ("text_format", "left_out"),
    [
        ("markdown", ["```\n{}\n```", "    {}", "> {}", "`{}`", "[x]({})", '<a title="{}">']),
        ("rst", ["::\n\n  {}", ".. note: {}", "``{}``", ":code:`{}`"]),
        ("html", ["<pre>{}</pre>", "<!-- {} -->", "<code>{}</code>", '<a title="{}">']),
    ],
)
def test_what_is_read_by_lines_leaves_code_and_quotations_out(
    text_format: str, left_out: list[str]
):
    hidden = "\n\n".join(each.format("memory-bound") for each in left_out)
    text = f"{hidden}\n\nLLM decode is memory-bound.\n"
    prose = coarse.prose_of(text, text_format)
    assert prose is not None
    assert len(prose) == len(text)
    assert [found.start for found in check(text, prose=prose)] == [text.rindex("memory-bound")]


HOSTILE = [
    "[", "![", "[a](", "[[[a](b)", "`", "``` ", "<", "<a ", "<!--", "<b>", "</b>", "&", "&#", "*",
    "*a ", "**a*", "*a_ ", "~~", "> ", ">>", "- ", "\\", "[^1]", "[^1]: a\n", "[a]: b\n", "|",
    "|a|b|\n", "# a\n", "a\n===\n", "a", "a ", "\n", "\r", "\t", ":", "::\n\n", ".. x::\n", "a_ ",
    "`a`_ ", "+-+\n", "= =\n", "/*", "/**/", "// a\n", '"', "'", '"""', '\\"', "(", "{", "$", "@",
]  # fmt: skip


@pytest.mark.parametrize("text_format", FORMATS)
def test_a_megabyte_of_hostile_markup_is_read_in_seconds(text_format: str):
    # Each takes a second and less of an idle core; what grows with the square takes minutes.
    for unit in HOSTILE:
        began = time.process_time()
        read(unit * (1_000_000 // len(unit)), text_format)
        assert time.process_time() - began < 6, unit


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("rust", "fn f<'a>(x: &'a str) {} // {}\n"),
        ("go", 'x := "// memory-bound GPU" // {}\ny := `# memory-bound GPU`\n'),
        ("bash", "echo ${#a} 'memory-bound GPU # x' # {}\n"),
        ("lua", "--[[ {}\n]] x = '-- memory-bound GPU'\n"),
        ("haskell", "{- {} -} x = 1\n"),
        ("yaml", "a: memory-bound GPU#1 # {}\n"),
        ("fortran", "a /= b ! {}\n"),
        ("tex", "\\% GPU memory-bound % {}\n"),
        ("vbnet", "x = 1 ' {}\n"),
        ("sql", "select 'memory-bound GPU -- x' -- {}\n"),
    ],
)
def test_comments_are_told_from_strings_and_code_in_many_languages(language: str, code: str):
    text = code.replace("{}", "this LLM is mem-bound") if "{}" in code else code
    (finding,) = check(text, prose=prose_of(text, "code", language))
    assert finding.match == "mem-bound"


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("README.md", ("markdown", None)),
        ("index.rst", ("rst", None)),
        ("page.html", ("html", None)),
        ("notes.txt", ("plain", None)),
        ("kernel.cu", ("code", "cuda")),
        ("model.py", ("code", "python")),
        ("data.json", None),
        ("image.png", None),
        ("LICENSE", ("plain", None)),
    ],
)
def test_a_file_is_read_by_its_name(name: str, known: tuple[str, str | None] | None):
    assert format_of(PurePath(name)) == known


@pytest.mark.parametrize(
    "match",
    [
        "memory](https://example.org/a-long-address)-bound", "memory-<b>bound",
        "memory</i>-bound", "memory</span> bound",
    ],
)  # fmt: skip
def test_links_and_tags_of_looks_inside_a_claim_of_markdown_part_no_word(match: str) -> None:
    opened = {"]": "[", "<": "<i>"}["]" if "]" in match else "<"]
    text = f"\U0001f600 Decode of the LLM is {opened}{match} on this GPU."
    (found,) = check(text, prose=read(text, "markdown").prose)
    assert (found.match, text[found.start : found.end]) == (match, match)
    assert found.status == "needs_answer"


def test_a_line_break_or_a_picture_parts_words() -> None:
    for between in ("<br>", "![](x.png)", "<img src=x>"):
        text = f"The LLM has memory{between}bound to the GPU."
        assert check(text, prose=read(text, "markdown").prose) == []
