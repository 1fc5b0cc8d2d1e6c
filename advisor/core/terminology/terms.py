"""The rules about other terms: a term with a figure, and no word that would qualify it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from advisor.core.terminology import findings
from advisor.core.terminology.findings import Finding
from advisor.core.terminology.patterns import Match, Token
from advisor.core.terminology.text import Lines
from advisor.core.terminology.vocabulary import Rule, Vocabulary
from advisor.core.units import GB, GIB

_THOUSANDS = frozenset({"k", "pflops", "petaflops"})
"""What makes a number thousands: of tokens, or of the TFLOPS in which a rule's `least` counts."""
Found = Match[tuple[Rule, str]]


def term_findings(
    vocabulary: Vocabulary, original: str, tokens: Sequence[Token], lines: Lines
) -> Iterator[Finding]:  # fmt: skip
    """What the rules ask about one sentence of `original`, in the order of the text."""
    by_rule: dict[Rule, dict[str, list[Found]]] = defaultdict(lambda: defaultdict(list))
    for found in vocabulary.term_matcher.find(tokens):
        rule, kind = found.entry
        by_rule[rule][kind].append(found)
    asked = [
        claim
        for rule, kinds in by_rule.items()
        if kinds["find"] and not kinds["unless"] and (kinds["needs"] or not rule.needs)
        if (claim := _claim(rule, kinds, tokens)) is not None
    ]
    for rule, start, end in sorted(asked, key=lambda claim: claim[1:]):
        yield findings.asked(rule, original, start, end, lines.position(start))


def _claim(
    rule: Rule, kinds: dict[str, list[Found]], tokens: Sequence[Token]
) -> tuple[Rule, int, int] | None:  # fmt: skip
    """Where the first claim of a rule in a sentence stands: one question a sentence is enough."""
    if rule.check == "close_sizes":
        return _closest_sizes(rule, tokens)
    for found in kinds["find"]:
        first = found.start
        if not any(map(_is_number, tokens[first : found.end])):
            # "1979 TFLOPS": the figure belongs to what was found, unlike that of "FP8 fits".
            first -= first > 0 and _is_number(tokens[first - 1]) and not _is_part(tokens, first - 1)
        figures = _figures(tokens[first : found.end])
        if max(figures, default=rule.least) >= rule.least:
            return rule, tokens[first].start, tokens[found.end - 1].end
    return None


def _figures(tokens: Sequence[Token]) -> list[float]:
    """The numbers among words, in thousands where "k" follows, or a unit of thousands."""
    pairs = zip(tokens, [*tokens[1:], Token("", 0, 0)], strict=True)
    return [
        _number(token) * (1000 if following.word in _THOUSANDS else 1)
        for token, following in pairs
        if _is_number(token)
    ]


def _closest_sizes(rule: Rule, tokens: Sequence[Token]) -> tuple[Rule, int, int] | None:
    """A size in GB before another that lies between what the two units would make of it."""
    sizes = [
        (_number(number), number, unit)
        for number, unit in pairwise(tokens)
        if _is_number(number) and unit.word in ("gb", "gib")
    ]
    for index, (size, number, unit) in enumerate(sizes):
        later = [(other, of.word) for other, _, of in sizes[index + 1 :]]
        if unit.word == "gb" and any(_is_between(size, *other) for other in later):
            return rule, number.start, unit.end
    return None


def _is_between(size: float, other: float, unit: str) -> bool:
    """Whether the other size is more than `size` in one reading of its GB, and less in another."""
    if unit == "gib":
        return size * GB / GIB < other < size
    return size < other < size * GIB / GB


def _is_part(tokens: Sequence[Token], at: int) -> bool:
    """Whether a token is joined to the one before it."""
    return at > 0 and tokens[at - 1].end == tokens[at].start


def _is_number(token: Token) -> bool:
    return token.word[0].isdigit()


def _number(token: Token) -> float:
    """Its value; a comma parts thousands where three figures follow, as "1,979"."""
    whole, _, rest = token.word.partition(",")
    text = whole + rest if len(rest) == 3 else token.word.replace(",", ".")
    try:
        return float(text)
    except ValueError:
        return 0.0
