"""Time of checking a megabyte of text, ordinary and hostile, beside a tenth of it."""

from __future__ import annotations

from advisor.core.terminology.check import check
from advisor.documents.reading import prose_of, read
from benchmarks.timing import least_cpu_ms
from tests.core.test_terminology import HOSTILE, MEGABYTE
from tests.documents.test_reading import HOSTILE as HOSTILE_MARKUP

PARAGRAPH = (
    "Decode is memory-bound on this GPU, and its p95 latency is under 200 ms.\n\n"
    + "The rest of the page says nothing that matters to any of the rules, as most text does. " * 40
    + "\n\n"
)


def main() -> None:
    """Print milliseconds, and how many times as long ten times the text takes."""
    print(
        "Checking 1 MB of text (least CPU of 3), and how many times the tenth of it: linear is 10"
    )
    texts = {"ordinary": (PARAGRAPH, "")} | HOSTILE
    check(PARAGRAPH)
    for name, (unit, tail) in texts.items():
        spent = [_spent(unit * (size // len(unit)) + tail) for size in (MEGABYTE // 10, MEGABYTE)]
        print(f"  {name:26} {spent[1]:6.0f} ms, {spent[1] / spent[0]:5.1f} times")
    markdown = PARAGRAPH * (MEGABYTE // len(PARAGRAPH))
    spent_ms = least_cpu_ms(lambda: prose_of(markdown, "markdown"), 3)
    print(f"  {'reading it as Markdown':26} {spent_ms:6.0f} ms")
    for text_format in ("markdown", "rst", "html", "code"):
        units = {unit: _read_ms(unit, text_format) for unit in HOSTILE_MARKUP}
        worst = max(units, key=units.__getitem__)
        print(
            f"  {f'worst of hostile {text_format}':26} {units[worst]:6.0f} ms, {worst!r} repeated"
        )


def _read_ms(unit: str, text_format: str) -> float:
    return least_cpu_ms(lambda: read(unit * (MEGABYTE // len(unit)), text_format), 1)


def _spent(text: str) -> float:
    return least_cpu_ms(lambda: check(text), 3)


if __name__ == "__main__":
    main()
