"""A technique as a page of the documents."""

from __future__ import annotations

from textwrap import fill

from advisor.core.techniques.catalogue import Technique, pairs

_WIDTH = 100


def page(each: Technique) -> str:
    """The page in Markdown: all of it is in the catalogue."""
    formulas = "\n".join(
        fill(f"- {line}", _WIDTH, subsequent_indent="  ") for line in each.formulas
    )
    sources = "\n".join(f"- [{title}]({url})" for title, url in each.sources)
    parts = [
        f"# {each.title}",
        _paragraph(
            f"`{each.name}` in `POST /v1/techniques/advice`; family `{each.family}`, group "
            f"`{each.group}`. {each.changes}"
        ),
        f"## What it changes in the formulas\n\n{formulas}",
        f"## Its price\n\n{_paragraph(each.price)}",
        f"## When it helps\n\n{_paragraph(each.helps)}",
        f"## When it hurts\n\n{_paragraph(each.hurts)}",
        f"## What is not computed\n\n{_paragraph(each.not_computed)}",
    ]
    together = [
        fill(f"- With `{other}`: {pair.how}", _WIDTH, subsequent_indent="  ")
        for pair in pairs()
        for name, other in ((pair.first, pair.second), (pair.second, pair.first))
        if name == each.name
    ]
    if together:
        parts.append("## Together with others\n\n" + "\n".join(together))
    return "\n\n".join([*parts, f"## Sources\n\n{sources}"]) + "\n"


def _paragraph(text: str) -> str:
    return fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False)
