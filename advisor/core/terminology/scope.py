"""Whether a claim speaks of LLMs, GPUs and kernels, or of a field that the rules leave alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from advisor.core.terminology.patterns import Token
from advisor.core.terminology.vocabulary import Vocabulary

FIELD, SHARED, ELSEWHERE, NOWHERE = "field", "shared", "elsewhere", "nowhere"


def scope_of(vocabulary: Vocabulary, sentence: Sequence[Token]) -> str:
    """What a sentence is about: `field`, `elsewhere`, `shared` or `nowhere`, in that order.

    A word that ours shares with other fields counts where none from elsewhere stands.
    """
    return first_of({found.entry for found in vocabulary.scope_matcher.find(sentence)})


def first_of(scopes: Collection[str]) -> str:
    """The scope that outranks the others."""
    return next((kind for kind in (FIELD, ELSEWHERE, SHARED) if kind in scopes), NOWHERE)


def is_in_scope(here: str, around: str, *, of_art: bool) -> bool:
    """Whether a claim is to be listed.

    `here` is what its sentence is about, `around` what those beside it are. Without a word of any
    field, a term of art is taken for a claim, an everyday wording ("memory bottleneck") is not.
    """
    if here in (FIELD, ELSEWHERE):
        return here == FIELD
    if around in (FIELD, ELSEWHERE):
        return around == FIELD
    return of_art or here == SHARED
