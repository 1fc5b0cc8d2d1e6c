"""Whether a claim speaks of LLMs, GPUs and kernels, or of a field that the rules leave alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from advisor.core.terminology.patterns import Token
from advisor.core.terminology.vocabulary import Vocabulary

FIELD, SHARED, COMPUTING, ELSEWHERE, NOWHERE = (
    "field", "shared", "computing", "elsewhere", "nowhere",
)  # fmt: skip


_RANKED = (FIELD, ELSEWHERE, SHARED, COMPUTING)


def scope_of(vocabulary: Vocabulary, sentence: Sequence[Token]) -> str:
    """What a sentence is about: `field`, `elsewhere`, `shared`, `computing` or `nowhere`, in that
    order.

    A word that ours shares with other fields counts where none from elsewhere stands.
    """
    return first_of({found.entry for found in vocabulary.scope_matcher.find(sentence)})


def first_of(scopes: Collection[str]) -> str:
    """The scope that outranks the others."""
    return next((kind for kind in _RANKED if kind in scopes), NOWHERE)


def is_in_scope(here: str, around: str, *, of_art: bool) -> bool:
    """Whether a claim is to be listed.

    `here` is what its sentence is about, `around` what those beside it are. A word that is shared
    with other fields is enough for any wording; one of computing at large, or of a sentence beside
    it, for a term of art. Where no word speaks for this field, the claim is left alone.
    """
    if here in (FIELD, ELSEWHERE):
        return here == FIELD
    if around in (FIELD, ELSEWHERE):
        return around == FIELD
    return here == SHARED or (of_art and not {COMPUTING, SHARED}.isdisjoint((here, around)))
