"""Whether a phrase speaks of LLMs, GPUs and kernels, or of a field that the rules leave alone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from advisor.core.terminology.data import table
from advisor.core.terminology.matching import Phrase


def in_scope(found: list[Phrase], sentence: str, around: str) -> list[Phrase]:
    """Those phrases of a lower-cased sentence that are to be listed.

    A word of the field in the sentence decides for all, one from elsewhere against all. With
    neither, a term of art is taken for a claim, an everyday wording ("memory bottleneck") only when
    `around`, the sentence with its neighbours, holds a word of the field.
    """
    if _field().search(sentence):
        return found
    if _elsewhere().search(sentence):
        return []
    if _field().search(around):
        return found
    return [phrase for phrase in found if phrase.term_of_art]


@cache
def _field() -> re.Pattern[str]:
    return _any_word(table("scope.toml")["field"]["words"])


@cache
def _elsewhere() -> re.Pattern[str]:
    domains = table("scope.toml")["elsewhere"].values()
    return _any_word(word for domain in domains for word in domain["words"])


def _any_word(words: Iterable[str]) -> re.Pattern[str]:
    alternatives = "|".join(re.escape(word) for word in words)
    return re.compile(rf"(?<![a-z0-9_])(?:{alternatives})s?(?![a-z0-9_])")
