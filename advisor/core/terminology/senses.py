"""What the words around claims say: whether they are denied, and which resource is meant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Sequence

from advisor.core.terminology.patterns import TERM, Match, Token
from advisor.core.terminology.phrases import Phrase
from advisor.core.terminology.vocabulary import DECIDING, Cue, Vocabulary

_NEAR = 8
"""Words to either side of a resource that may deny it."""
_CLEAR_LEAD = 2
"""Cues by which lesser ones for one sense must outnumber those for the other."""
_PARTING = frozenset({";", "while", "whereas", "whilst", "separately"})
_TURNING = frozenset({"but", "although", "though", "however", "despite", "yet"})
_CONCEDING = frozenset({"although", "though", "despite", "while", "whereas", "whilst"})
"""Where one of them opens the sentence, its clause ends with the next comma."""
_BEFORE_BUT = frozenset({"not", "nor", "isn't", "wasn't", "aren't", "never"})
"""After them "but" affirms: "not for capacity but for bandwidth"."""


class Sentence:
    """A sentence with its claims marked, and what its words say of them.

    Everything is looked for once, however many claims there are, so that the time stays linear.
    """

    def __init__(
        self, vocabulary: Vocabulary, words: Sequence[Token], claims: Sequence[Phrase]
    ) -> None:  # fmt: skip
        self._vocabulary = vocabulary
        self.words = marked(words, claims)
        self._said: dict[int, set[str]] = {}
        for found in vocabulary.grammar_matcher.find(self.words):
            self._note(found, found.entry)
        self._senses = vocabulary.other_sense_matcher.find(self.words)
        self._clauses = dict(zip((w.start for w in self.words), _clauses(self.words), strict=True))
        self._cues = [*self._found_cues(), *self._named_in(claims)]

    def said_of(self, claim: Phrase) -> Container[str]:
        """What is said of a claim: `denial`, `definition` and the like."""
        return self._said.get(claim.start, ())

    def has_other_sense(self, claim: Phrase, wording: str) -> bool:
        """Whether the words around a claim make it no claim of a limit."""
        return any(
            _applies(found.entry.only, wording)
            and any(word.start == claim.start for word in self.words[found.start : found.end])
            for found in self._senses
        )

    def is_denied(self, claim: Phrase) -> bool:
        """Whether a claim is denied."""
        said = self.said_of(claim)
        return "denial" in said and "affirmation" not in said

    def cues_of(self, claim: Phrase, wording: str) -> tuple[list[Cue], list[Cue]]:
        """The cues that decide about a claim, and all that bear on it or hint.

        Of the strongest ones, those in the claim's own clause count if there are any, else those
        of other clauses. One that yields to another only hints, as weak ones do, and so does one
        for capacity after "but" and its like, where what fits is said against the claim ("but it
        fits"), and where the claim is sped up.
        """
        own, other, hints = [], [], []
        names = {cue.name for cue, _, _ in self._cues}
        home = self._clauses[claim.start]
        about_speed = "about_speed" in self.said_of(claim)
        for cue, start, term in self._cues:
            clause = self._clauses[start]
            if (term not in (None, claim.start)) or not _applies(cue.only, wording):
                continue
            spared = about_speed or (clause != home and (clause[1] or home[1]))
            spared = spared and cue.sense == "capacity"
            if cue.strength == "weak" or spared or not names.isdisjoint(cue.yields_to):
                hints.append(cue)
            elif clause == home:
                own.append(cue)
            else:
                other.append(cue)
        if claim.of_store:
            (own if own else other).extend(cue for cue in self._vocabulary.cues if cue.store)
        return _once(_strongest(own, other)), _once((*own, *other, *hints))

    def _note(self, found: Match[str], said: str) -> None:
        for word in self.words[found.start : found.end]:
            if word.word == TERM:
                self._said.setdefault(word.start, set()).add(said)

    def _found_cues(self) -> Iterable[tuple[Cue, int, int | None]]:
        """Each cue with where it starts, and the claim that is part of its wording."""
        matches = self._vocabulary.cue_matcher.find(self.words)
        exceptions = self._vocabulary.exception_matcher.find(self.words) if matches else ()
        spared: dict[Cue, list[Match[Cue]]] = {}
        for exception in exceptions:
            spared.setdefault(exception.entry, []).append(exception)
        for found in matches:
            excepted = any(_overlap(found, each) for each in spared.get(found.entry, ()))
            if not excepted and not (found.entry.names and self._is_denied_resource(found)):
                part = self.words[found.start : found.end]
                terms = (word.start for word in part if word.word == TERM)
                yield found.entry, self.words[found.start].start, next(terms, None)

    def _named_in(self, claims: Iterable[Phrase]) -> Iterable[tuple[Cue, int, int | None]]:
        """The resources that claims name themselves: "memory-bandwidth-bound"."""
        by_name = {cue.name: cue for cue in self._vocabulary.cues}
        for claim in claims:
            if claim.qualifier in by_name and not self.is_denied(claim):
                yield by_name[claim.qualifier], claim.start, None

    def _is_denied_resource(self, cue: Match[Cue]) -> bool:
        first = max(0, cue.start - _NEAR)
        before = [_plain(word) for word in self.words[first : cue.start]]
        after = [_plain(word) for word in self.words[cue.end : cue.end + _NEAR]]
        near = [*before, Token(TERM, 0, 0), *after]
        said = {
            found.entry
            for found in self._vocabulary.resource_matcher.find(near)
            if found.start <= len(before) < found.end
        }
        return "resource_denial" in said and "resource_affirmation" not in said


def _strongest(own: Sequence[Cue], other: Sequence[Cue]) -> list[Cue]:
    """The cues of the greatest strength there is, those of the claim's own clause if it has any,
    with what says that two things are meant. Where that is plain, all of the clause."""
    joining = [cue for cue in own if _joins(cue)]
    named = {cue.sense for cue in own} - {"both"}
    if len(named) > 1 and any(cue.strength == "default" for cue in joining):
        return list(own)
    for strength in DECIDING:
        for cues in (own, other):
            found = [cue for cue in cues if cue.strength == strength and not _joins(cue)]
            if found:
                return [*found, *joining]
    return []


def _joins(cue: Cue) -> bool:
    """Whether a cue says that two things are meant, and not which."""
    return cue.sense == "both" and cue.strength != "strong"


def marked(words: Sequence[Token], claims: Iterable[Phrase]) -> list[Token]:
    """The words of a sentence with one mark in place of those of each claim."""
    found, rest = [], iter(words)
    word = next(rest, None)
    for claim in claims:
        while word is not None and word.end <= claim.start:
            found.append(word)
            word = next(rest, None)
        found.append(Token(TERM, claim.start, claim.end))
        while word is not None and word.start < claim.end:
            word = next(rest, None)
    if word is not None:
        found += [word, *rest]
    return found


def opens_as(vocabulary: Vocabulary, sentence: Sequence[Token], kind: str) -> bool:
    """Whether the sentence opens, or points back, as an `explanation` or a `consequence`."""
    found = vocabulary.opening_matcher.find(sentence)
    return any(each.entry == kind for each in found)


def sense_of(deciding: Collection[Cue]) -> str | None:
    """The sense that cues decide: `bandwidth`, `capacity`, `both`, or `None` if none decides.

    Two strong ones for different senses say both. Lesser ones say both where one hints at that;
    else the sense with two more than the other decides, or they leave the question open.
    """
    counts = Counter({cue.name: cue.sense for cue in deciding if not _joins(cue)}.values())
    if len(counts) < 2:
        return next(iter(counts), None)
    if any(cue.strength == "strong" or _joins(cue) for cue in deciding):
        return "both"
    lead = counts["bandwidth"] - counts["capacity"]
    return None if abs(lead) < _CLEAR_LEAD else "bandwidth" if lead > 0 else "capacity"


def lean_of(hints: Iterable[Cue]) -> str | None:
    """The sense that more cues hint at, or `None` when they balance."""
    counts = Counter(cue.sense for cue in hints)
    if counts["bandwidth"] == counts["capacity"]:
        return None
    return "bandwidth" if counts["bandwidth"] > counts["capacity"] else "capacity"


def _applies(only: Sequence[str], wording: str) -> bool:
    """Whether something speaks of claims in these words."""
    return not only or any(words in wording for words in only)


def _plain(word: Token) -> Token:
    return Token("claim", word.start, word.end) if word.word == TERM else word


def _overlap(cue: Match[Cue], exception: Match[Cue]) -> bool:
    return cue.start < exception.end and exception.start < cue.end


def _clauses(sentence: Sequence[Token]) -> list[tuple[int, bool]]:
    """For each token the number of its clause, and whether a turning word opens that."""
    clauses, number, turned, negated = [], 0, False, False
    concedes = bool(sentence) and sentence[0].word in _CONCEDING
    for token in sentence:
        turns = token.word in _TURNING and not (token.word == "but" and negated)
        if turns or token.word in _PARTING or (concedes and token.word == ","):
            number, turned, negated = number + 1, turns, False
            concedes = concedes and token.word != ","
        elif token.word in _BEFORE_BUT:
            negated = True
        clauses.append((number, turned))
    return clauses


def _once(cues: Iterable[Cue]) -> list[Cue]:
    return list(dict.fromkeys(cues))
