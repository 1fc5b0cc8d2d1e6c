"""The little language in which rules say what wording they mean, and its matching.

It has no repetition without bounds, so that no pattern, of ours or of a team, can be slow:

    memory traffic       these words, one after the other; hyphens and underscores count as spaces
    read*                a word that begins like this
    (read|wait for)      one of these
    [the]                a word that may be missing
    ..                   up to three words of the same clause; .... up to eight
    ~                    up to five words that change nothing: articles, forms of "be", adverbs
    #                    a number
    $memory              a word of that class
    @                    the term that is being judged
    < or >               (alone, first or last) the sentence begins or ends here

A word is letters without digits: "h100" is read as "h 100", "model's" as "model". A
Chinese character is a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

from advisor.core.terminology.text import FILLER

TERM = "@"
_TOKEN = re.compile(
    rf"(?P<word>[a-zß-öø-ÿµμ][a-zß-öø-ÿ{FILLER}]*+(?:'{FILLER}*+(?!s(?![a-z]))[a-z]++)?)"
    rf"(?:'{FILLER}*+s(?![a-z]))?"
    r"|[0-9]++(?:[.,][0-9]++)*+|[\u3400-\u9fff]|[;:,()./%=|—@]"
)
_ELEMENT = re.compile(r"\([^()]++\)|\[[^\[\]]++\]|\.{4}|\.\.|[~#@<>]|[^\s()\[\]~#@<>]++")
_CLAUSE_ENDS = frozenset(";:().—|")
_LIGHT_WORDS = (
    "a an the any be been being is are was were am becomes become becoming became get gets getting"
    " gotten so that to by for from in or than of very quite really longer always often usually"
    " generally actually exactly truly strictly much more all as such it this still just even at"
    " having causing becoming seems seem seemed kv looks look appears appear memory mem compute"
    " cpu gpu hbm bound limited necessarily 是 的 由 un une le la les der die das ein eine plus"
    " sehr mehr wirklich"
)
_PASSED_OVER = frozenset(_LIGHT_WORDS.split())
_CLASS = re.compile(r"\$([a-z_]{1,40})")
_CLASS_ALONE = re.compile(rf"(?<![(\[|]){_CLASS.pattern}(?![^(\[]*+[)\]])")
_MOST_GAPS = 3
_FEW = 8
_GAPS = {"..": 3, "....": 8, "~": 5}


class Token(NamedTuple):
    """A word, number or mark of a lower-cased sentence, and where it stands in the text."""

    word: str
    start: int
    end: int


def tokens(text: str, start: int = 0, end: int | None = None) -> list[Token]:
    """The words and marks of lower-cased `text` between two offsets."""
    found = _TOKEN.finditer(text, start, len(text) if end is None else end)
    return [
        Token((each["word"] or each[0]).replace(FILLER, ""), each.start(), each.end())
        for each in found
    ]


def spelt_out(pattern: str, classes: Mapping[str, Sequence[str]]) -> str:
    """A pattern with the words of each class, `$memory`, in its place.

    Raises `ValueError` for a class that is not known.
    """

    def words(found: re.Match[str]) -> str:
        if found[1] not in classes:
            raise ValueError(f"{pattern!r} names a class {found[1]!r} that is not known")
        return "|".join(classes[found[1]])

    grouped = _CLASS_ALONE.sub(r"(\g<0>)", pattern)
    return _CLASS.sub(words, grouped)


@dataclass(frozen=True)
class _Element:
    exact: frozenset[str] = frozenset()
    stems: tuple[str, ...] = ()
    phrases: tuple[tuple[str, ...], ...] = ()
    optional: bool = False
    gap: int = 0
    light: bool = False
    edge: str = ""

    @property
    def is_fixed(self) -> bool:
        """Whether a sentence that matches has one of its words."""
        return bool(self.beginnings) and not (self.optional or "#" in self.exact)

    @property
    def beginnings(self) -> list[str]:
        """Regular expressions for its words, those of several words by the first."""
        whole = {*self.exact, *(phrase[0] for phrase in self.phrases)}
        stems = {*self.stems, *(word[:-1] for word in whole if word.endswith("*"))}
        exact = {word for word in whole if not word.endswith("*")}
        return [*(rf"{re.escape(word)}(?![a-z])" for word in exact), *map(re.escape, stems)]

    def takes(self, word: str) -> bool:
        if word in self.exact or (self.stems and word.startswith(self.stems)):
            return True
        return "#" in self.exact and word[0].isdigit()

    def ends(self, words: Sequence[str], at: int) -> Iterator[int]:
        """Where it can end when it begins at `at`."""
        if self.takes(words[at]):
            yield at + 1
        for phrase in self.phrases:
            part = words[at : at + len(phrase)]
            if len(part) == len(phrase) and all(map(_is_word, phrase, part)):
                yield at + len(phrase)

    def after(self, words: Sequence[str], reached: set[int]) -> set[int]:
        """Where the next element can begin when this one begins at any of the places reached."""
        if self.edge:
            edge = 0 if self.edge == "<" else len(words)
            return reached & {edge}
        if self.gap:
            return {end for at in reached for end in self._across(words, at)}
        if self.phrases:
            ended = {end for at in reached if at < len(words) for end in self.ends(words, at)}
        else:
            ended = {at + 1 for at in reached if at < len(words) and self.takes(words[at])}
        return ended | reached if self.optional else ended

    def _across(self, words: Sequence[str], at: int) -> Iterator[int]:
        yield at
        for following in range(at, min(at + self.gap, len(words))):
            if not self.passes(words[following]):
                return
            yield following + 1

    def passes(self, word: str) -> bool:
        """Whether a gap runs on over this word."""
        if self.light:
            return word in _PASSED_OVER or word.endswith("ly") or word == ","
        return word not in _CLAUSE_ENDS


@dataclass(frozen=True)
class Pattern:
    """A wording, parsed. Raises `ValueError` for a text that is none."""

    text: str

    @cached_property
    def elements(self) -> tuple[_Element, ...]:
        """What is matched one after the other."""
        parts = _ELEMENT.findall(self.text)
        if "".join("".join(parts).split()) != "".join(self.text.split()) or not parts:
            raise ValueError(f"{self.text!r} is not a pattern")
        elements = tuple(each for part in parts for each in _elements(part))
        first = next((each for each in elements if not each.edge), None)
        if first is None or first.gap or first.optional or elements[-1].gap:
            raise ValueError(f"{self.text!r} begins or ends with what may be missing")
        if sum(bool(each.gap) for each in elements) > _MOST_GAPS:
            raise ValueError(f"{self.text!r} has more than {_MOST_GAPS} gaps")
        return elements

    def sign(self) -> list[str]:
        """Regular expressions for words of which any sentence that matches has one, those of its
        rarest element: of few words, and long ones."""
        fixed = [each for each in self.elements if each.is_fixed]
        few = [each for each in fixed if len(each.beginnings) <= _FEW] or fixed[:1]
        return max(few, key=lambda each: min(map(len, each.beginnings))).beginnings

    @cached_property
    def required(self) -> tuple[frozenset[str], ...]:
        """Sets of words of each of which a sentence has one, if it matches."""
        return tuple(
            each.exact - {"#"}
            for each in self.elements
            if not (each.optional or each.stems or each.phrases or "#" in each.exact) and each.exact
        )

    def match(self, words: Sequence[str], at: int) -> int | None:
        """Where the pattern that begins at the word `at` first ends; None if it does not.

        All ways of matching are followed side by side, so that none is tried twice.
        """
        reached = {at}
        for element in self.elements:
            reached = element.after(words, reached)
            if not reached:
                return None
        return min(reached)


def _elements(part: str) -> list[_Element]:
    if part in _GAPS:
        return [_Element(gap=_GAPS[part], light=part == "~")]
    if part in "<>":
        return [_Element(edge=part)]
    if part[0] in "([":
        return [_choice(part[1:-1].split("|"), optional=part[0] == "[")]
    if part in "#@":
        return [_Element(frozenset(part))]
    words = _words(part)
    return [_choice([word], optional=False) for word in words]


def _words(part: str) -> list[str]:
    """Its words, as a sentence would be read, the last with its star."""
    found = [token.word for token in tokens(part.lower())]
    if not found:
        raise ValueError(f"{part!r} has no word")
    return [*found[:-1], found[-1] + "*"] if part.endswith("*") else found


def _choice(words: Iterable[str], *, optional: bool) -> _Element:
    exact, stems, phrases = set(), [], []
    for word in words:
        if word in ("#", TERM):
            exact.add(word)
            continue
        parsed = [each for part in word.split() for each in _words(part)]
        if len(parsed) > 1:
            phrases.append(tuple(parsed))
        elif parsed[0].endswith("*"):
            stems.append(parsed[0][:-1])
        else:
            exact.add(parsed[0])
    return _Element(frozenset(exact), tuple(stems), tuple(phrases), optional)


def _is_word(wanted: str, word: str) -> bool:
    return word.startswith(wanted[:-1]) if wanted.endswith("*") else word == wanted


T = TypeVar("T")


class Match(NamedTuple, Generic[T]):
    """Tokens `start` up to, not including, `end` are what `entry` means."""

    entry: T
    start: int
    end: int


class Matcher(Generic[T]):
    """Finds the wordings of many entries at once: a word is compared with those that begin so."""

    def __init__(self, entries: Iterable[tuple[T, Iterable[str]]]) -> None:
        self._exact: dict[str, list[tuple[T, Pattern]]] = {}
        self._stems: dict[str, list[tuple[str, T, Pattern]]] = {}
        for entry, patterns in entries:
            for text in patterns:
                self._add(entry, Pattern(text))

    def _add(self, entry: T, pattern: Pattern) -> None:
        first = next(each for each in pattern.elements if not each.edge)
        leading = {phrase[0] for phrase in first.phrases}
        for word in first.exact | {word for word in leading if not word.endswith("*")}:
            self._exact.setdefault(word, []).append((entry, pattern))
        for stem in {*first.stems, *(word[:-1] for word in leading if word.endswith("*"))}:
            if len(stem) < 2:
                raise ValueError(f"{pattern.text!r} begins with too short a stem")
            self._stems.setdefault(stem[:2], []).append((stem, entry, pattern))

    def find(self, sentence: Sequence[Token]) -> list[Match[T]]:
        """Every match in order of its start; each entry at most once at a place."""
        words = [token.word for token in sentence]
        known = frozenset(words)
        tried = {word: self._tried(word, known) for word in known}
        found: list[Match[T]] = []
        for at, word in enumerate(words):
            for entry, pattern in tried[word]:
                end = pattern.match(words, at)
                if end is not None:
                    found.append(Match(entry, at, end))
        return found

    def _tried(self, word: str, known: frozenset[str]) -> list[tuple[T, Pattern]]:
        """What may begin with a word, of all that has the words it requires."""
        exact = self._exact.get(word, ())
        number = self._exact.get("#", ()) if word[0].isdigit() else ()
        stems = self._stems.get(word[:2], ())
        begun = ((entry, pattern) for stem, entry, pattern in stems if word.startswith(stem))
        return [
            (entry, pattern)
            for entry, pattern in (*exact, *number, *begun)
            if not any(map(known.isdisjoint, pattern.required))
        ]
