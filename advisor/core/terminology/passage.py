"""A sentence as the rules see it, with a way to those beside it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from advisor.core.terminology.patterns import Token, tokens
from advisor.core.terminology.scope import ELSEWHERE, FIELD, NOWHERE, first_of, scope_of
from advisor.core.terminology.text import Lines, Sentences
from advisor.core.terminology.vocabulary import Vocabulary

_FIRST = 40
"""Sentences that show what a document is about."""

_WITHIN_PARAGRAPH = re.compile(r"[.!?。！？][\"')\]*_]*+[^\S\n\u2029]*+\n?[^\S\n\u2029]*+\Z")
"""How a sentence ends that others of its paragraph may follow."""
_ITEM = re.compile(r"(?:[-*+#|>]|\d{1,3}[.)])[ \t|#]")
"""How an item of a list, a heading, a row or a quotation begins."""


class Document:
    """A text, read once: its lines, its sentences, their words and what each is about."""

    def __init__(self, original: str, lower: str, vocabulary: Vocabulary) -> None:
        self.original, self.lower, self.vocabulary = original, lower, vocabulary
        self.lines, self.sentences = Lines(original), Sentences(lower)
        # Neighbours are asked for again and again, and soon never more.
        self.words = lru_cache(maxsize=8)(self._words)
        self.scope = lru_cache(maxsize=8)(self._scope)

    @cached_property
    def scope_at_large(self) -> str:
        """What most of its first sentences are about: `field`, or nothing to go by."""
        found = Counter(self._scope(number) for number in range(_FIRST))
        return FIELD if found[FIELD] > max(1, found[ELSEWHERE]) else NOWHERE

    def _words(self, number: int) -> Sequence[Token]:
        span = self.sentences.span(number)
        return tokens(self.lower, *span) if span else ()

    def _scope(self, number: int) -> str:
        return scope_of(self.vocabulary, self.words(number))


@dataclass(frozen=True)
class Passage:
    """The sentence of that number in a document."""

    document: Document
    number: int

    @property
    def words(self) -> Sequence[Token]:
        """Its words and marks."""
        return self.document.words(self.number)

    @property
    def is_question(self) -> bool:
        """Whether it ends in a question mark."""
        span = self.document.sentences.span(self.number)
        return span is not None and self.document.lower[slice(*span)].rstrip().endswith("?")

    @property
    def runs_on(self) -> bool:
        """Whether the next sentence stands in the same paragraph, and states something."""
        span, following = self.document.sentences.span(self.number), self.beside(1)
        if span is None or not following.words or following.is_question:
            return False
        text = self.document.lower
        return bool(_WITHIN_PARAGRAPH.search(text, *span) and not _ITEM.match(text, span[1]))

    @property
    def scope(self) -> str:
        """What it is about."""
        return self.document.scope(self.number)

    @property
    def scope_around(self) -> str:
        """What the sentences beside it are about, or else the document at large."""
        near = first_of({self.beside(-1).scope, self.beside(1).scope})
        if near in (FIELD, ELSEWHERE):
            return near
        return FIELD if self.document.scope_at_large == FIELD else near

    def beside(self, distance: int) -> Passage:
        """The sentence so many further on: an empty one beyond the ends of the text."""
        return Passage(self.document, self.number + distance)
